"""Products of floats with stored integers."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.quantize.fuse_narrow_weights import FUSE_NARROW_WEIGHTS

OPSET = "21, com.microsoft 1"


def text(
    call="MatMul(a, d)", shape="300,240", scale="s: float[] = 0.02", zero="z: int8[] = 3", axis=1, kind="int8", more="", before=""
):
    fed = "q: uint8[5,300]" if before else "a: float[5,300]"
    return f"""graph({fed}) -> (y) {{ w: {kind}[{shape}] = ... 1 {scale} {zero} b: float[240] = ... 3 {before}
        d = DequantizeLinear(w, s{", z" if zero else ""}) {{axis = {axis}}} y = {call} {more} }}"""


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"zero": ""},
        {"kind": "uint8", "zero": "z: uint8[] = 130"},
        {"scale": "s: float[240] = ... 2", "zero": ""},
        {"scale": "s: float[240] = ... 2", "zero": "z: int8[240] = ... 4"},
        {"call": "Gemm(a, d, b)"},
        {"call": "Gemm(a, d)"},
        {"call": "Gemm(a, d, b) {transB = 1}", "shape": "240,300", "scale": "s: float[240] = ... 2", "zero": "", "axis": 0},
        {"kind": "int4", "zero": "z: int4[] = -3"},
        {"kind": "uint4", "zero": "z: uint4[] = 9"},
        {"kind": "uint4", "zero": ""},
        {"kind": "int4", "scale": "s: float[240] = ... 2", "zero": "z: int4[240] = ... 4"},
        {"call": "Gemm(a, d, b)", "kind": "int4", "scale": "s: float[10,240] = ... 2", "zero": "", "axis": "0, block_size = 32"},
        {
            "call": "Gemm(a, d, b) {transB = 1}",
            "shape": "240,300",
            "kind": "uint4",
            "scale": "s: float[240,19] = ... 2",
            "zero": "z: uint4[240,19] = ... 4",
            "axis": "1, block_size = 16",
        },
    ],
)
def test_fires_with_the_same_numbers(given):
    """One scale and one for each column, zero points, a bias, weights that lie transposed; a last block that is not full.

    The 300 products of a sum are added up in another order, which shows where they cancel.
    """
    model, fired = apply_rule(FUSE_NARROW_WEIGHTS, text(**given), opset=OPSET, rtol=1e-3)
    assert fired == 1
    assert operators(model) == ["MatMulNBits"]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"kind": "int16", "zero": "z: int16[] = 3"}, "no matrix of 4 or 8 bits"),
        ({"shape": "300,20"}, "there are 6000 weights"),
        ({"scale": "s: float[300] = ... 2", "zero": "", "axis": 0}, "along the axis of the sum"),
        ({"scale": "s: float[300,8] = ... 2", "zero": "", "axis": "1, block_size = 32"}, "along the columns by block"),
        ({"scale": "s: float[13,240] = ... 2", "zero": "", "axis": "0, block_size = 24"}, "blocks of 24"),
        ({"call": "Gemm(a, d) {alpha = 2.0}"}, "alpha or beta"),
        ({"more": "v = Neg(d)"}, "other users"),
        ({"before": "a = DequantizeLinear(q, s)"}, "a is dequantized"),
    ],
)
def test_declines(given, reason):
    """Each case that the rule leaves alone."""
    body = text(**given)
    assert reason in declines(FUSE_NARROW_WEIGHTS, body.replace("-> (y)", "-> (y, v)") if "more" in given else body, opset=OPSET)
