"""Embeddings of 8 bits that are summed and normalized."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.quantize.expand_quantized_embedding import (
    EXPAND_QUANTIZED_EMBEDDING,
    EXPAND_QUANTIZED_EMBEDDING_MASK,
)

OPSET = "21, com.microsoft 1"


def text(outputs="y, k", segments="g", kinds="t", mask="m", scale="s"):
    fed = "".join(f", {name}: int32[b, 7]" for name in (segments, mask) if name != "_")
    return f"""graph(i: int32[b, 7]{fed}) -> ({outputs}) {{ w: uint8[9, 8] = ... 1 p: uint8[12, 8] = ... 2 t: uint8[2, 8] = ... 3
        a: uint8[8] = ... 4 e: uint8[8] = ... 5 s: float[] = 0.02 z: uint8[] = 120 v: float[8] = ... 6
        {outputs} = com.microsoft.QEmbedLayerNormalization(i, {segments}, w, p, {kinds}, a, e, {mask}, s, s,
        {"_" if kinds == "_" else "s"}, {scale}, s, z, z, {"_" if kinds == "_" else "z"}, z, z) {{epsilon = 1e-6}} }}"""


@pytest.mark.parametrize(
    ("rule", "given"),
    [
        (EXPAND_QUANTIZED_EMBEDDING_MASK, {}),
        (EXPAND_QUANTIZED_EMBEDDING_MASK, {"mask": "_"}),
        (EXPAND_QUANTIZED_EMBEDDING_MASK, {"segments": "_", "kinds": "_"}),
    ],
)
def test_fires_with_the_same_numbers(rule, given):
    """With and without segments and mask."""
    model, fired = apply_rule(rule, text(**given), opset=OPSET, compare=False)
    assert fired == 1
    assert operators(model)[-1] == "EmbedLayerNormalization"
    assert operators(model).count("DequantizeLinear") == (4 if "kinds" in given else 5)


def test_a_node_without_its_mask_index():
    """Which the schema asks for, but nobody reads."""
    model, fired = apply_rule(EXPAND_QUANTIZED_EMBEDDING, text("y"), opset=OPSET, compare=False)
    assert fired == 1
    assert operators(model)[-1] == "EmbedLayerNormalization"


def test_declines():
    """Scales that are not one number."""
    assert "input 5 is not one number" in declines(EXPAND_QUANTIZED_EMBEDDING_MASK, text(scale="v"), opset=OPSET)
