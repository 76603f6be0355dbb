"""Convolution of integers."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.quantize.fuse_quantized_conv import FUSE_QUANTIZED_CONV


def text(bias="n", weight_axis=0, b_scale="[0.005, 0.0025]", kind="uint8", outputs="y", more=""):
    b = {"y": "bd = DequantizeLinear(b, bs, bz) {axis = 0}", "n": "", "f": "bd: float[2] = [0.5, 1.0]"}[bias]
    given = "" if bias == "n" else ", bd"
    scales = "0.05" if weight_axis is None else "[0.05, 0.025]"
    shape = "" if weight_axis is None else "2"
    zeros = "0" if weight_axis is None else "[0, 0]"
    return f"""graph(x: uint8[1,3,6,6]) -> ({outputs}) {{
        xs: float[] = 0.1 xz: uint8[] = 3 w: int8[2,3,3,3] = ... 7 ws: float[{shape}] = {scales} wz: int8[{shape}] = {zeros}
        b: int32[2] = [100, -400] bs: float[2] = {b_scale} bz: int32[2] = [0, 0] ys: float[] = 0.2 yz: {kind}[] = 100 {b}
        xd = DequantizeLinear(x, xs, xz) wd = DequantizeLinear(w, ws, wz) {{axis = {weight_axis or 0}}}
        c = Conv(xd, wd{given}) {{pads = [1, 1, 1, 1]}} q = QuantizeLinear(c, ys, yz) y = DequantizeLinear(q, ys, yz) {more} }}"""


@pytest.mark.parametrize("given", [{}, {"bias": "y"}, {"weight_axis": None}, {"kind": "int8"}])
def test_fires_and_agrees_within_a_step(given):
    """With and without bias, scales for all or by output channel."""
    model, fired = apply_rule(FUSE_QUANTIZED_CONV, text(**given), rtol=0.04)
    assert fired == 1
    assert operators(model) == ["QLinearConv", "DequantizeLinear"]
    assert len(next(iter(model.graph)).inputs) == (9 if given.get("bias") else 8)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"weight_axis": 1}, "scales along axis 1"),
        ({"bias": "y", "b_scale": "[0.1, 0.1]"}, "not in steps"),
        ({"bias": "f"}, "no match"),
        ({"kind": "uint16"}, "y is uint16"),
        ({"outputs": "y, v", "more": "v = Neg(c)"}, "no match"),
    ],
)
def test_declines(given, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(FUSE_QUANTIZED_CONV, text(**given))


def test_shared_dequantization_stays_for_the_others():
    """What else reads DQ(x) still can."""
    model, fired = apply_rule(FUSE_QUANTIZED_CONV, text(outputs="y, v", more="v = Neg(xd)"), rtol=0.04)
    assert fired == 1
    assert operators(model).count("DequantizeLinear") == 2
