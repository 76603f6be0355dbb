"""Attention that is written out, as the exporters of common models write it."""

import numpy as np
import pytest
from support.evaluate import evaluate_model
from support.optimizing import apply_rule, declines, model_of, operators

from sardonyx.optimize.contract import Context, Level
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES
from sardonyx.optimize.pipeline import optimize
from sardonyx.optimize.rewrite import RuleSet, rewrite
from sardonyx.optimize.rules.attention.fuse_attention import FUSE_ATTENTION

SYMBOLS = {"b": 2, "s": 5, "t": 7}
HEADS = "q: float[b, 3, s, 8], k: float[b, 3, t, 8], v: float[b, 3, t, 4]"
CONSTANTS = """c: float[] = 0.3535 r: float[1] = 0.5946 e: float[] = 2.83 z: float[] = 0.0 low: float[] = -3.4028234e38
    ninf: float[] = -inf small: float[] = -10000.0 one: float[] = 1.0"""


def graph(lines, inputs=HEADS, outputs="y", constants=""):
    return f"graph({inputs}) -> ({outputs}) {{ {CONSTANTS} {constants} {lines} }}"


def attention(
    scores="p = MatMul(q, kt) x = Mul(p, c)",
    keys="kt = Transpose(k) {perm = [0, 1, 3, 2]}",
    after="w = Softmax(x) {axis = -1}",
    **options,
):
    return graph(f"{keys} {scores} {after} y = MatMul(w, v)", **options)


SCALES = {
    "no scale": "x = MatMul(q, kt)",
    "the product times a number": "p = MatMul(q, kt) x = Mul(p, c)",
    "a number times the product": "p = MatMul(q, kt) x = Mul(c, p)",
    "the product by a number": "p = MatMul(q, kt) x = Div(p, e)",
    "queries times a number": "a = Mul(q, c) x = MatMul(a, kt)",
    "queries by a number": "a = Div(q, e) x = MatMul(a, kt)",
    "keys times a number": "a = Mul(kt, c) x = MatMul(q, a)",
    "both times the root": "a = Mul(q, r) d = Mul(kt, r) x = MatMul(a, d)",
}


@pytest.mark.parametrize("scores", SCALES.values(), ids=SCALES)
def test_each_place_of_the_scale(scores):
    """Wherever the scale stands, it becomes the attribute."""
    model, fired = apply_rule(FUSE_ATTENTION, attention(scores), symbols=SYMBOLS)
    assert fired == 1
    assert operators(model) == ["Attention"]
    scale = next(iter(model.graph)).get("scale")
    assert scale == pytest.approx(1.0 if scores == SCALES["no scale"] else 0.3535, rel=1e-3)


def test_version_is_that_which_brought_the_operator():
    """In a model of opset 14 as in one of opset 21 the node is read under opset 23."""
    for opset in ("14", "21"):
        model, _ = apply_rule(FUSE_ATTENTION, attention(), symbols=SYMBOLS, opset=opset)
        assert next(iter(model.graph)).version == 23


@pytest.mark.parametrize("guard", [False, True])
@pytest.mark.parametrize(
    ("declared", "lines"),
    [
        ("m: bool[b, 1, s, t]", "a = Where(m, z, low) x = Add(p, a)"),
        ("m: bool[b, 3, s, t]", "a = Where(m, z, low) x = Add(a, p)"),
        ("m: bool[s, t]", "a = Where(m, z, low) x = Add(p, a)"),
        ("m: bool[b, 1, 1, t]", "a = Where(m, z, low) x = Add(p, a)"),
        ("m: int64[b, 1, 1, t]", "f = Cast(m) {to = 1} d = Sub(one, f) a = Mul(d, small) x = Add(p, a)"),
        ("m: bool[b, 1, s, t]", "x = Where(m, p, low)"),
        ("m: bool[b, 1, s, t]", "x = Where(m, low, p)"),
    ],
)
def test_masks_without_infinity(declared, lines, guard):
    """Masks that are bounded below join, whether a guard follows or not, also where they hide all keys."""
    after = "u = Softmax(x) {axis = -1} n = IsNaN(u) w = Where(n, z, u)" if guard else "w = Softmax(x) {axis = -1}"
    text = attention(f"h = MatMul(q, kt) p = Mul(h, c) {lines}", after=after, inputs=f"{HEADS}, {declared}")
    model, fired = apply_rule(FUSE_ATTENTION, text, symbols=SYMBOLS)
    assert fired == 1
    assert operators(model)[-1] == "Attention"


