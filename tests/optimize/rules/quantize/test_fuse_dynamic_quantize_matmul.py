"""A matrix that is quantized by its own range."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.quantize.fuse_dynamic_quantize_matmul import FUSE_DYNAMIC_QUANTIZE_MATMUL


def text(extra="", outputs="y", more=""):
    return f"""graph(a: float[2,5]) -> ({outputs}) {{ b: int8[5,3] = ... 7 s: float[] = 0.5 z: int8[] = 1 c: float[3] = [1, 2, 3]
        q, t, v = DynamicQuantizeLinear(a) y = com.microsoft.MatMulIntegerToFloat(q, b, t, s, v{extra}) {more} }}"""


@pytest.mark.parametrize(("extra", "count"), [("", 3), (", z", 4), (", z, c", 5), (", _, c", 5)])
def test_fires_with_the_same_numbers(extra, count):
    """With and without zero point and bias."""
    model, fired = apply_rule(FUSE_DYNAMIC_QUANTIZE_MATMUL, text(extra), opset="21, com.microsoft 1")
    assert fired == 1
    assert operators(model) == ["DynamicQuantizeMatMul"]
    assert len(next(iter(model.graph)).inputs) == count


def test_declines_a_matrix_that_others_read():
    """It would be quantized twice."""
    assert declines(FUSE_DYNAMIC_QUANTIZE_MATMUL, text("", "y, w", "w = Identity(q)"), opset="21, com.microsoft 1") == "no match"
