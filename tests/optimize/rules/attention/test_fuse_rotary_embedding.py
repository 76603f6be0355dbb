"""Rotary embeddings that are written out."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.attention.fuse_rotary_embedding import FUSE_ROTARY_EMBEDDING, FUSE_ROTARY_PAIRS

SYMBOLS = {"b": 2, "s": 3}
CONSTANTS = """one: int64[1] = [1] f: float[4] = [1.0, 0.5, 0.25, 0.125] k: float[] = 1.5 ax: int64[2] = [0, 1]
    table: float[2, 8] = ... 1 double: float[2, 8] = [1, 2, 3, 4, 1, 2, 3, 4, 5, 6, 7, 8, 5, 6, 7, 8]"""
ANGLES = "g = Mul(p, f) e = Concat(g, g) {axis = -1} co = Cos(e) si = Sin(e) c = Unsqueeze(co, one) n = Unsqueeze(si, one)"
TURN = "h, l = Split(x) {axis = 3} m = Neg(l) t = Concat(m, h) {axis = -1} u = Mul(x, c) v = Mul(t, n) y = Add(u, v)"


def text(angles=ANGLES, turn=TURN, x="b, 5, s, 8", p="float[b, s, 1]", outputs="y"):
    return f"graph(x: float[{x}], p: {p}, i: int64[b, s]) -> ({outputs}) {{ {CONSTANTS} {angles} {turn} }}"


@pytest.mark.parametrize(
    "angles",
    [
        ANGLES,
        "g = Mul(p, f) e = Concat(g, g) {axis = 2} co = Cos(e) si = Sin(e) a = Mul(co, k) z = Mul(si, k) c = Unsqueeze(a, one)"
        " n = Unsqueeze(z, one)",
        "g = Mul(p, f) a = Cos(g) z = Sin(g) co = Concat(a, a) {axis = 2} si = Concat(z, z) {axis = 2} c = Unsqueeze(co, one)"
        " n = Unsqueeze(si, one)",
    ],
)
@pytest.mark.parametrize("turn", [TURN, TURN.replace("Mul(x, c)", "Mul(c, x)").replace("Add(u, v)", "Add(v, u)")])
def test_fires_with_the_same_numbers(angles, turn):
    """Angles that are doubled before or after cosine and sine, scaled or not; factors in any order."""
    model, fired = apply_rule(FUSE_ROTARY_EMBEDDING, text(angles, turn), symbols=SYMBOLS)
    assert fired == 1
    assert operators(model)[-1] == "RotaryEmbedding"


def test_angles_that_turn_backwards():
    """Where the other half is negated, the sines are."""
    turn = TURN.replace("m = Neg(l) t = Concat(m, h)", "m = Neg(h) t = Concat(l, m)")
    model, fired = apply_rule(FUSE_ROTARY_EMBEDDING, text(turn=turn), symbols=SYMBOLS)
    assert fired == 1
    assert operators(model)[-2:] == ["Neg", "RotaryEmbedding"]


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


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"x": "b, h, s, 8"}, "expected known heads"),
        (
            {
                "x": "b, 5, s, 8",
                "p": "float[b, s, 1]",
                "angles": ANGLES.replace("Unsqueeze(si, one)", "Unsqueeze(si, z)")
                .replace("g =", "z: int64[1] = [2] g =")
                .replace("Unsqueeze(co, one)", "Unsqueeze(co, z)"),
            },
            "for all heads",
        ),
        ({"turn": TURN.replace("Concat(m, h)", "Concat(h, m)")}, "not made of the pairs of x"),
        ({"turn": TURN.replace("Neg(l)", "Abs(l)")}, "no match"),
        ({"turn": TURN + " w = Neg(t)", "outputs": "y, w"}, "no match"),
        ({"angles": ANGLES.replace("Concat(g, g)", "Concat(g, q)").replace("e =", "q = Neg(g) e =")}, "not known to be equal"),
        ({"angles": ANGLES.replace("Mul(p, f)", "Mul(p, f)").replace("Cos(e)", "Tanh(e)")}, "not known to be equal"),
        ({"angles": "co = Gather(table, i) c = Unsqueeze(co, one) n = Neg(c)"}, "not known to be equal"),
    ],
)
def test_declines(options, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(FUSE_ROTARY_EMBEDDING, text(**options))


LAST = "far: int64[1] = [9223372036854775807] zero: int64[1] = [0] last: int64[1] = [-1] ax3: int64[1] = [3] two: int64[1] = [2]"
EVERY_SECOND = "h = Slice(x, zero, far, ax3, two) l = Slice(x, one, far, ax3, two)"
STACK = "hu = Unsqueeze({0}, last) lu = Unsqueeze({1}, last) st = Concat(hu, lu) {{axis = -1}}"
TWICE = "gu = Unsqueeze(g, last) gg = Concat(gu, gu) {axis = 3} e = Reshape(gg, keep)"
ALTERNATING = f"{EVERY_SECOND} m = Neg(l) {STACK.format('m', 'h')} t = Reshape(st, four) u = Mul(x, c) v = Mul(t, n) y = Add(u, v)"
HEADS = "axes: int64[1] = [1] four: int64[4] = [0, 5, -1, 8]"
TOKENS = "axes: int64[1] = [2] four: int64[4] = [0, -1, 5, 8]"


def alternating(layout, angles=TWICE, turn=ALTERNATING, batch="b"):
    x = "b, 5, s, 8" if layout is HEADS else "b, s, 5, 8"
    constants = f"{CONSTANTS} {LAST} {layout} keep: int64[3] = [0, 0, 8] tile: int64[4] = [1, 1, 1, 2]"
    return f"""graph(x: float[{x}], p: float[{batch}, s, 1]) -> (y) {{ {constants} g = Mul(p, f) {angles} co = Cos(e) si = Sin(e)
        c = Unsqueeze(co, axes) n = Unsqueeze(si, axes) {turn} }}"""


@pytest.mark.parametrize(
    "angles",
    [
        TWICE,
        TWICE.replace("Concat(gu, gu) {axis = 3}", "Tile(gu, tile)"),
        TWICE.replace("Concat(gu, gu) {axis = 3}", "Expand(gu, tile)"),
    ],
)
@pytest.mark.parametrize("batch", ["b", "1"])
@pytest.mark.parametrize("layout", [HEADS, TOKENS])
def test_alternating_pairs(layout, batch, angles):
    """Pairs that lie next to each other, in heads and in tokens, with angles for each batch or for all."""
    model, fired = apply_rule(FUSE_ROTARY_EMBEDDING, alternating(layout, angles, batch=batch), symbols=SYMBOLS)
    assert fired == 1
    (rotary,) = (node for node in model.graph if node.op_type == "RotaryEmbedding")
    assert rotary.get("interleaved") == 1
    assert rotary.get("num_heads") == (None if layout is HEADS else 5)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("Slice(x, zero, far, ax3, two)", "Slice(x, one, far, ax3, two)", "not made of the pairs of x"),
        ("Concat(hu, lu)", "Concat(lu, hu)", "no match"),
        ("Concat(gu, gu) {axis = 3}", "Concat(gu, no) {axis = 3}", "not known to be equal"),
        ("e = Reshape(gg, keep)", "e = Concat(g, g) {axis = 2}", "not known to be equal"),
    ],
)
def test_alternating_pairs_decline(old, new, reason):
    """Elements that are no pairs, and angles that are not twice for each pair."""
    text = alternating(HEADS, TWICE.replace("gg =", "no = Neg(gu) gg =")).replace(old, new)
    assert reason in declines(FUSE_ROTARY_EMBEDDING, text)


def pairs(parts, join, layout=HEADS, angles="g"):
    axes = layout.split("axes: ")[1].split(" four")[0]
    x = "b, 5, s, 8" if layout is HEADS else "b, s, 5, 8"
    return f"""graph(x: float[{x}], p: float[b, s, 1]) -> (y) {{ {CONSTANTS} {LAST} axes: {axes} five: int64[5] = [0, 0, 0, 4, 2]
        g = Mul(p, f) co = Cos({angles}) si = Sin({angles}) c = Unsqueeze(co, axes) n = Unsqueeze(si, axes) {parts}
        a = Mul(h, c) z = Mul(l, n) o = Sub(a, z) d = Mul(l, c) w = Mul(h, n) r = Add(w, d) {join} }}"""


COLUMNS = "sp = Reshape(x, five) hc, lc = Split(sp) {axis = 4, num_outputs = 2} h = Squeeze(hc, last) l = Squeeze(lc, last)"


@pytest.mark.parametrize("layout", [HEADS, TOKENS])
@pytest.mark.parametrize(
    ("parts", "join", "interleaved"),
    [
        ("h, l = Split(x) {axis = 3, num_outputs = 2}", "y = Concat(o, r) {axis = 3}", None),
        (EVERY_SECOND, f"{STACK.format('o', 'r')} y = Neg(st)", 1),
        (COLUMNS, f"{STACK.format('o', 'r')} y = Neg(st)", 1),
    ],
)
def test_pairs_that_are_turned_one_by_one(parts, join, interleaved, layout):
    """The two of each pair are computed apart and joined as they were parted."""
    model, fired = apply_rule(FUSE_ROTARY_PAIRS, pairs(parts, join, layout), symbols=SYMBOLS)
    assert fired == 1
    (rotary,) = (node for node in model.graph if node.op_type == "RotaryEmbedding")
    assert rotary.get("interleaved") == interleaved


@pytest.mark.parametrize(
    ("parts", "join", "reason"),
    [
        ("h, l = Split(x) {axis = 3, num_outputs = 2}", f"{STACK.format('o', 'r')} y = Neg(st)", "not joined as they were parted"),
        (EVERY_SECOND, "y = Concat(o, r) {axis = 3}", "not joined as they were parted"),
        ("l, h = Split(x) {axis = 3, num_outputs = 2}", "y = Concat(o, r) {axis = 3}", "not made of pairs"),
        ("h, l = Split(x) {axis = 3, num_outputs = 2}", "y = Concat(r, o) {axis = 3}", "no match"),
    ],
)
def test_pairs_decline(parts, join, reason):
    """Pairs that are joined in another way than they were parted, and what are no pairs."""
    assert reason in declines(FUSE_ROTARY_PAIRS, pairs(parts, join))
