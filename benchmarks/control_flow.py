"""How long do If, Loop, Scan and functions of a model take, and how much of it is the loop itself?

    python benchmarks/control_flow.py [--rounds N] [--threads N]

Makes its models itself. Where onnxruntime is installed, both run in turns in one process; the ratio is that of the medians of the
rounds. The first models have bodies of one node, so that their time is what an iteration costs. Bars: 0.2 of onnxruntime's time for
a Loop of 1000 iterations with a body of one node, a geometric mean of 0.75 for the others.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

import sardonyx
from sardonyx.formats.onnx import to_bytes
from sardonyx.ir.text import parse_model

CALLS_MS = 10.0
"""How long one measurement takes at least."""

ADD = "b = Add(a, w)"
ONE = {
    "1000 iterations": "graph g(x: float[4], w: float[4]) -> (y: float[4]) { n: int64[] = 1000 go: bool[] = 1 y = LOOP }",
    "1000, as an input says": "graph g(x: float[4], w: float[4], n: int64[]) -> (y: float[4]) { go: bool[] = 1 y = LOOP }",
    "1000 with scan output": "graph g(x: float[4], w: float[4]) -> (y: float[4], s: float[1000, 4])"
    " { n: int64[] = 1000 go: bool[] = 1 y, s = LOOP_SCAN }",
    "1000 with scan output, input": "graph g(x: float[4], w: float[4], n: int64[]) -> (y: float[4], s: float[t, 4])"
    " { go: bool[] = 1 y, s = LOOP_SCAN }",
    "1000 of 4096 floats": "graph g(x: float[4096], w: float[4096]) -> (y: float[4096])"
    " { n: int64[] = 1000 go: bool[] = 1 y = LOOP_WIDE }",
    "Scan of 1000 slices": "graph g(x: float[4], w: float[1000, 4]) -> (y: float[4], s: float[1000, 4]) { y, s = SCAN }",
}
BODIES = {
    "LOOP_SCAN": "Loop(n, go, x) {body = graph b(i: int64[], c: bool[], a: float[4]) -> (c, b: float[4], b) { ADD } }",
    "LOOP_WIDE": "Loop(n, go, x) {body = graph b(i: int64[], c: bool[], a: float[4096]) -> (c, b: float[4096]) { ADD } }",
    "LOOP": "Loop(n, go, x) {body = graph b(i: int64[], c: bool[], a: float[4]) -> (c, b: float[4]) { ADD } }",
    "SCAN": "Scan(x, w) {num_scan_inputs = 1,"
    " body = graph b(a: float[4], r: float[4]) -> (b: float[4], s: float[4]) { b = Add(a, r) s = Identity(b) } }",
    "ADD": ADD,
}
CELL = """e = Concat(x, h) {axis = 1} z0 = MatMul(e, wz) z = Sigmoid(z0) c0 = MatMul(e, wc) c = Tanh(c0)
    o = Sub(one, z) p = Mul(z, h) q = Mul(o, c) k = Add(p, q)"""
WEIGHTS = """u: float[128, 64] = ... 1 v: float[128, 64] = ... 2 small: float[] = 0.05 one: float[] = 1.0
        wz = Mul(u, small) wc = Mul(v, small)"""
OTHERS = {
    "recurrent Scan": f"""graph g(h0: float[B, 64], xs: float[T, B, 64]) -> (y: float[B, 64], s: float[T, B, 64]) {{ {WEIGHTS}
        y, s = Scan(h0, xs) {{num_scan_inputs = 1,
            body = graph b(h: float[B, 64], x: float[B, 64]) -> (k: float[B, 64], j: float[B, 64]) {{
                {CELL} j = Identity(k) }} }} }}""",
    "Loop until a condition": f"""graph g(h0: float[B, 64], x: float[B, 64], n: int64[]) -> (y: float[B, 64], s: float[t, B, 64]) {{
        {WEIGHTS} go: bool[] = 1 most: float[] = 100.0
        y, s = Loop(n, go, h0) {{body = graph b(i: int64[], d: bool[], h: float[B, 64]) -> (g: bool[], k: float[B, 64], k) {{
            {CELL} m = ReduceMax(k) {{keepdims = 0}} g = Less(m, most) }} }} }}""",
    "If in a Loop": """graph g(x: float[16, 64]) -> (y: float[16, 64]) { n: int64[] = 50 go: bool[] = 1 v: float[64, 64] = ... 1
        small: float[] = 0.05 w = Mul(v, small)
        y = Loop(n, go, x) {body = graph b(i: int64[], d: bool[], a: float[16, 64]) -> (d, r: float[16, 64]) {
            two: int64[] = 2 zero: int64[] = 0 m = Mod(i, two) f = Equal(m, zero)
            r = If(f) {then_branch = graph t() -> (v: float[16, 64]) { p = MatMul(a, w) v = Tanh(p) },
                       else_branch = graph e() -> (v: float[16, 64]) { v = Add(a, x) } } } } }""",
    "If": """graph g(x: float[16, 64], c: bool[]) -> (y: float[16, 64]) { w: float[64, 64] = ... 1
        y = If(c) {then_branch = graph t() -> (v: float[16, 64]) { p = MatMul(x, w) v = Tanh(p) },
                   else_branch = graph e() -> (v: float[16, 64]) { v = Neg(x) } } }""",
}
FEEDS: Mapping[str, Any] = {"n": np.array(1000), "c": np.array(True)}
SIZES = {"B": 2, "T": 30}


def model(text: str) -> bytes:
    """A model of a graph in text form."""
    for name, body in BODIES.items():
        text = text.replace(name, body)
    return to_bytes(parse_model(f"ir_version 8\nopset 17\n{text}"))


def feed_of(session: sardonyx.InferenceSession) -> dict[str, Any]:
    """What a model is run on."""
    rng = np.random.default_rng(0)
    found = {}
    for item in session.get_inputs():
        shape = [SIZES.get(dim, 1) if isinstance(dim, str) else dim for dim in item.shape]
        given = np.array(30) if item.name == "n" and "B" in str(session.get_inputs()[0].shape) else FEEDS.get(item.name)
        found[item.name] = rng.standard_normal(shape).astype(np.float32) * np.float32(0.1) if given is None else given
    return found


def microseconds(run: Callable[[], object], calls: int) -> float:
    """How long one of `calls` calls takes."""
    start = time.perf_counter()
    for _ in range(calls):
        run()
    return (time.perf_counter() - start) / calls * 1e6


def peer(content: bytes, threads: int) -> Any:
    """The session of onnxruntime; None where it is not installed."""
    try:
        import onnxruntime
    except ImportError:
        return None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def measured(text: str, rounds: int, threads: int) -> Iterator[float]:
    """The median time of a call of sardonyx, then of onnxruntime, whose results are compared."""
    content = model(text)
    options = sardonyx.SessionOptions()
    options.intra_op_num_threads = threads
    session = sardonyx.InferenceSession(content, options)
    feed, sessions = feed_of(session), [session]
    other = peer(content, threads)
    if other is not None:
        sessions.append(other)
        for found, wanted in zip(session.run(None, feed), other.run(None, feed), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4)
    for held in sessions:
        microseconds(lambda held=held: held.run(None, feed), 20)
    calls = [max(10, round(CALLS_MS * 1e3 / microseconds(lambda held=held: held.run(None, feed), 5))) for held in sessions]
    times: list[list[float]] = [[] for _ in sessions]
    for _ in range(rounds):
        for place, held in enumerate(sessions):
            times[place].append(microseconds(lambda held=held: held.run(None, feed), calls[place]))
    yield from map(statistics.median, times)


def main() -> None:
    """Print a line for each model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    for title, models in (("bodies of one node", ONE), ("others", OTHERS)):
        print(f"{title:>30}    sardonyx   onnxruntime   ratio")
        ratios = []
        for name, text in models.items():
            own, *others = measured(text, arguments.rounds, arguments.threads)
            ratios += [own / other for other in others]
            print(f"{name:>30} {own:8.1f} us" + "".join(f" {other:10.1f} us {own / other:7.3f}" for other in others), flush=True)
        if ratios:
            print(f"{'geometric mean':>30} {math.exp(statistics.fmean(map(math.log, ratios))):33.3f}")


if __name__ == "__main__":
    main()
