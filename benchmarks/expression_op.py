"""A GELU written as an expression of one's own against the built-in one, alone and after a product.

    taskset -c 0 python benchmarks/expression_op.py [--rows]

One thread; medians over rounds in which the two take turns, of processor time, as others may use the machine. Prints the times and
their ratios; fails where one's own takes over 5 % longer. With --rows a softmax and an RMSNormalization as well, which have no bar.
"""

from __future__ import annotations

import math
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np

import sardonyx
from sardonyx import expr
from sardonyx.formats.onnx import to_bytes
from sardonyx.ir.text import parse_model

BAR = 1.05
ROUNDS = 41
ROUND_S = 0.05

GRAPHS = {
    "alone": "(x: float[1024, 1024]) -> (y: float[1024, 1024]) {\ny = GELU(x)\n}",
    "between an Add and a Mul": (
        "(x: float[1024, 1024]) -> (y: float[1024, 1024]) {\nb: float[1024] = ... 1\na = Add(x, b)\ng = GELU(a)\ny = Mul(g, b)\n}"
    ),
    "in the store of a MatMul": (
        "(x: float[1024, 1024]) -> (y: float[1024, 128]) {\nw: float[1024, 128] = ... 2\na = MatMul(x, w)\ny = GELU(a)\n}"
    ),
}


@sardonyx.expression_op("mine", "Gelu")
def my_gelu(x: expr.ElementExpr) -> expr.ElementExpr:
    """Multiply x by the normal distribution's probability of less than x."""
    return 0.5 * x * (1 + expr.erf(x * math.sqrt(0.5)))


@sardonyx.expression_op("mine", "Softmax")
def my_softmax(x: expr.ElementExpr) -> expr.ElementExpr:
    """Normalize exponentials along the last axis."""
    e = expr.exp(x - expr.row_max(x))
    return e * (1 / expr.row_sum(e))


@sardonyx.expression_op("mine", "RMSNormalization")
def my_root_mean_norm(x: expr.ElementExpr, scale: expr.ElementExpr, *, epsilon: float = 1e-5) -> expr.ElementExpr:
    """Divide by the root of the mean square along the last axis."""
    return x * (1 / expr.sqrt(expr.row_mean(x * x) + epsilon)) * scale


ROWS = {
    "Softmax": "(x: float[1024, 1024]) -> (y: float[1024, 1024]) {\ny = GELU(x)\n}",
    "RMSNormalization": "(x: float[1024, 1024]) -> (y: float[1024, 1024]) {\ns: float[1024] = ... 3\ny = GELU(x, s)\n}",
}
"""Operator -> a graph in which it stands in the place of GELU."""


def session(graph: str, operator: str) -> sardonyx.InferenceSession:
    """A session of `graph` in which `operator` stands for GELU."""
    options = sardonyx.SessionOptions()
    options.intra_op_num_threads = 1
    for own in (my_gelu, my_softmax, my_root_mean_norm):
        options.add_operator(own)
    text = f"ir_version 10\nopset 23, mine 1\ngraph main{graph.replace('GELU', operator)}"
    return sardonyx.InferenceSession(to_bytes(parse_model(text)), options)


def seconds(run: Callable[[], object]) -> float:
    """Processor time of one call, over as many as a round holds."""
    count, start = 0, time.process_time()
    while (spent := time.process_time() - start) < ROUND_S:
        run()
        count += 1
    return spent / count


def ratio(name: str, graph: str, operator: str = "Gelu") -> float:
    """Time one's own operator and ours in `graph`; print both and return their ratio."""
    feed = {"x": np.random.default_rng(0).standard_normal((1024, 1024), np.float32)}
    own, ours = session(graph, f"mine.{operator}"), session(graph, operator)
    np.testing.assert_allclose(own.run(None, feed)[0], ours.run(None, feed)[0], rtol=2e-5, atol=2e-5)
    times = [(seconds(lambda: own.run(None, feed)), seconds(lambda: ours.run(None, feed))) for _ in range(ROUNDS)]
    found = statistics.median(mine / theirs for mine, theirs in times)
    mine_ms, theirs_ms = (1e3 * statistics.median(column) for column in zip(*times, strict=True))
    print(f"{name:26} own {mine_ms:7.3f} ms   built-in {theirs_ms:7.3f} ms   ratio {found:.3f}")
    return found


def main() -> int:
    """Print every ratio; 1 where one is above the bar."""
    worst = max(ratio(name, graph) for name, graph in GRAPHS.items())
    print(f"worst ratio {worst:.3f}, bar {BAR}")
    if "--rows" in sys.argv:
        for operator, graph in ROWS.items():
            ratio(operator, graph, operator)
    return int(worst > BAR)


if __name__ == "__main__":
    sys.exit(main())
