"""Sessions and runs of every unpleasant kind for a long time, and what the process keeps of them.

    python benchmarks/soak.py [--seconds 3600] [--threads 8] [--parts sessions,shapes,cancelled,…]

Each part runs in turn, again and again, until the time is over:

    sessions     made, run once and dropped
    shapes       one session of a transformer's layer and one of a detector's, each with sizes that never come again
    cancelled    threads that share a session; some of their runs are ended by `terminate`, some by a wrong feed
    failures     an index out of range and a division that only the run shows, in the middle of a plan
    bindings     outputs that are bound in advance, to new memory each time
    asynchronous runs whose results a callback gets, and callbacks that raise

Printed are, fifty times, memory (what no other process has), open descriptors, threads and mappings, and in the end the slope of
each by the round after the first tenth of the time. The bar: below 1 KB of memory a round, and nothing else that grows.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import random
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import sardonyx as ort
from sardonyx.formats.onnx import to_bytes
from sardonyx.ir.text import parse_model

BAR_BYTES = 1024
MOST = 16
"""By how many descriptors, threads or mappings the process may grow in all: the C library keeps some memory for each thread."""
TRANSFORMER = """graph main(x: float[b, t, 64], m: float[b, 1, 1, t]) -> (y) {
    w: float[64, 192] = ... 1
    o: float[64, 64] = ... 2
    g: float[64] = ... 3
    split: int64[3] = [64, 64, 64]
    heads: int64[4] = [0, 0, 4, 16]
    joined: int64[3] = [0, 0, 64]
    p = MatMul(x, w)
    q, k, v = Split(p, split) {axis = -1}
    q1 = Reshape(q, heads)
    k1 = Reshape(k, heads)
    v1 = Reshape(v, heads)
    q2 = Transpose(q1) {perm = [0, 2, 1, 3]}
    k2 = Transpose(k1) {perm = [0, 2, 3, 1]}
    v2 = Transpose(v1) {perm = [0, 2, 1, 3]}
    s = MatMul(q2, k2)
    a = Add(s, m)
    f = Softmax(a)
    c = MatMul(f, v2)
    c1 = Transpose(c) {perm = [0, 2, 1, 3]}
    c2 = Reshape(c1, joined)
    d = MatMul(c2, o)
    r = Add(x, d)
    y = LayerNormalization(r, g)
}"""
DETECTOR = """graph main(x: float[n, 3, h, w], boxes: float[1, k, 4], scores: float[1, 2, k]) -> (y, picked) {
    f: float[16, 3, 3, 3] = ... 1
    e: float[8, 16, 1, 1] = ... 2
    most: int64[1] = [5]
    overlap: float[1] = [0.5]
    least: float[1] = [0.1]
    a = Conv(x, f) {pads = [1, 1, 1, 1], strides = [2, 2]}
    b = Relu(a)
    c = MaxPool(b) {kernel_shape = [2, 2], ceil_mode = 1, strides = [2, 2]}
    y = Conv(c, e)
    picked = NonMaxSuppression(boxes, scores, most, overlap, least)
}"""
FAILING = """graph main(x: float[n, 4], i: int64[k]) -> (y) {
    a = Softmax(x)
    b = Gather(a, i)
    c = NonZero(b)
    d = Cast(c) {to = 1}
    y = ReduceSum(d)
}"""
LONG = """graph main(x: float[n, n]) -> (y) {
    a = MatMul(x, x)
    b = Softmax(a)
    c = MatMul(b, x)
    d = Softmax(c)
    e = MatMul(d, x)
    y = Softmax(e)
}"""


class Kept(NamedTuple):
    """What the process holds."""

    memory: int
    """Bytes that no other process has."""
    descriptors: int
    """Open files."""
    threads: int
    """Threads."""
    mappings: int
    """Mappings of memory."""


_LIBC = ctypes.CDLL(None)
_M_ARENA_MAX = -8
"""The parameter of glibc's mallopt that limits its heaps."""


def use_one_heap() -> None:
    """Let all threads allocate from one heap, where the C library is glibc; before there are threads."""
    if hasattr(_LIBC, "mallopt"):
        _LIBC.mallopt(_M_ARENA_MAX, 1)


def kept() -> Kept:
    """What this process holds at the moment, without what the C library keeps of memory that was freed."""
    if hasattr(_LIBC, "malloc_trim"):
        _LIBC.malloc_trim(0)
    rollup = Path("/proc/self/smaps_rollup").read_text(encoding="ascii").splitlines()
    private = sum(int(line.split()[1]) for line in rollup if line.startswith("Private_"))
    own = Path("/proc/self")
    return Kept(
        private * 1024,
        len(os.listdir(own / "fd")),
        len(os.listdir(own / "task")),
        len((own / "maps").read_text(encoding="utf-8").splitlines()),
    )


def _session(text: str) -> ort.InferenceSession:
    return ort.InferenceSession(_bytes(text))


def _bytes(text: str) -> bytes:
    return to_bytes(parse_model(f"ir_version 10\nopset 21\n{text}"))


def _array(*shape: int) -> Any:
    return np.random.default_rng(shape[0]).standard_normal(shape).astype(np.float32)