GUARDED = "u = Softmax(x) {axis = -1} n = IsNaN(u) w = Where(n, z, u)"


@pytest.mark.parametrize(
    "lines", ["a = Where(m, z, ninf) x = Add(p, a)", "x = Where(m, p, ninf)", "x = Where(m, ninf, p)", "x = Add(p, g)"]
)
def test_guarded_infinite_masks(lines):
    """With a guard after the softmax queries that see no key give zeros, before and after."""
    inputs = f"{HEADS}, m: bool[b, 1, s, t], g: float[b, 1, s, t]"
    text = attention(f"h = MatMul(q, kt) p = Mul(h, c) {lines}", after=GUARDED, inputs=inputs)
    before, after = model_of(text), model_of(text)
    INFER_SHAPES.run(after, Context())
    assert rewrite(after, RuleSet([FUSE_ATTENTION]))["fuse_attention"] == 1
    rng = np.random.default_rng(3)
    seen = rng.random((2, 1, 5, 7)) > 0.5
    seen[0, 0, 1], seen[1, 0, 3] = True, False
    seen[0, 0, 2] = False
    if "Where(m, ninf" in lines:
        seen = ~seen
    feeds = {
        "q": rng.standard_normal((2, 3, 5, 8)),
        "k": rng.standard_normal((2, 3, 7, 8)),
        "v": rng.standard_normal((2, 3, 7, 4)),
        "g": np.where(seen, 0.5, -np.inf),
    }
    given = {name: array.astype(np.float32) for name, array in feeds.items()} | {"m": seen}
    with np.errstate(invalid="ignore"):
        (old,), (new,) = evaluate_model(before, given), evaluate_model(after, given)
    assert (old[0, :, 2] == 0).all()
    np.testing.assert_allclose(new, old, rtol=1e-5, atol=1e-6)


TOKENS = "q: float[b, s, 24], k: float[b, t, 24], v: float[b, t, 12]"
SPLIT = """n: int64[4] = [0, 0, 3, -1] j: int64[3] = [0, 0, -1]
    q4 = Reshape(q, n) k4 = Reshape(k, n) v4 = Reshape(v, n)
    qh = Transpose(q4) {perm = [0, 2, 1, 3]} vh = Transpose(v4) {perm = [0, 2, 1, 3]}"""
JOIN = "yh = MatMul(w, vh) yt = Transpose(yh) {perm = [0, 2, 1, 3]} y = Reshape(yt, j)"
KEYS = {
    "transposed in one": "kt = Transpose(k4) {perm = [0, 2, 3, 1]}",
    "transposed in two": "kh = Transpose(k4) {perm = [0, 2, 1, 3]} kt = Transpose(kh) {perm = [0, 1, 3, 2]}",
    "transposed as three dimensions": """i: int64[3] = [-1, 7, 8] o: int64[4] = [-1, 3, 8, 7]
        kh = Transpose(k4) {perm = [0, 2, 1, 3]} k3 = Reshape(kh, i) kr = Transpose(k3) {perm = [0, 2, 1]} kt = Reshape(kr, o)""",
}


@pytest.mark.parametrize("keys", KEYS.values(), ids=KEYS)
def test_packed_heads_are_read_and_written_without_transposes(keys):
    """Heads that are split by Reshape and Transpose and joined again are packed heads; cleaned up, nothing else is left."""
    lines = f"{SPLIT} {keys} p = MatMul(qh, kt) x = Mul(p, c) w = Softmax(x) {{axis = -1}} {JOIN}"
    text = graph(lines, inputs=TOKENS.replace("t,", "7,"))
    model, fired = apply_rule(FUSE_ATTENTION, text, symbols=SYMBOLS)
    assert fired == 1
    node = next(node for node in model.graph if node.op_type == "Attention")
    assert [value.name for value in node.inputs] == ["q", "k", "v"]
    assert (node.get("q_num_heads"), node.get("kv_num_heads")) == (3, 3)
    whole = model_of(text)
    optimize(whole, Level.ALL, evaluate=None)
    assert set(operators(whole)) <= {"Attention", "Reshape"}


