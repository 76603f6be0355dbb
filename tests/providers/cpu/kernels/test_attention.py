"""Attention on the CPU provider."""

import numpy as np
import pytest
from support.cpu_run import cpu_session, declined, reference, run_cpu, steps_of

from sardonyx.errors import InvalidArgument

FOUR = "q: float[b, 4, s, 12], k: float[b, {M}, t, 12], v: float[b, {M}, t, 10]"
THREE = "q: float[b, s, 48], k: float[b, t, 24], v: float[b, t, 20]"


def four(call="Attention(q, k, v)", inputs=None):
    return f"graph({inputs or FOUR.format(M=4)}) -> (y) {{ y = {call} }}"


def feeds_of(B, S, T, *, M=4, rank=4, seed=0):
    rng = np.random.default_rng(seed)
    shapes = {"q": (B, 4, S, 12), "k": (B, M, T, 12), "v": (B, M, T, 10)}
    if rank == 3:
        shapes = {name: (B, n, heads * size) for name, (_, heads, n, size) in shapes.items()}
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def close(body, feeds, **options):
    (found,) = run_cpu(body, feeds, opset=23, **options)
    (expected,) = reference(body, feeds, opset=23)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, atol=3e-6)


@pytest.mark.parametrize("M", [1, 2, 4])
def test_heads_as_a_dimension(M):
    """(B, H, S, D), with keys and values shared by groups of heads."""
    close(four(inputs=FOUR.format(M=M)), feeds_of(2, 17, 21, M=M))


def test_packed_heads():
    """(B, S, H x D), which gives the same shape."""
    close(four("Attention(q, k, v) {q_num_heads = 4, kv_num_heads = 2}", THREE), feeds_of(2, 17, 21, M=2, rank=3))


@pytest.mark.parametrize("attributes", ["scale = 0.25", "is_causal = 1", "softcap = 1.5", "softmax_precision = 1"])
def test_attributes(attributes):
    """Scale, future, capped scores."""
    close(four(f"Attention(q, k, v) {{{attributes}}}"), feeds_of(1, 30, 25))


@pytest.mark.parametrize(
    "shape", ["t", "1, t", "s, t", "1, 1, t", "4, s, t", "b, 1, 1, t", "1, 1, s, t", "b, 1, s, t", "b, 4, s, t"]
)
@pytest.mark.parametrize("dtype", ["float", "bool"])
def test_masks(shape, dtype):
    """Masks of each rank and way to broadcast, of numbers and of truth values."""
    feeds = feeds_of(2, 9, 21)
    sizes = [{"b": 2, "s": 9, "t": 21}.get(dim) or int(dim) for dim in shape.split(", ")]
    rng = np.random.default_rng(1)
    feeds["m"] = rng.random(sizes) > 0.4 if dtype == "bool" else rng.standard_normal(sizes).astype(np.float32)
    feeds["m"].reshape(-1, 21)[-1, :2] = True if dtype == "bool" else -np.inf
    close(four("Attention(q, k, v, m)", f"{FOUR.format(M=4)}, m: {dtype}[{shape}]"), feeds)


def test_shapes_change():
    """One session runs with any sizes, empty ones among them."""
    body = four("Attention(q, k, v, m)", f"{FOUR.format(M=2)}, m: bool[b, 1, s, t]")
    session = cpu_session(body, opset=23)
    for B, S, T in ((1, 1, 1), (2, 65, 33), (1, 0, 4), (2, 3, 0), (0, 3, 2), (1, 130, 260), (3, 16, 7)):
        feeds = feeds_of(B, S, T, M=2)
        feeds["m"] = np.random.default_rng(2).random((B, 1, S, T)) > 0.3
        np.testing.assert_allclose(session.run(None, feeds)[0], reference(body, feeds, opset=23)[0], atol=3e-6)


def test_a_mask_is_packed_once():
    """Nodes that read one mask share what is made of it."""
    body = f"""graph({FOUR.format(M=4)}, m: bool[b, 1, s, t], w: float[b, 4, t, 12]) -> (y) {{
        a = Attention(q, k, w, m) y = Attention(a, k, v, m) }}"""
    assert steps_of(body, opset=23) == ["Mask", "Pack", *["Attention"] * 6]
    feeds = feeds_of(2, 9, 21)
    feeds |= {"m": np.random.default_rng(2).random((2, 1, 9, 21)) > 0.3, "w": feeds["k"][::-1].copy()}
    close(body, feeds)


def test_bits_do_not_depend_on_threads():
    """One thread and two give the same bits."""
    feeds = feeds_of(2, 150, 140)
    one, two = (run_cpu(four(), feeds, opset=23, threads=threads)[0] for threads in (1, 2))
    assert np.array_equal(one, two)


MASKED = f"{FOUR.format(M=4)}, m: float[{{}}]"


@pytest.mark.parametrize(
    ("call", "inputs", "reason", "opset"),
    [
        ("Attention(q, k, v)", FOUR.format(M=4).replace("float", "float16"), "attention of elements of type float16", 23),
        ("Attention(q, k, v, _, p, r)", f"{FOUR.format(M=4)}, p: float[b, 3, u, 12], r: float[b, 4, u, 10]", "that do not fit", 23),
        ("Attention(q, k, v, _, _, _, n)", f"{FOUR.format(M=4)}, n: int64[b, 1]", "not one integer for each batch", 24),
        ("Attention(q, k, v) {left_window_size = 3}", FOUR.format(M=4), "a window", 25),
        ("Attention(q, k, v) {softmax_precision = 11}", FOUR.format(M=4), "a softmax of another precision", 23),
        ("Attention(q, k, v)", FOUR.format(M="h"), "the number of heads or their size is not known", 23),
        ("Attention(q, k, v, m)", MASKED.format("3, s, t"), "that does not broadcast to the scores", 23),
        ("Attention(q, k, v, m)", MASKED.format("s, t").replace("m: float", "m: double"), "a mask of", 23),
    ],
)
def test_declines(call, inputs, reason, opset):
    """What the kernel does not do is left to others."""
    assert reason in declined(four(call, inputs), opset=opset, is_rewritten=False)[0]


