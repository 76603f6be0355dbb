"""Softmax of a sum."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.attention.fuse_bias_softmax import FUSE_BIAS_SOFTMAX

OPSET = "21, com.microsoft 1"


def text(x="2, 3, 5, 5", bias="2, 1, 1, 5", axis="{axis = -1}", total="Add(x, b)", kind="float", result="y"):
    return f"graph(x: {kind}[{x}], b: {kind}[{bias}]) -> ({result}) {{ a = {total} y = Softmax(a) {axis} }}"


@pytest.mark.parametrize(
    ("given", "inner"),
    [
        ({}, 1),
        ({"bias": "2, 3, 1, 5"}, 1),
        ({"bias": "2, 3, 5, 5"}, 1),
        ({"bias": "1, 1, 1, 5"}, 1),
        ({"bias": "5"}, 1),
        ({"bias": "1, 1, 5, 5"}, 0),
        ({"bias": "5, 5"}, 0),
        ({"bias": "3, 5, 5"}, 0),
        ({"total": "Add(b, x)"}, 1),
        ({"kind": "float16"}, 1),
        ({"x": "n, 3, s, 4", "bias": "n, 1, 1, 4", "axis": "{axis = 3}"}, 1),
        ({"x": "n, s", "bias": "s", "axis": ""}, 1),
    ],
)
def test_fires_with_the_same_numbers(given, inner):
    """A bias for each row, and all ways in which it may repeat; the sum either way round."""
    model, fired = apply_rule(FUSE_BIAS_SOFTMAX, text(**given), opset=OPSET, rtol=1e-3 if "kind" in given else 1e-5)
    assert fired == 1
    assert operators(model) == ["BiasSoftmax"]
    assert next(iter(model.graph)).get("is_inner_broadcast") == inner


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"axis": "{axis = 1}"}, "expected the last"),
        ({"bias": "1, 3, 1, 5"}, "do not simply repeat"),
        ({"bias": "2, 1, 5, 5"}, "do not simply repeat"),
        ({"bias": "1"}, "do not simply repeat"),
        ({"bias": ""}, "the shapes are"),
        ({"x": "1, 5", "bias": "2, 5"}, None),
        ({"result": "y, a"}, "no match"),
        ({"kind": "double"}, "expected float"),
        ({"x": "n, 5", "bias": "m, 5"}, "the shapes are"),
    ],
)
def test_declines(given, reason):
    """Other axes, biases that repeat in other ways, other users, other types, unknown shapes."""
    if reason is None:
        model, _ = apply_rule(FUSE_BIAS_SOFTMAX, text(**given), opset=OPSET)
        assert [value.name for value in next(iter(model.graph)).inputs] == ["b", "x"]
    else:
        assert reason in declines(FUSE_BIAS_SOFTMAX, text(**given), opset=OPSET)
