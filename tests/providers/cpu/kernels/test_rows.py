"""Custom operators whose expressions fold rows, compiled."""

from __future__ import annotations

import numpy as np
import pytest
from support.cpu_run import LEVELS
from support.custom_operators import mine_session

import sardonyx
from sardonyx import expr
from sardonyx.codegen.target import host_target
from sardonyx.dtypes import Array
from sardonyx.providers.cpu.provider import NAME, CpuProvider


@sardonyx.expression_op("mine", "Norm")
def norm(
    x: expr.ElementExpr, scale: expr.ElementExpr, bias: expr.ElementExpr | None = None, *, epsilon: float = 1e-5
) -> expr.ElementExpr:
    """Normalize by mean and variance."""
    away = x - expr.row_mean(x)
    made = away * (1 / expr.sqrt(expr.row_mean(away * away) + epsilon)) * scale
    return made if bias is None else made + bias


def _exact(x: Array, scale: Array, bias: Array | float) -> Array:
    away = x.astype(np.float64) - x.astype(np.float64).mean(-1, keepdims=True)
    return np.asarray(away / np.sqrt((away * away).mean(-1, keepdims=True) + 1e-5) * scale + bias)


def _draw(*shape: int) -> Array:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


GRAPH = """(x: float[a, b, n], s: float[n], r: float[a, 1, 1]) -> (y: float[a, b, n]) {
    t = mine.Norm(x, s, s)
    u = Mul(t, r)
    y = Neg(u)
}"""


@pytest.mark.parametrize("isa", LEVELS)
def test_rows_of_any_length_and_what_follows(isa: str) -> None:
    """One session, several shapes, with element-wise nodes that read one number for several rows."""
    session = mine_session(GRAPH, norm, providers=[CpuProvider(host_target(isa), 2)])
    for a, b, n in ((2, 3, 4), (1, 1, 1), (3, 5, 17), (2, 2, 1500), (0, 2, 3), (2, 3, 0)):
        x, s, r = _draw(a, b, n), _draw(n), _draw(a, 1, 1)
        found = session.run(None, {"x": x, "s": s, "r": r})[0]
        expected = -_exact(x, s, s) * r if n else np.zeros((a, b, 0))
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_it_is_one_step_with_what_follows() -> None:
    """As a built-in normalization is."""
    session = mine_session(GRAPH, norm, providers=[NAME])
    assert {item.provider for item in session.explain()} == {NAME}


def test_an_input_of_the_shape_may_be_any_and_another_left_out() -> None:
    """The one that has the shape of the output need not be the first."""

    @sardonyx.expression_op("mine", "Share")
    def share(bias: expr.ElementExpr, x: expr.ElementExpr, rest: expr.ElementExpr | None = None) -> expr.ElementExpr:
        assert rest is None
        return (x + bias) / expr.row_sum(x)

    session = mine_session("(b: float[], x: float[2, 3]) -> (y: float[2, 3]) {\ny = mine.Share(b, x)\n}", share, providers=[NAME])
    x = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    found = session.run(None, {"x": x, "b": np.array(1, np.float32)})[0]
    np.testing.assert_allclose(found, (x + 1) / x.sum(1, keepdims=True), rtol=1e-6)


@pytest.mark.parametrize(
    ("inputs", "reason"),
    [
        ("x: float[2, 1], s: float[3]", "that a float input has the shape"),
        ("x: double[2, 3], s: double[3]", "an expression along rows that makes tensor"),
    ],
)
def test_other_shapes_and_types_are_declined_with_a_reason(inputs: str, reason: str) -> None:
    """The reference provider runs them."""
    kind = "double" if "double" in inputs else "float"
    session = mine_session(f"({inputs}) -> (y: {kind}[2, 3]) {{\ny = mine.Norm(x, s)\n}}", norm)
    (placement,) = session.explain()
    assert placement.provider != NAME
    assert reason in placement.declined[NAME]
