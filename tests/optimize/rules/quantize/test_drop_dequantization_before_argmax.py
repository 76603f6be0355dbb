"""The largest element among integers."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.quantize.drop_dequantization_before_argmax import DROP_DEQUANTIZATION_BEFORE_ARGMAX


def text(call, kind="int8", scale="0.5"):
    return f"""graph(x: {kind}[4,9]) -> (y) {{ s: float[] = {scale} z: {kind}[] = 3
        a = DequantizeLinear(x, s, z) y = {call}(a) {{axis = 1, select_last_index = 1}} }}"""


@pytest.mark.parametrize("call", ["ArgMax", "ArgMin"])
def test_fires_with_the_same_places(call):
    """Equal numbers are equal integers."""
    model, fired = apply_rule(DROP_DEQUANTIZATION_BEFORE_ARGMAX, text(call))
    assert fired == 1
    assert operators(model) == [call]


@pytest.mark.parametrize(
    ("call", "given", "reason"),
    [
        ("ArgMax:12", {}, "opset 12"),
        ("ArgMax", {"scale": "-0.5"}, "above 0"),
        ("ArgMax", {"kind": "int16"}, "expected int8 or uint8"),
    ],
)
def test_declines(call, given, reason):
    """Old opsets, scales that turn the order round, other types."""
    assert reason in declines(DROP_DEQUANTIZATION_BEFORE_ARGMAX, text(call, **given))
