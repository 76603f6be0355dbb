"""Quantized tables of embeddings."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.quantize.gather_before_dequantization import GATHER_BEFORE_DEQUANTIZATION


def text(table="w: int8[4,2] = [[1, 2], [3, 4], [5, 6], [7, 8]]", fed="", scale="float[] = 0.5", axis=0, zero="int8"):
    return f"""graph(i: int64[3]{fed}) -> (y) {{ {table} s: {scale} z: {zero}[] = 1 c: int64[] = 1 k: int64[3] = [0, 1, 1]
        d = DequantizeLinear(w, s{", z" if "[]" in scale else ""}) y = Gather(d, k) {{axis = {axis}}} }}"""


@pytest.mark.parametrize("axis", [0, 1])
def test_fires_with_the_same_numbers(axis):
    """Only what is found is dequantized."""
    model, fired = apply_rule(GATHER_BEFORE_DEQUANTIZATION, text(axis=axis))
    assert fired == 1
    assert operators(model) == ["Gather", "DequantizeLinear"]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"scale": "float[2] = [0.5, 0.25]"}, "no single scale"),
        ({"table": "", "fed": ", w: int8[4,2]"}, "no match"),
        ({"table": "w: int4[4,2] = [[1, 2], [3, 4], [5, 6], [7, -8]]", "zero": "int4"}, "Gather takes no tables of int4"),
    ],
)
def test_declines(given, reason):
    """Scales by axis, tables that are fed, and tables of types that Gather does not take."""
    assert reason in declines(GATHER_BEFORE_DEQUANTIZATION, text(**given))