class Soak:
    """The parts, each with the sessions that it keeps."""

    def __init__(self, threads: int, seed: int = 0) -> None:
        """Make the sessions."""
        self._random = random.Random(seed)
        self._models = [_bytes(text) for text in (TRANSFORMER, DETECTOR, FAILING, LONG)]
        self._transformer, self._detector = _session(TRANSFORMER), _session(DETECTOR)
        self._failing, self._long = _session(FAILING), _session(LONG)
        self._pool = ThreadPoolExecutor(threads)
        self._threads = threads

    @property
    def parts(self) -> Mapping[str, Callable[[], None]]:
        """The parts by name."""
        return {
            "sessions": self.sessions,
            "shapes": self.shapes,
            "cancelled": self.cancelled,
            "failures": self.failures,
            "bindings": self.bindings,
            "asynchronous": self.asynchronous,
        }

    def sessions(self) -> None:
        """Make a session, on either provider, run it once and drop it; a broken model now and then."""
        content = self._random.choice(self._models)
        if self._random.random() < 0.2:
            place = self._random.randrange(len(content))
            content = content[:place] + bytes([self._random.randrange(256)]) + content[place + 1 :]
        provider = self._random.choice(["CPUExecutionProvider", "ReferenceExecutionProvider"])
        try:
            session = ort.InferenceSession(content, providers=[provider])
            session.run(None, {"x": _array(2, 4), "i": np.zeros(1, np.int64)})
        except ort.SardonyxError:
            pass

    def shapes(self) -> None:
        """Run with sizes that hardly ever come again."""
        b, t = self._random.randint(1, 3), self._random.randint(1, 400)
        self._transformer.run(None, {"x": _array(b, t, 64), "m": np.zeros((b, 1, 1, t), np.float32)})
        height, width, k = (self._random.randint(1, 200) for _ in range(3))
        self._detector.run(None, {"x": _array(1, 3, height, width), "boxes": abs(_array(1, k, 4)), "scores": abs(_array(1, 2, k))})

    def cancelled(self) -> None:
        """Run in all threads; end some of the runs, and feed some what is wrong."""
        list(self._pool.map(self._one_cancelled, [self._random.random() for _ in range(2 * self._threads)]))

    def _one_cancelled(self, number: float) -> None:
        options = ort.RunOptions()
        timer = threading.Timer(number / 50, lambda: setattr(options, "terminate", True))
        if number < 0.5:
            timer.start()
        try:
            self._long.run(
                None, {"x": _array(3, 4) if number > 0.9 else _array(int(20 + 150 * number), int(20 + 150 * number))}, options
            )
        except ort.SardonyxError:
            pass
        finally:
            timer.cancel()
            if number < 0.5:
                timer.join()

    def failures(self) -> None:
        """Fail in the middle of a plan, then run well."""
        for index in (9, 0, -7):
            try:
                self._failing.run(None, {"x": _array(5, 4), "i": np.array([index])})
            except ort.SardonyxError:
                continue

    def bindings(self) -> None:
        """Bind the output to memory of its own, to the wrong one, and to a device."""
        n = self._random.randint(1, 60)
        binding = self._long.io_binding()
        binding.bind_cpu_input("x", _array(n, n))
        binding.bind_ortvalue_output(
            "y", ort.OrtValue.ortvalue_from_numpy(np.empty((n, n + self._random.randint(0, 1)), np.float32))
        )
        try:
            self._long.run_with_iobinding(binding)
        except ort.SardonyxError:
            binding.bind_output("y")
            self._long.run_with_iobinding(binding)
            binding.copy_outputs_to_cpu()

    def asynchronous(self) -> None:
        """Hand the results to a function."""
        done = threading.Event()
        self._long.run_async(None, {"x": _array(8, 8)}, lambda results, data, error: done.set(), None)
        done.wait(30)

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown()


def rounds(soak: Soak, names: list[str], seconds: float) -> Iterator[tuple[float, int, Kept]]:
    """Run the parts in turn; yields after each fiftieth of the time how long it was, how many rounds, and what is kept."""
    start, count, due = time.monotonic(), 0, seconds / 50
    while (passed := time.monotonic() - start) < seconds:
        for name in names:
            soak.parts[name]()
        count += 1
        if passed >= due:
            due += seconds / 50
            yield passed, count, kept()


def slope(places: list[float], values: list[int]) -> float:
    """By how much values grow with their places, by least squares."""
    return float(np.polyfit(places, values, 1)[0]) if len(places) > 1 else 0.0


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--parts", default="")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    soak = Soak(arguments.threads)
    names = arguments.parts.split(",") if arguments.parts else list(soak.parts)
    found = []
    print(f"{'seconds':>8} {'rounds':>7} {'MiB':>8} {'files':>6} {'threads':>8} {'mappings':>9}")
    for passed, count, held in rounds(soak, names, arguments.seconds):
        found.append((passed, count, held))
        print(
            f"{passed:8.0f} {count:7} {held.memory / 2**20:8.1f} {held.descriptors:6} {held.threads:8} {held.mappings:9}",
            flush=True,
        )
    soak.close()
    return _report([entry for entry in found if entry[0] > arguments.seconds / 10])


def _report(found: list[tuple[float, int, Kept]]) -> int:
    counts = [float(count) for _, count, _ in found]
    by_round = {name: slope(counts, [getattr(held, name) for _, _, held in found]) for name in Kept._fields}
    print("after the first tenth, by the round:", ", ".join(f"{name} {value:+.3f}" for name, value in by_round.items()))
    grows = by_round["memory"] >= BAR_BYTES or any(by_round[name] * counts[-1] > MOST for name in Kept._fields[1:])
    print("something grows" if grows else "nothing grows")
    return 1 if grows else 0


if __name__ == "__main__":
    sys.exit(main())