def test_packed_heads_stay_split_where_the_result_is_not_joined():
    """Where the result is used as (B, H, S, D) it is made so."""
    lines = f"{SPLIT} {KEYS['transposed in one']} x = MatMul(qh, kt) w = Softmax(x) {{axis = -1}} y = MatMul(w, vh)"
    model, fired = apply_rule(FUSE_ATTENTION, graph(lines, inputs=TOKENS), symbols=SYMBOLS)
    assert fired == 1
    assert next(node for node in model.graph if node.op_type == "Attention").get("q_num_heads") is None


REPEATED = """ax: int64[1] = [2] n: int64[5] = [1, 3, 2, 1, 1] n4: int64[4] = [0, 6, 7, -1]
    ku = Unsqueeze(k, ax) kx = Expand(ku, n) kr = Reshape(kx, n4) vu = Unsqueeze(v, ax) vx = Expand(vu, n) vr = Reshape(vx, n4)
    kt = Transpose(kr) {perm = [0, 1, 3, 2]} x = MatMul(q, kt) w = Softmax(x) {axis = -1}"""


def test_repeated_keys_and_values_are_read_before():
    """Keys and values that are repeated for groups of query heads are shared by them."""
    inputs = "q: float[b, 6, s, 8], k: float[b, 3, 7, 8], v: float[b, 3, 7, 4]"
    model, fired = apply_rule(FUSE_ATTENTION, graph(f"{REPEATED} y = MatMul(w, vr)", inputs=inputs), symbols=SYMBOLS)
    assert fired == 1
    assert operators(model) == ["Attention"]


def test_values_that_are_not_repeated_keep_the_keys_repeated():
    """Where only the keys are repeated, they stay so."""
    inputs = "q: float[b, 6, s, 8], k: float[b, 3, 7, 8], v: float[b, 3, 7, 4], g: float[b, 6, 7, 4]"
    model, fired = apply_rule(FUSE_ATTENTION, graph(f"{REPEATED} y = MatMul(w, g)", inputs=inputs), symbols=SYMBOLS)
    assert fired == 1
    assert "Expand" in operators(model)


MERGED = "q: float[6, 5, 8], k: float[6, 7, 8], v: float[6, 7, 4]"


@pytest.mark.parametrize("mask", ["", "m: float[1, 5, 7] = ... 1", "m: float[6, 1, 7] = ... 1", "m: float[5, 7] = ... 1"])
def test_merged_batch_and_heads(mask):
    """Three dimensions of unknown origin are attention with one head."""
    scores = "x = MatMul(q, kt)" if not mask else "p = MatMul(q, kt) x = Add(p, m)"
    text = attention(scores, keys="kt = Transpose(k) {perm = [0, 2, 1]}", inputs=MERGED, constants=mask)
    model, fired = apply_rule(FUSE_ATTENTION, text)
    assert fired == 1
    assert operators(model)[-1] == "Attention"
    assert model.graph.outputs[0].producer.get("q_num_heads") == 1


@pytest.mark.parametrize("masked", [False, True])
def test_merged_batch_and_heads_of_known_origin(masked):
    """Three dimensions that were four are four again, with a mask that meets the scores as four."""
    middle = "p4 = Reshape(p, s4) m4 = Add(p4, a) x = Reshape(m4, s3)" if masked else "x = Identity(p)"
    lines = f"""{SPLIT} {KEYS["transposed in two"]} m3: int64[3] = [-1, 5, 8] t3: int64[3] = [-1, 7, 8] v3: int64[3] = [-1, 7, 4]
        s4: int64[4] = [-1, 3, 5, 7] s3: int64[3] = [-1, 5, 7] y4: int64[4] = [-1, 3, 5, 4]
        q3 = Reshape(qh, m3) kh3 = Reshape(kh, t3) vh3 = Reshape(vh, v3) ktr = Transpose(kh3) {{perm = [0, 2, 1]}}
        p = MatMul(q3, ktr) {middle} w = Softmax(x) {{axis = -1}} u = MatMul(w, vh3) yh = Reshape(u, y4)
        yt = Transpose(yh) {{perm = [0, 2, 1, 3]}} y = Reshape(yt, j)""".replace("x = Identity(p) w = Softmax(x)", "w = Softmax(p)")
    inputs = "q: float[2, 5, 24], k: float[2, 7, 24], v: float[2, 7, 12]"
    model, fired = apply_rule(FUSE_ATTENTION, graph(lines, inputs=inputs, constants="a: float[2, 1, 5, 7] = ... 1"))
    assert fired == 1
    node = next(node for node in model.graph if node.op_type == "Attention")
    assert node.get("q_num_heads") == 3


