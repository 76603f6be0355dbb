"""BiasSoftmax as a sum and a Softmax."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.attention.expand_bias_softmax import EXPAND_BIAS_SOFTMAX

OPSET = "21, com.microsoft 1"


def text(bias, inner, axis=3, kind="float"):
    return f"""graph(x: {kind}[2, 3, 5, 5], b: {kind}[{bias}]) -> (y)
        {{ y = com.microsoft.BiasSoftmax(x, b) {{axis = {axis}, is_inner_broadcast = {inner}}} }}"""


@pytest.mark.parametrize(
    ("bias", "inner"),
    [
        ("2, 1, 1, 5", 1),
        ("2, 3, 1, 5", 1),
        ("2, 3, 5, 5", 1),
        ("5", 1),
        ("5", 0),
        ("2, 3, 5, 5", 0),
        ("5, 5", 0),
        ("1, 3, 5, 5", 0),
    ],
)
def test_fires_with_the_same_numbers(bias, inner):
    """Both ways to repeat."""
    model, fired = apply_rule(EXPAND_BIAS_SOFTMAX, text(bias, inner), opset=OPSET)
    assert fired == 1
    assert operators(model) == ["Add", "Softmax"]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (("2, 1, 1, 5", 0), "does not repeat"),
        (("5, 5", 1), "does not repeat"),
        (("3, 5, 5", 1), "does not repeat"),
        (("2, 1, 5, 5", 1, 2), "expected the last"),
        (("5", 1, 3, "float16"), "expected float"),
    ],
)
def test_declines(given, reason):
    """Rows that no sum repeats so, rows of several dimensions, other types."""
    assert reason in declines(EXPAND_BIAS_SOFTMAX, text(*given), opset=OPSET)