def test_declines_where_scores_are_asked_for():
    """Scores are not kept; a rule computes them by products."""
    body = f"graph({FOUR.format(M=4)}) -> (y, w) {{ y, _, _, w = Attention(q, k, v) }}"
    assert declined(body, opset=23, is_rewritten=False) == ["its scores are asked for"]
    assert declined(body, opset=23) == []


@pytest.mark.parametrize("attributes", ["", "{is_causal = 1}"])
@pytest.mark.parametrize("P", [0, 1, 30])
def test_keys_and_values_of_former_runs(P, attributes):
    """They come before the new ones, and all are given out."""
    body = f"""graph({FOUR.format(M=2)}, p: float[b, 2, u, 12], r: float[b, 2, u, 10]) -> (y, n, w) {{
        y, n, w = Attention(q, k, v, _, p, r) {attributes} }}"""
    feeds = feeds_of(2, 5, 7, M=2)
    rng = np.random.default_rng(4)
    feeds |= {name: rng.standard_normal((2, 2, P, size)).astype(np.float32) for name, size in (("p", 12), ("r", 10))}
    for found, expected in zip(run_cpu(body, feeds, opset=23), reference(body, feeds, opset=23), strict=True):
        np.testing.assert_allclose(found, expected, atol=3e-6)


def test_packed_keys_and_values_are_given_out_as_heads():
    """Packed keys and values, appended or not, become (B, M, T, D)."""
    body = f"""graph({THREE}) -> (y, n, w) {{ y, n, w = Attention(q, k, v) {{q_num_heads = 4, kv_num_heads = 2}} }}"""
    feeds = feeds_of(2, 5, 7, M=2, rank=3)
    for found, expected in zip(run_cpu(body, feeds, opset=23), reference(body, feeds, opset=23), strict=True):
        np.testing.assert_allclose(found, expected, atol=3e-6)


LOOSE = "q: float[b, 4, s, 12], k: float[c, 4, t, 12], v: float[d, 4, u, 10], m: float[e, f, g, h]"


@pytest.mark.parametrize("shape", [(2, 4, 9, 21), (1, 1, 9, 21), (2, 1, 1, 21), (1, 4, 9, 1), (1, 1, 1, 1)])
def test_dimensions_may_be_known_late(shape):
    """Dimensions that are equal, or 1, only when sizes are known."""
    feeds = feeds_of(2, 9, 21)
    close(four("Attention(q, k, v, m)", LOOSE), feeds | {"m": np.random.default_rng(1).standard_normal(shape).astype(np.float32)})


@pytest.mark.parametrize(
    ("name", "shape"), [("k", (3, 4, 21, 12)), ("v", (2, 4, 20, 10)), ("m", (2, 3, 9, 21)), ("m", (1, 1, 9, 2))]
)
def test_dimensions_that_do_not_fit_are_an_error(name, shape):
    """Sizes that contradict one another are refused before anything runs."""
    feeds = feeds_of(2, 9, 21) | {"m": np.zeros((1, 1, 1, 1), np.float32)}
    with pytest.raises(InvalidArgument):
        cpu_session(four("Attention(q, k, v, m)", LOOSE), opset=23).run(None, feeds | {name: np.zeros(shape, np.float32)})


def test_heads_are_read_from_where_they_lie():
    """Queries, keys and values that are split and transposed, and a result that is transposed back, cost no step."""
    body = """graph(x: float[b, s, 72]) -> (y) { five: int64[5] = [0, 0, 3, 4, 6] ax: int64[1] = [0] j: int64[3] = [0, 0, -1]
        r = Reshape(x, five) t = Transpose(r) {perm = [2, 0, 3, 1, 4]} a, c, d = Split(t) {axis = 0, num_outputs = 3}
        q = Squeeze(a, ax) k = Squeeze(c, ax) v = Squeeze(d, ax) h = Attention(q, k, v)
        u = Transpose(h) {perm = [0, 2, 1, 3]} w = Reshape(u, j) y = Relu(w) }"""
    assert list(dict.fromkeys(steps_of(body, opset=23))) == ["Attention", "Relu"]
    close(body, {"x": np.random.default_rng(0).standard_normal((2, 35, 72)).astype(np.float32)})


def test_packed_heads_are_read_from_where_they_lie():
    """Packed heads that are parts of a wider axis are read there."""
    body = """graph(x: float[b, s, 72]) -> (y) { q, k, v = Split(x) {axis = 2, num_outputs = 3}
        y = Attention(q, k, v) {q_num_heads = 4, kv_num_heads = 4} }"""
    assert set(steps_of(body, opset=23)) == {"Attention"}
    close(body, {"x": np.random.default_rng(0).standard_normal((2, 35, 72)).astype(np.float32)})


def test_heads_whose_elements_do_not_lie_in_order_are_copied():
    """A transpose that tears the elements of a head apart is made."""
    body = """graph(q: float[b, 4, 12, s], k: float[b, 4, t, 12], v: float[b, 4, t, 10]) -> (y) {
        u = Transpose(q) {perm = [0, 1, 3, 2]} y = Attention(u, k, v) }"""
    assert list(dict.fromkeys(steps_of(body, opset=23))) == ["Transpose", "Attention"]
    feeds = feeds_of(2, 9, 21)
    close(body, feeds | {"q": np.ascontiguousarray(feeds["q"].swapaxes(2, 3))})