def test_masks_of_sizes_that_a_run_shows():
    """A mask whose sizes have other names than those of the scores has them in a run."""
    text = attention("h = MatMul(q, kt) p = Mul(h, c) x = Add(p, m)", inputs=f"{HEADS}, m: float[u, 1, n, t]")
    model, fired = apply_rule(FUSE_ATTENTION, text, symbols={**SYMBOLS, "u": 2, "n": 5})
    assert fired == 1
    assert operators(model)[-1] == "Attention"


def test_subtracted_masks():
    """What is subtracted is added with the other sign."""
    text = attention("p = MatMul(q, kt) x = Sub(p, m)", inputs=f"{HEADS}, m: float[b, 3, s, t]")
    model, fired = apply_rule(FUSE_ATTENTION, text, symbols=SYMBOLS)
    assert fired == 1
    assert operators(model)[-1] == "Attention"


TURNED = {
    "queries last, weights turned": (
        "p = MatMul(k, qt) {} w = Softmax(x) {{axis = 2}} u = Transpose(w) {{perm = [0, 1, 3, 2]}} y = MatMul(u, v)",
        "[b, 1, t, s]",
    ),
    "queries last, values first": ("p = MatMul(k, qt) {} w = Softmax(x) {{axis = 2}} y = MatMul(vt, w)", "[b, 1, t, 1]"),
    "weights turned, values first": (
        "p = MatMul(q, kt) {} w = Softmax(x) {{axis = 3}} u = Transpose(w) {{perm = [0, 1, 3, 2]}} y = MatMul(vt, u)",
        "[b, 1, s, t]",
    ),
}


@pytest.mark.parametrize("masked", ["x = Mul(p, c)", "d = Mul(p, c) x = Add(d, m)"])
@pytest.mark.parametrize(("lines", "mask"), TURNED.values(), ids=TURNED)
def test_turned_products(lines, mask, masked):
    """The product, the weights or the result may be turned, as long as the softmax goes along the keys."""
    inputs = "q: float[b, 3, s, 8], qt: float[b, 3, 8, s], k: float[b, 3, t, 8], kt: float[b, 3, 8, t], v: float[b, 3, t, 4]"
    text = graph(lines.format(masked), inputs=f"{inputs}, vt: float[b, 3, 4, t], m: float{mask}")
    model, fired = apply_rule(FUSE_ATTENTION, text, symbols=SYMBOLS)
    assert fired == 1
    assert operators(model).count("Attention") == 1
    assert not {"MatMul", "Softmax"} & set(operators(model))


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("p = MatMul(k, qt) w = Softmax(p) {axis = 3} u = Transpose(w) {perm = [0, 1, 3, 2]} y = MatMul(u, v)", "along the keys"),
        ("p = MatMul(k, qt) w = Softmax(p) {axis = 2} u = Transpose(w) {perm = [1, 0, 3, 2]} y = MatMul(u, v)", "no match"),
        (
            "p = MatMul(k, qt) x = Add(p, n) w = Softmax(x) {axis = 2} u = Transpose(w) {perm = [0, 1, 3, 2]} y = MatMul(u, v)",
            "the mask is (s,)",
        ),
    ],
)
def test_turned_products_decline(lines, reason):
    """A softmax along the queries, another transpose, a mask of queries alone."""
    inputs = "qt: float[b, 3, 8, s], k: float[b, 3, t, 8], v: float[b, 3, t, 4], n: float[s]"
    assert reason in declines(FUSE_ATTENTION, graph(lines, inputs=inputs))


