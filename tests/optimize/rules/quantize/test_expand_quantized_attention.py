"""Attention that projects integers."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.quantize.expand_quantized_attention import EXPAND_QUANTIZED_ATTENTION, EXPAND_QUANTIZED_ATTENTION_CACHE

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


def cached(mask="m: int32[b, t]", further="m", attributes="", past="2, b, 4, p, 4", given=", p"):
    fed = "".join(f", {item}" for item in (mask, f"p: float[{past}]") if item)
    return f"""graph(x: uint8[b, s, 16]{fed}) -> (y, n) {{ w: int8[16, 48] = ... 1 c: float[48] = ... 2 xs: float[] = 0.02
        ws: float[] = 0.01 xz: uint8[] = 120 wz: int8[] = 3
        y, n = com.microsoft.QAttention(x, w, c, xs, ws, {further}, xz, wz{given}) {{num_heads = 4{attributes}}} }}"""


@pytest.mark.parametrize("attributes", ["", ", unidirectional = 1", ", scale = 0.3", ", mask_filter_value = -100.0"])
@pytest.mark.parametrize("options", [{}, {"mask": "", "further": "_"}])
@pytest.mark.parametrize("before", [0, 3])
def test_former_keys_fire_with_the_same_numbers(attributes, options, before):
    """Also where there are none yet; the present holds those too."""
    symbols = {"b": 2, "s": 4, "p": before, "t": 4 + before}
    model, fired = apply_rule(
        EXPAND_QUANTIZED_ATTENTION_CACHE, cached(attributes=attributes, **options), opset=OPSET, symbols=symbols
    )
    assert fired == 1
    assert "Attention" in operators(model)


def test_a_present_without_a_past_has_the_keys_of_this_run():
    """The past may be left out."""
    text = cached(mask="", further="_", given="")
    assert apply_rule(EXPAND_QUANTIZED_ATTENTION_CACHE, text, opset=OPSET)[1] == 1


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"past": "2, b, 2, p, 8"}, "the past is"),
        ({"mask": "m: int32[b]"}, "the mask is"),
        ({"attributes": ", do_rotary = 1"}, "no match"),
        ({"attributes": ", past_present_share_buffer = 1"}, "no match"),
    ],
)
def test_former_keys_decline(options, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(EXPAND_QUANTIZED_ATTENTION_CACHE, cached(**options), opset=OPSET)
