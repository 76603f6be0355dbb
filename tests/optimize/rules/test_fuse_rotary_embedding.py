"""Rotary embeddings that are written out."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.fuse_rotary_embedding import FUSE_PARTIAL_ROTARY_EMBEDDING, FUSE_ROTARY_EMBEDDING

SYMBOLS = {"b": 2, "s": 3}
CONSTANTS = """one: int64[1] = [1] f: float[4] = [1.0, 0.5, 0.25, 0.125] k: float[] = 1.5 ax: int64[2] = [0, 1]
    table: float[2, 8] = ... 1 double: float[2, 8] = [1, 2, 3, 4, 1, 2, 3, 4, 5, 6, 7, 8, 5, 6, 7, 8]"""
ANGLES = "g = Mul(p, f) e = Concat(g, g) {axis = -1} co = Cos(e) si = Sin(e) c = Unsqueeze(co, one) n = Unsqueeze(si, one)"
TURN = "h, l = Split(x) {axis = 3} m = Neg(l) t = Concat(m, h) {axis = -1} u = Mul(x, c) v = Mul(t, n) y = Add(u, v)"


def text(angles=ANGLES, turn=TURN, x="b, 5, s, 8", p="float[b, s, 1]", outputs="y"):
    return f"graph(x: float[{x}], p: {p}, i: int64[b, s]) -> ({outputs}) {{ {CONSTANTS} {angles} {turn} }}"


@pytest.mark.parametrize("angles", [
    ANGLES,
    "g = Mul(p, f) e = Concat(g, g) {axis = 2} co = Cos(e) si = Sin(e) a = Mul(co, k) z = Mul(si, k) c = Unsqueeze(a, one)"
    " n = Unsqueeze(z, one)",
    "g = Mul(p, f) a = Cos(g) z = Sin(g) co = Concat(a, a) {axis = 2} si = Concat(z, z) {axis = 2} c = Unsqueeze(co, one)"
    " n = Unsqueeze(si, one)",
])  # fmt: skip
@pytest.mark.parametrize("turn", [TURN, TURN.replace("Mul(x, c)", "Mul(c, x)").replace("Add(u, v)", "Add(v, u)")])
def test_fires_with_the_same_numbers(angles, turn):
    """Angles that are doubled before or after cosine and sine, scaled or not; factors in any order."""
    model, fired = apply_rule(FUSE_ROTARY_EMBEDDING, text(angles, turn), symbols=SYMBOLS)
    assert fired == 1
    assert operators(model)[-1] == "RotaryEmbedding"


def test_one_batch_of_angles():
    """Where one batch of angles is for all, batches are seen as heads."""
    model, fired = apply_rule(FUSE_ROTARY_EMBEDDING, text(p="float[1, s, 1]"), symbols=SYMBOLS)
    assert fired == 1
    assert operators(model)[-3:] == ["Reshape", "RotaryEmbedding", "Reshape"]


def test_tables_of_cosines():
    """Rows of a constant table whose halves are equal are gathered from half of it."""
    angles = "co = Gather(double, i) si = Gather(double, i) c = Unsqueeze(co, one) n = Unsqueeze(si, one)"
    positions = text(angles).replace("i: int64[b, s]", "j: bool[b, s]").replace("co =", "i = Cast(j) {to = 7} co =")
    model, fired = apply_rule(FUSE_ROTARY_EMBEDDING, positions, symbols=SYMBOLS)
    assert fired == 1
    assert "RotaryEmbedding" in operators(model)


@pytest.mark.parametrize(("options", "reason"), [
    ({"x": "b, h, s, 8"}, "expected known heads"),
    ({"turn": TURN.replace("Concat(m, h)", "Concat(h, m)")}, "no match"),
    ({"turn": TURN.replace("Neg(l)", "Abs(l)")}, "no match"),
    ({"turn": TURN + " w = Neg(t)", "outputs": "y, w"}, "no match"),
    ({"angles": ANGLES.replace("Concat(g, g)", "Concat(g, q)").replace("e =", "q = Neg(g) e =")}, "not known to be equal"),
    ({"angles": ANGLES.replace("Mul(p, f)", "Mul(p, f)").replace("Cos(e)", "Tanh(e)")}, "not known to be equal"),
    ({"angles": "co = Gather(table, i) c = Unsqueeze(co, one) n = Neg(c)"}, "not known to be equal"),
])  # fmt: skip
def test_declines(options, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(FUSE_ROTARY_EMBEDDING, text(**options))


def partial(middle, axis="-1"):
    return f"""graph(x: float[b, 5, s, 12], c: float[{"1" if "Reshape" in middle else "b"}, s, 4],
        n: float[{"1" if "Reshape" in middle else "b"}, s, 4]) -> (y) {{ z: int64[2] = [8, 4] g: int64[4] = [1, -1, 0, 0]
        w: int64[4] = [-1, 5, 0, 0] h, l = Split(x, z) {{axis = 3}} {middle} y = Concat(r, l) {{axis = {axis}}} }}"""


@pytest.mark.parametrize(("middle", "left"), [
    ("r = RotaryEmbedding(h, c, n)", ["RotaryEmbedding"]),
    ("a = Reshape(h, g) q = RotaryEmbedding(a, c, n) r = Reshape(q, w)", ["Reshape", "RotaryEmbedding", "Reshape"]),
])  # fmt: skip
def test_a_part_of_each_head(middle, left):
    """The rest of each head, which is not turned, needs no Split and no Concat."""
    model, fired = apply_rule(FUSE_PARTIAL_ROTARY_EMBEDDING, partial(middle), symbols=SYMBOLS, opset="23")
    assert fired == 1
    assert operators(model) == left


@pytest.mark.parametrize(("middle", "reason"), [
    ("r = RotaryEmbedding(h, c, n) {rotary_embedding_dim = 4}", "a part only"),
    ("r = RotaryEmbedding(l, c, n)", "no match"),
])  # fmt: skip
def test_a_part_declines(middle, reason):
    """A part of the part, and another part."""
    text = partial(middle).replace("s, 4]", "s, 2]")
    assert reason in declines(FUSE_PARTIAL_ROTARY_EMBEDDING, text, opset="23")