@pytest.mark.parametrize("transposed", [False, True])
def test_windows_beside_batches(transposed):
    """Five dimensions, of which the second are windows, are attention with more batches; tokens are read and written packed."""
    after = "u = MatMul(w, v) y = Neg(u)" if not transposed else "u = MatMul(w, v) y = Transpose(u) {perm = [0, 1, 3, 2, 4]}"
    before = "v = Transpose(vs) {perm = [0, 1, 3, 2, 4]} q = Transpose(qs) {perm = [0, 1, 3, 2, 4]}"
    inputs = "qs: float[b, 4, 5, 3, 8], ks: float[b, 4, 7, 3, 8], vs: float[b, 4, 7, 3, 4]"
    text = graph(
        f"""{before} kt = Transpose(ks) {{perm = [0, 1, 3, 4, 2]}} p = MatMul(q, kt) x = Mul(p, c)
        w = Softmax(x) {{axis = 4}} {after}""",
        inputs=inputs,
    )
    model, fired = apply_rule(FUSE_ATTENTION, text, symbols=SYMBOLS)
    assert fired == 1
    (node,) = (node for node in model.graph if node.op_type == "Attention")
    assert node.get("q_num_heads") == (3 if transposed else None)


def test_windows_of_unknown_number_stay():
    """The dimensions behind the batch must be known, so that they can be split again."""
    text = graph(
        "kt = Transpose(k) {perm = [0, 1, 2, 4, 3]} p = MatMul(q, kt) w = Softmax(p) {axis = 4} y = MatMul(w, v)",
        inputs="q: float[b, n, 3, 5, 8], k: float[b, n, 3, 7, 8], v: float[b, n, 3, 7, 4]",
    )
    assert "joined in some" in declines(FUSE_ATTENTION, text)


@pytest.mark.parametrize("keys", ["kt = Neg(g)", "kt = Transpose(u) {perm = [0, 2, 1, 3]}"])
def test_keys_that_are_not_transposed(keys):
    """Keys that lie as the product wants them are transposed for Attention."""
    text = attention("x = MatMul(q, kt)", keys, inputs=f"{HEADS}, g: float[b, 3, 8, t], u: float[b, 8, 3, t]")
    model, fired = apply_rule(FUSE_ATTENTION, text, symbols=SYMBOLS)
    assert fired == 1
    assert operators(model)[-2:] == ["Transpose", "Attention"]


def test_one_head_of_keys_for_all():
    """Keys and values of one head that broadcasting repeats are shared by all queries."""
    inputs = "q: float[b, 3, s, 8], k: float[b, 1, t, 8], v: float[b, 1, t, 4]"
    model, fired = apply_rule(FUSE_ATTENTION, attention(inputs=inputs), symbols=SYMBOLS)
    assert fired == 1
    assert operators(model) == ["Attention"]


def test_keys_and_values_whose_lengths_a_run_shows():
    """Keys and values from caches of their own have lengths of their own names, which the products need to be equal."""
    text = attention(inputs=HEADS.replace("v: float[b, 3, t, 4]", "v: float[b, 3, u, 4]"))
    model, fired = apply_rule(FUSE_ATTENTION, text, symbols=SYMBOLS | {"u": 7})
    assert fired == 1
    assert operators(model) == ["Attention"]


def test_a_scale_for_each_head():
    """Queries are multiplied by it, as they are fewer than scores."""
    text = attention("p = MatMul(q, kt) x = Mul(p, h)", constants="h: float[1, 3, 1, 1] = [1.0, 2.0, 3.0]")
    model, fired = apply_rule(FUSE_ATTENTION, text, symbols=SYMBOLS)
    assert fired == 1
    assert operators(model) == ["Mul", "Attention"]


WINDOWS = """five: int64[5] = [-1, 4, 3, 5, 5] four: int64[4] = [-1, 3, 5, 5] bias: float[1, 3, 5, 5] = ... 1
    wide: float[3, 5, 5] = ... 2 shift: float[1, 4, 1, 5, 5] = ... 3 each: float[1, 4, 3, 5, 5] = ... 4"""
WINDOWED = "q: float[8, 3, 5, 4], k: float[8, 3, 5, 4], v: float[8, 3, 5, 2], g: float[8, 3, 5, 5], u: bool[1, 4, 1, 5, 5]"


@pytest.mark.parametrize(
    "lines",
    [
        "p = MatMul(q, kt) a = Add(p, bias) w5 = Reshape(a, five) m = Add(w5, shift) x = Reshape(m, four)",
        "p = MatMul(q, kt) w5 = Reshape(p, five) m = Add(each, w5) a = Reshape(m, four) x = Add(a, wide)",
        "p = MatMul(q, kt) w5 = Reshape(p, five) m = Where(u, w5, low) x = Reshape(m, four)",
    ],
)
def test_windows_are_more_heads(lines):
    """Windows that masks tell apart, as shifted ones, are more heads of one mask."""
    text = attention(lines, inputs=WINDOWED, constants=WINDOWS)
    model, fired = apply_rule(FUSE_ATTENTION, text)
    assert fired == 1
    node = next(node for node in model.graph if node.op_type == "Attention")
    assert node.inputs[0].shape == (2, 12, 5, 4)


