"""Attention that projects integers."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.quantize.expand_quantized_attention import EXPAND_QUANTIZED_ATTENTION

OPSET = "21, com.microsoft 1"


def text(mask="m: int32[b, s]", further="m", attributes="", columns=48, kind="float"):
    fed = f", {mask}" if mask else ""
    return f"""graph(x: uint8[b, s, 16]{fed}) -> (y) {{ w: int8[16, {columns}] = ... 1 c: {kind}[{columns}] = ... 2 xs: float[] = 0.02
        ws: float[] = 0.01 xz: uint8[] = 120 wz: int8[] = 3
        y = com.microsoft.QAttention(x, w, c, xs, ws, {further}, xz, wz) {{num_heads = 4{attributes}}} }}"""


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"mask": "m: int32[b]"},
        {"mask": "", "further": "_"},
        {"attributes": ", unidirectional = 1, scale = 0.3"},
        {"attributes": ", mask_filter_value = -100.0"},
    ],
)
def test_fires_with_the_same_numbers(given):
    """Masks of keys, counts of keys, none; causal and scaled."""
    model, fired = apply_rule(EXPAND_QUANTIZED_ATTENTION, text(**given), opset=OPSET)
    assert fired == 1
    assert operators(model)[-1] == "MultiHeadAttention"
    assert "MatMulIntegerToFloat" in operators(model)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"mask": "m: int32[b, s, s]"}, "the mask is"),
        ({"columns": 50}, "50 columns"),
        ({"attributes": ", do_rotary = 1"}, "no match"),
    ],
)
def test_declines(given, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(EXPAND_QUANTIZED_ATTENTION, text(**given), opset=OPSET)


def test_former_keys_are_left_alone():
    """They come in one tensor with the values."""
    with_past = text("m: int32[b, s], p: float[2, b, 4, 5, 4]").replace("xz, wz)", "xz, wz, p)")
    assert "former keys" in declines(EXPAND_QUANTIZED_ATTENTION, with_past, opset=OPSET)
