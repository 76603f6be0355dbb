"""Rotary embeddings that turn a part of each head."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.attention.fuse_partial_rotary_embedding import FUSE_PARTIAL_ROTARY_EMBEDDING

SYMBOLS = {"b": 2, "s": 3}


def partial(middle, axis="-1"):
    return f"""graph(x: float[b, 5, s, 12], c: float[{"1" if "Reshape" in middle else "b"}, s, 4],
        n: float[{"1" if "Reshape" in middle else "b"}, s, 4]) -> (y) {{ z: int64[2] = [8, 4] g: int64[4] = [1, -1, 0, 0]
        w: int64[4] = [-1, 5, 0, 0] h, l = Split(x, z) {{axis = 3}} {middle} y = Concat(r, l) {{axis = {axis}}} }}"""


@pytest.mark.parametrize(
    ("middle", "left"),
    [
        ("r = RotaryEmbedding(h, c, n)", ["RotaryEmbedding"]),
        ("a = Reshape(h, g) q = RotaryEmbedding(a, c, n) r = Reshape(q, w)", ["Reshape", "RotaryEmbedding", "Reshape"]),
    ],
)
def test_a_part_of_each_head(middle, left):
    """The rest of each head, which is not rotated, needs no Split and no Concat."""
    model, fired = apply_rule(FUSE_PARTIAL_ROTARY_EMBEDDING, partial(middle), symbols=SYMBOLS, opset="23")
    assert fired == 1
    assert operators(model) == left


@pytest.mark.parametrize(
    ("middle", "reason"),
    [
        ("r = RotaryEmbedding(h, c, n) {rotary_embedding_dim = 4}", "a part only"),
        ("r = RotaryEmbedding(l, c, n)", "no match"),
    ],
)
def test_a_part_declines(middle, reason):
    """A part of the part, and another part."""
    text = partial(middle).replace("s, 4]", "s, 2]")
    assert reason in declines(FUSE_PARTIAL_ROTARY_EMBEDDING, text, opset="23")


def tokens(heads=5, back="[0, 0, 5, 8]"):
    return f"""graph(x: float[b, s, 5, 12], c: float[b, s, 4], n: float[b, s, 4]) -> (y) {{ z: int64[2] = [8, 4]
        g: int64[3] = [0, 0, 40] w: int64[4] = {back} h, l = Split(x, z) {{axis = 3}} a = Reshape(h, g)
        q = RotaryEmbedding(a, c, n) {{num_heads = {heads}, interleaved = 1}} r = Reshape(q, w) y = Concat(r, l) {{axis = 3}} }}"""


def test_a_part_of_each_packed_head():
    """Heads that are packed for the operator are packed whole."""
    model, fired = apply_rule(FUSE_PARTIAL_ROTARY_EMBEDDING, tokens(), symbols=SYMBOLS, opset="23")
    assert fired == 1
    assert operators(model) == ["Reshape", "RotaryEmbedding", "Reshape"]
    assert [node.get("rotary_embedding_dim") for node in model.graph] == [None, 8, None]


def test_other_heads_than_those_decline():
    """Heads that the operator parts elsewhere."""
    text = tokens(heads=10).replace("s, 4], n", "s, 2], n").replace("n: float[b, s, 4]", "n: float[b, s, 2]")
    assert "nor heads as packed" in declines(FUSE_PARTIAL_ROTARY_EMBEDDING, text, opset="23")
