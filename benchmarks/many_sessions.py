"""How much memory a process keeps of sessions that are gone.

    python benchmarks/many_sessions.py [--sessions 10000] [--cycles]

Makes sessions of a model of about 60 KB (a Loop around a product, an If, a convolution), runs each once, and drops it; the garbage
collector is left as Python starts it. With `--cycles` the program makes 500 KB of cyclic garbage of its own between sessions, which
its collector has to find. Reported is the resident memory after each tenth, and by least squares what it grows by per session after
the first tenth. The bar: below 1 KB per session (10 KB with cycles, which come and go).
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import numpy as np

import sardonyx
from sardonyx.formats.onnx import to_bytes
from sardonyx.ir.text import parse_model

BAR_BYTES = 1024
_MODEL = """ir_version 10
opset 21
graph small(x: float[n, 3, 8, 8], flag: bool[]) -> (y: float[m, 64]) {
    filters: float[16, 3, 3, 3] = ... 1
    table: float[64, 64] = ... 2
    wide: float[16, 64] = ... 3
    other: float[128, 64] = ... 4
    steps: int64[] = 3
    go: bool[] = true
    c = Conv(x, filters) {pads = [1, 1, 1, 1]}
    r = Relu(c)
    p = GlobalAveragePool(r)
    f = Flatten(p)
    e = MatMul(f, wide)
    t = Transpose(other) {perm = [1, 0]}
    u = MatMul(e, t)
    v = MatMul(u, other)
    looped = Loop(steps, go, v) {body = graph(i: int64[], more: bool[], state: float[a, 64]) -> (again, next) {
        again = Identity(more)
        product = MatMul(state, table)
        next = Tanh(product)
    }}
    y = If(flag) {then_branch = graph() -> (kept) {
        kept = Relu(looped)
    }, else_branch = graph() -> (negated) {
        negated = Neg(looped)
    }}
}"""


def resident_bytes() -> int:
    """The resident memory of this process."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def make_cycles() -> None:
    """Leave 500 KB that hold themselves."""
    for _ in range(50):
        ring: list[object] = [bytearray(10_000)]
        ring.append(ring)


def main() -> int:
    """Make sessions, and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--cycles", action="store_true")
    arguments = parser.parse_args()
    model = to_bytes(parse_model(_MODEL))
    feed = {"x": np.ones((1, 3, 8, 8), np.float32), "flag": np.array(True)}
    sizes = []
    for number in range(arguments.sessions):
        sardonyx.InferenceSession(model).run(None, feed)
        if arguments.cycles:
            make_cycles()
        sizes.append(resident_bytes())
        if (number + 1) % (arguments.sessions // 10) == 0:
            print(f"{number + 1:7} sessions of {len(model)} bytes: {sizes[-1] / 2**20:8.1f} MiB", flush=True)
    first = arguments.sessions // 10
    slope = float(np.polyfit(np.arange(first, len(sizes)), sizes[first:], 1)[0])
    bar = BAR_BYTES * (10 if arguments.cycles else 1)
    print(f"{slope:.0f} bytes per session after the first {first}: {'ok' if slope < bar else 'ABOVE THE BAR'}")
    return 0 if slope < bar else 1


if __name__ == "__main__":
    sys.exit(main())
