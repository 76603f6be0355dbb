"""Gates, distances, and masks of Dropout."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.elementwise.expand_gates import EXPAND_DISTANCES, EXPAND_DROPOUT_MASK, EXPAND_GATES


def text(call, kind="float"):
    return f"""opset 21, com.microsoft 1
        graph(x: {kind}[n, 3, 5], z: {kind}[n, 3, 5], g: {kind}[n, 3, 1], b: {kind}[5]) -> (y) {{ y = com.microsoft.{call} }}"""


@pytest.mark.parametrize(
    ("call", "made"),
    [
        ("GatedAdd(x, z, g)", ["Mul", "Add"]),
        ("BiasAdd(x, b, z)", ["Add", "Add"]),
        ("ScaledSiLU(x)", ["Swish"]),
        ("ScaledSiLU(x) {alpha = 0.5}", ["Mul", "Swish"]),
    ],
)
def test_gates(call, made):
    """Sums and products."""
    model, fired = apply_rule(EXPAND_GATES, text(call))
    assert (fired, operators(model)) == (1, made)


def test_declines_gates():
    """Half types, which round each product; shapes that do not fit; a scale that is an input."""
    assert "not of float" in declines(EXPAND_GATES, text("GatedAdd(x, z, g)", "float16"))
    assert "not known to fit" in declines(EXPAND_GATES, text("GatedAdd(x, z, z)"))
    assert "its scale" in declines(EXPAND_GATES, text("ScaledSiLU(x, b)"))


@pytest.mark.parametrize("metric", ["", '{metric = "euclidean"}', '{metric = "sqeuclidean"}'])
def test_distances(metric):
    """A product of matrices, and its root."""
    model = f"opset 21, com.microsoft 1 graph(a: float[n, 7], b: float[m, 7]) -> (y) {{ y = com.microsoft.CDist(a, b) {metric} }}"
    found, fired = apply_rule(EXPAND_DISTANCES, model, symbols={"n": 5, "m": 9})
    assert fired == 1
    assert ("Sqrt" in operators(found)) == ('"euclidean' in metric)


def test_declines_distances():
    """Of rows that may differ in length, or of double."""
    text = "opset 21, com.microsoft 1 graph(a: {0}[n, k], b: {0}[m, l]) -> (y) {{ y = com.microsoft.CDist(a, b) }}"
    assert "as long is not known" in declines(EXPAND_DISTANCES, text.format("float"))
    assert "matrices of float" in declines(EXPAND_DISTANCES, text.format("double"))


def test_dropout():
    """What stays is all of it."""
    model = "opset 21 graph(x: float[n, 3]) -> (y, m) { y, m = Dropout(x) }"
    found, fired = apply_rule(EXPAND_DROPOUT_MASK, model)
    assert fired == 1
    assert "Dropout" not in operators(found)


def test_declines_dropout():
    """That may train, or whose mask is of another type."""
    assert "may train" in declines(
        EXPAND_DROPOUT_MASK, "graph(x: float[n], r: float[], t: bool[]) -> (y, m) { y, m = Dropout(x, r, t) }"
    )
    assert "the type" in declines(EXPAND_DROPOUT_MASK, "opset 7 graph(x: float[n]) -> (y, m) { y, m = Dropout(x) }", opset="7")