def test_windows_with_a_mask_for_each_batch_stay():
    """A mask that differs from batch to batch has no place among heads."""
    lines = "p = MatMul(q, kt) a = Add(p, g) w5 = Reshape(a, five) m = Add(w5, shift) x = Reshape(m, four)"
    assert "the mask is (8, 3, 5, 5)" in declines(FUSE_ATTENTION, attention(lines, inputs=WINDOWED, constants=WINDOWS))


def test_biases_of_merged_batch_and_heads():
    """What is added to merged scores, as ALiBi of Bloom is, is split as they are; so is what leaves the softmax joined again."""
    lines = f"""{SPLIT} {KEYS["transposed in two"]} m3: int64[3] = [-1, 5, 8] t3: int64[3] = [-1, 7, 8] v3: int64[3] = [-1, 7, 4]
        s4: int64[4] = [-1, 3, 5, 7] s3: int64[3] = [-1, 5, 7] y4: int64[4] = [-1, 3, 5, 4]
        q3 = Reshape(qh, m3) kh3 = Reshape(kh, t3) vh3 = Reshape(vh, v3) ktr = Transpose(kh3) {{perm = [0, 2, 1]}}
        p = MatMul(q3, ktr) pa = Add(p, g) p4 = Reshape(pa, s4) x = Add(p4, a) w = Softmax(x) {{axis = -1}} w3 = Reshape(w, s3)
        u = MatMul(w3, vh3) yh = Reshape(u, y4) yt = Transpose(yh) {{perm = [0, 2, 1, 3]}} y = Reshape(yt, j)"""
    inputs = "q: float[2, 5, 24], k: float[2, 7, 24], v: float[2, 7, 12], g: float[6, 1, 7]"
    model, fired = apply_rule(FUSE_ATTENTION, graph(lines, inputs=inputs, constants="a: float[2, 1, 5, 7] = ... 1"))
    assert fired == 1
    node = next(node for node in model.graph if node.op_type == "Attention")
    assert node.get("q_num_heads") == 3


def test_softcap():
    """Scores that are capped by Tanh are capped by Attention, before its mask."""
    scores = "p = MatMul(q, kt) a = Mul(p, c) d = Div(a, e) h = Tanh(d) i = Mul(h, e) x = Add(i, g)"
    text = attention(scores, inputs=f"{HEADS}, g: float[b, 1, s, t]")
    model, fired = apply_rule(FUSE_ATTENTION, text, symbols=SYMBOLS)
    assert fired == 1
    node = next(node for node in model.graph if node.op_type == "Attention")
    assert (node.get("scale"), node.get("softcap")) == (pytest.approx(0.3535), pytest.approx(2.83))


@pytest.mark.parametrize(
    "lines",
    [
        "p = MatMul(q, kt) a = Add(p, g) x = Add(m, a)",
        "p = MatMul(q, kt) a = Add(p, g) d = Add(m, a) x = Mul(d, c)",
        "p = MatMul(q, kt) a = Where(s, p, low) x = Add(m, a)",
        "p = MatMul(q, kt) a = Add(p, g) x = Where(s, low, a)",
        "p = MatMul(q, kt) a = Add(p, g) x = Max(a, low)",
    ],
)
def test_several_masks_are_one(lines):
    """Position biases and masks, added or filled one after the other, are one tensor for Attention."""
    inputs = f"{HEADS}, g: float[1, 3, s, t], m: float[b, 1, 1, t], s: bool[s, t]"
    model, fired = apply_rule(FUSE_ATTENTION, attention(lines, inputs=inputs), symbols=SYMBOLS)
    assert fired == 1
    assert operators(model)[-1] == "Attention"


