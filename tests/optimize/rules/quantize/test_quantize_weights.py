"""Float weights between quantized activations."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.quantize.quantize_weights import QUANTIZE_BIAS, QUANTIZE_WEIGHTS

CALLS = {"Conv": ("1,3,5,5", "2,3,3,3"), "ConvTranspose": ("1,3,5,5", "3,2,3,3"), "Gemm": ("4,6", "6,2")}


def text(call="Conv", stored="float", kind="uint8", attributes="", scale="0.1", step="0.1", outputs="y", more="", fed=""):
    shape, weights = CALLS[call]
    w = (
        f"f: float[{weights}] = ... 7"
        if stored == "float"
        else f"""w: int8[{weights}] = ... 7 ws: float[] = 0.05 wz: int8[] = 0
        f = DequantizeLinear(w, ws, wz)"""
    )
    bias = "" if fed else "b: float[2] = [0.5, -1.0]"
    return f"""graph(x: uint8[{shape}]{fed}) -> ({outputs}) {{ xs: float[] = {scale} xz: uint8[] = 3
        {w} {bias} ys: float[] = {step}
        yz: {kind}[] = 128 xd = DequantizeLinear(x, xs, xz) c = {call}(xd, f, b) {attributes} q = QuantizeLinear(c, ys, yz)
        y = DequantizeLinear(q, ys, yz) {more} }}"""


@pytest.mark.parametrize("call", list(CALLS))
def test_weights_become_integers(call):
    """Symmetric, with one scale; numbers agree to the precision of 8 bits."""
    model, fired = apply_rule(QUANTIZE_WEIGHTS, text(call, step="1.0"), rtol=0.05)
    assert fired == 1
    assert operators(model).count("DequantizeLinear") == 3


@pytest.mark.parametrize("call", list(CALLS))
def test_biases_become_integers(call):
    """In steps of the product's scales, so that next to nothing is lost."""
    model, fired = apply_rule(QUANTIZE_BIAS, text(call, "int8"), rtol=0.02)
    assert fired == 1
    assert operators(model).count("DequantizeLinear") == 4


@pytest.mark.parametrize(
    ("rule", "given", "reason"),
    [
        (QUANTIZE_WEIGHTS, {"stored": "int8"}, "no match"),
        (QUANTIZE_WEIGHTS, {"kind": "int16"}, "y is int16"),
        (QUANTIZE_WEIGHTS, {"outputs": "y, v", "more": "v = Neg(f)"}, "have other users"),
        (QUANTIZE_WEIGHTS, {"fed": ", b: float[2]"}, "the bias is no constant"),
        (QUANTIZE_BIAS, {"stored": "float"}, "no match"),
        (QUANTIZE_BIAS, {"stored": "int8", "outputs": "y, v", "more": "v = Neg(b)"}, "has other users"),
        (QUANTIZE_BIAS, {"stored": "int8", "call": "Gemm", "attributes": "{beta = 2.0}"}, "the bias is scaled"),
        (QUANTIZE_BIAS, {"stored": "int8", "scale": "1e-20"}, "too many steps"),
    ],
)
def test_declines(rule, given, reason):
    """Each case that the rules leave alone."""
    assert reason in declines(rule, text(**given))
