"""Attention on the CPU provider."""

import numpy as np
import pytest
from support.cpu import cpu_session, declined, kernels_of, reference, run_cpu

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
    assert kernels_of(body, opset=23) == ["Mask", "Pack", "Attention", "Attention"]
    feeds = feeds_of(2, 9, 21)
    feeds |= {"m": np.random.default_rng(2).random((2, 1, 9, 21)) > 0.3, "w": feeds["k"][::-1].copy()}
    close(body, feeds)


def test_bits_do_not_depend_on_threads():
    """One thread and two give the same bits."""
    feeds = feeds_of(2, 150, 140)
    one, two = (run_cpu(four(), feeds, opset=23, threads=threads)[0] for threads in (1, 2))
    assert np.array_equal(one, two)


@pytest.mark.parametrize(("call", "inputs", "reason"), [
    ("Attention(q, k, v)", FOUR.format(M=4).replace("float", "float16"), "attention of other types than float"),
    ("Attention(q, k, v, _, p, r)", f"{FOUR.format(M=4)}, p: float[b, 4, u, 12], r: float[b, 4, u, 10]",
     "keys and values of former runs"),
    ("Attention(q, k, v) {softmax_precision = 11}", FOUR.format(M=4), "a softmax of another precision"),
    ("Attention(q, k, v)", FOUR.format(M="h"), "the number of heads or their size is not known"),
    ("Attention(q, k, v)", FOUR.format(M=4).replace("v: float[b, 4, t", "v: float[b, 4, u"), "that queries, keys and values fit"),
    ("Attention(q, k, v, m)", f"{FOUR.format(M=4)}, m: float[s, u]", "a mask that does not go along all keys"),
    ("Attention(q, k, v, m)", f"{FOUR.format(M=4)}, m: float[u, t]", "how the mask is broadcast depends on sizes"),
    ("Attention(q, k, v, m)", f"{FOUR.format(M=4)}, m: double[s, t]", "a mask of"),
])  # fmt: skip
def test_declines(call, inputs, reason):
    """What the kernel does not do is left to others."""
    assert reason in declined(four(call, inputs), opset=23)[0]


def test_declines_where_keys_are_asked_for():
    """Further outputs are left to others."""
    body = f"graph({FOUR.format(M=4)}) -> (y, p, r) {{ y, p, r = Attention(q, k, v) }}"
    assert declined(body, opset=23) == ["its keys, values or scores are asked for"]


def test_heads_are_read_from_where_they_lie():
    """Queries, keys and values that are split and transposed, and a result that is transposed back, cost no step."""
    body = """graph(x: float[b, s, 72]) -> (y) { five: int64[5] = [0, 0, 3, 4, 6] ax: int64[1] = [0] j: int64[3] = [0, 0, -1]
        r = Reshape(x, five) t = Transpose(r) {perm = [2, 0, 3, 1, 4]} a, c, d = Split(t) {axis = 0, num_outputs = 3}
        q = Squeeze(a, ax) k = Squeeze(c, ax) v = Squeeze(d, ax) h = Attention(q, k, v)
        u = Transpose(h) {perm = [0, 2, 1, 3]} w = Reshape(u, j) y = Relu(w) }"""
    assert kernels_of(body, opset=23) == ["Attention+Transpose", "Relu"]
    close(body, {"x": np.random.default_rng(0).standard_normal((2, 35, 72)).astype(np.float32)})


def test_packed_heads_are_read_from_where_they_lie():
    """Packed heads that are parts of a wider axis are read there."""
    body = """graph(x: float[b, s, 72]) -> (y) { q, k, v = Split(x) {axis = 2, num_outputs = 3}
        y = Attention(q, k, v) {q_num_heads = 4, kv_num_heads = 4} }"""
    assert kernels_of(body, opset=23) == ["Attention"]
    close(body, {"x": np.random.default_rng(0).standard_normal((2, 35, 72)).astype(np.float32)})


def test_heads_whose_elements_do_not_lie_in_order_are_copied():
    """A transpose that tears the elements of a head apart is made."""
    body = """graph(q: float[b, 4, 12, s], k: float[b, 4, t, 12], v: float[b, 4, t, 10]) -> (y) {
        u = Transpose(q) {perm = [0, 1, 3, 2]} y = Attention(u, k, v) }"""
    assert kernels_of(body, opset=23) == ["Transpose", "Attention"]
    feeds = feeds_of(2, 9, 21)
    close(body, feeds | {"q": np.ascontiguousarray(feeds["q"].swapaxes(2, 3))})