@pytest.mark.parametrize("lines", ["x = Add(p, g)", "a = Where(s, z, ninf) x = Add(p, a)", "x = Where(s, p, ninf)"])
def test_infinite_masks_without_guard(lines):
    """A query that sees no key gives NaN, before and after."""
    text = attention(f"p = MatMul(q, kt) {lines}", inputs=f"{HEADS}, s: bool[b, 1, s, t], g: float[b, 1, s, t]")
    before, after = model_of(text), model_of(text)
    INFER_SHAPES.run(after, Context())
    assert rewrite(after, RuleSet([FUSE_ATTENTION]))["fuse_attention"] == 1
    rng = np.random.default_rng(5)
    seen = rng.random((2, 1, 5, 7)) > 0.5
    seen[..., 0], seen[0, 0, 2] = True, False
    feeds = {
        "q": rng.standard_normal((2, 3, 5, 8)),
        "k": rng.standard_normal((2, 3, 7, 8)),
        "v": rng.standard_normal((2, 3, 7, 4)),
        "g": np.where(seen, 0.5, -np.inf),
    }
    given = {name: array.astype(np.float32) for name, array in feeds.items()} | {"s": seen}
    with np.errstate(invalid="ignore"):
        (old,), (new,) = evaluate_model(before, given), evaluate_model(after, given)
    assert np.isnan(old[0, :, 2]).all()
    np.testing.assert_allclose(new, old, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"after": "w = Softmax(x) {axis = 2}"}, "the softmax does not go along the keys"),
        ({"scores": "x = MatMul(q, kt)", "outputs": "y, x"}, "not a scaled and masked product with no other users"),
        ({"scores": "p = MatMul(q, kt) x = Mul(p, g)", "inputs": f"{HEADS}, g: float[1]"}, "not a scaled and masked product"),
        ({"scores": "p = MatMul(q, kt) a = Add(p, z) d = Mul(a, c) x = Add(d, z)"}, "the mask is ()"),
        ({"scores": "p = MatMul(q, kt) x = Max(p, c)"}, "scores are replaced by 0.35"),
        ({"scores": "p = MatMul(q, kt) x = Sub(p, c)"}, "the mask is ()"),
        ({"scores": "p = MatMul(q, kt) x = Sub(c, p)"}, "not a scaled and masked product"),
        ({"scores": "p = MatMul(q, kt) x = Mul(p, z)"}, "not a scaled and masked product"),
        ({"inputs": HEADS.replace("v: float[b, 3, t, 4]", "v: float[c, 3, t, 4]")}, "do not fit, or only for some sizes"),
        ({"inputs": HEADS.replace("k: float[b, 3, t, 8]", "k: float[1, 3, t, 8]")}, "do not fit, or only for some sizes"),
        (
            {"scores": "p = MatMul(q, kt) x = Where(g, p, small)", "inputs": f"{HEADS}, g: bool[b, 1, s, t]"},
            "scores are replaced by -10000.0",
        ),
        (
            {"scores": "p = MatMul(q, kt) a = Where(g, z, small) x = Add(p, a)", "inputs": f"{HEADS}, g: bool[b, 1, s, 1]"},
            "the mask is",
        ),
        (
            {
                "scores": "p = MatMul(q, kt) a = Where(g, z, small) x = Add(p, a)",
                "inputs": f"{HEADS.replace('s', '1')}, g: bool[u, t]",
            },
            "not a scaled",
        ),
    ],
)
def test_declines(options, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(FUSE_ATTENTION, attention(**options))


def test_declines_half():
    """Half types would be rounded at other places."""
    text = attention("x = MatMul(q, kt)", inputs=HEADS.replace("float", "float16"))
    assert "expected float of known rank" in declines(FUSE_ATTENTION, text)


def test_declines_a_mask_that_makes_the_scores_larger():
    """One that has a batch where the queries have none."""
    inputs = "q: float[1, 3, s, 8], k: float[1, 3, t, 8], v: float[1, 3, t, 4], g: bool[b, 1, s, t]"
    text = attention("p = MatMul(q, kt) a = Where(g, z, small) x = Add(p, a)", inputs=inputs)
    assert "not a scaled and masked product" in declines(FUSE_ATTENTION, text)


def test_guard_of_another_number_stays():
    """A guard that puts in another number than 0 is none."""
    text = attention("x = MatMul(q, kt)", after="u = Softmax(x) {axis = -1} n = IsNaN(u) w = Where(n, one, u)")
    assert declines(FUSE_ATTENTION, text) == "no match"
