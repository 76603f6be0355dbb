"""Operators of com.microsoft that move and make tensors."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.movement.expand_microsoft_movement import EXPAND_MICROSOFT_MOVEMENT, EXPAND_MICROSOFT_UNIQUE


def text(call, results="y", constants=""):
    return f"""opset 21, com.microsoft 1
        graph(x: float[3, 4], i: int64[2, 1], j: int32[2, 1], p: int64[1, 4], v: float[1], s: float[], a: int32[]) -> ({results}) {{
            {constants} {results} = com.microsoft.{call} }}"""


@pytest.mark.parametrize(
    ("call", "made"),
    [
        ("Trilu(x)", ["Trilu"]),
        ("Trilu(x) {upper = 0}", ["Trilu"]),
        ("ExpandDims(x, c)", ["Unsqueeze"]),
    ],
)
def test_fires_with_the_same_numbers(call, made):
    """Each has its operator in ai.onnx."""
    model, fired = apply_rule(EXPAND_MICROSOFT_MOVEMENT, text(call, constants="c: int32[] = -1"))
    assert (fired, operators(model)) == (1, made)
    assert all(not node.domain for node in model.graph)


@pytest.mark.parametrize(
    ("call", "made"),
    [
        ("GatherND(x, i)", ["GatherND"]),
        ("GatherND(x, j)", ["Cast", "GatherND"]),
        ("Range(s, v)", ["Reshape", "Range"]),
        ("Range(s, s, v)", ["Reshape", "Range"]),
        ("Pad(x, p)", ["Reshape", "Pad"]),
        ('Pad(x, p, v) {mode = "constant"}', ["Reshape", "Reshape", "Pad"]),
    ],
)
def test_numbers_become_scalars(call, made):
    """And places int64, where they are not; drawn ones may be outside of the data."""
    model, fired = apply_rule(EXPAND_MICROSOFT_MOVEMENT, text(call), compare=False)
    assert (fired, operators(model)) == (1, made)


def test_declines_an_axis_that_the_run_shows():
    """Unsqueeze must have one to have a known rank."""
    assert "no constant" in declines(EXPAND_MICROSOFT_MOVEMENT, text("ExpandDims(x, a)"))


def test_declines_numbers_of_any_size():
    """The reference kernel says what is wrong with them."""
    assert "more than one element" in declines(EXPAND_MICROSOFT_MOVEMENT, text("Range(x, v)"))


def test_unique():
    """In the order of occurrence."""
    model = "opset 21, com.microsoft 1 graph(x: float[n]) -> (y, z, w) { y, z, w = com.microsoft.Unique(x) }"
    found, fired = apply_rule(EXPAND_MICROSOFT_UNIQUE, model)
    assert (fired, operators(found)) == (1, ["Unique"])
    matrix = "opset 21, com.microsoft 1 graph(x: float[n, 2]) -> (y, z, w) { y, z, w = com.microsoft.Unique(x) }"
    assert "one dimension" in declines(EXPAND_MICROSOFT_UNIQUE, matrix)
