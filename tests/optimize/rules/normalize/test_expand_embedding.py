"""Embeddings that are summed and normalized, as their parts."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.dtypes import DataType
from sardonyx.optimize.rules.normalize.expand_embedding import EXPAND_EMBEDDING, EXPAND_EMBEDDING_MASK

OPSET = "17, com.microsoft 1"


def text(inputs, outputs="y", kind="float", ids="n, 3"):
    return f"""graph(i: int32[{ids}], k: int32[{ids}], o: int32[{ids}], m: int32[{ids}]) -> ({outputs}) {{ w: {kind}[9, 4] = ... 1
        p: {kind}[9, 4] = ... 2 t: {kind}[9, 4] = ... 3 g: {kind}[4] = ... 4 b: {kind}[4] = ... 5
        {outputs} = com.microsoft.EmbedLayerNormalization({inputs}) {{epsilon = 0.01}} }}"""


@pytest.mark.parametrize("opset", ["11", "17", "21"])
@pytest.mark.parametrize(
    "inputs",
    [
        "i, k, w, p, t, g, b",
        "i, _, w, p, _, g, b",
        "i, k, w, p, t, g, b, _, o",
        "i, k, w, p, t, g, b, m",
        "i, k, w, p, _, g, b",
    ],
)
def test_fires_with_the_same_numbers(inputs, opset):
    """With segments and without, with positions of each id and counted ones."""
    model, fired = apply_rule(EXPAND_EMBEDDING, text(inputs), opset=f"{opset}, com.microsoft 1")
    assert fired == 1
    assert operators(model)[-1] == "LayerNormalization"


@pytest.mark.parametrize("inputs", ["i, k, w, p, t, g, b", "i, _, w, p, _, g, b, _, o"])
@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_half_types_are_summed_in_float32(inputs, kind):
    """What is gathered is cast, not the tables; the result is rounded once."""
    model, fired = apply_rule(EXPAND_EMBEDDING, text(inputs, kind=kind), opset=OPSET)
    assert fired == 1
    assert operators(model)[-2:] == ["LayerNormalization", "Cast"]
    assert all(value.dtype is not DataType.FLOAT for node in model.graph if node.op_type == "Gather" for value in node.outputs)


@pytest.mark.parametrize("mask", ["", ", m"])
def test_counts_of_the_mask(mask):
    """How many ones its rows have; zeros without a mask."""
    model, fired = apply_rule(EXPAND_EMBEDDING_MASK, text(f"i, k, w, p, t, g, b{mask}", "y, c"), opset=OPSET)
    assert fired == 1
    assert "EmbedLayerNormalization" not in operators(model)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"kind": "double"}, "expected one of float"),
        ({"outputs": "y, c, s"}, "no match"),
        ({"outputs": "y, c"}, "no match"),
    ],
)
def test_declines(given, reason):
    """Other types; outputs of which it knows nothing."""
    assert reason in declines(EXPAND_EMBEDDING, text("i, k, w, p, t, g, b", **given), opset=OPSET)
