"""Attention of few queries on the CPU provider: the same as with many, by other steps."""

import numpy as np
import pytest
from support.cpu_run import cpu_session, reference, run_cpu, steps_of

from sardonyx.errors import InvalidArgument

CACHED = """graph(q: float[b, 4, s, 12], k: float[b, 2, n, 12], v: float[b, 2, n, 10], m: float[b, 1, s, t],
    pk: float[b, 2, p, 12], pv: float[b, 2, p, 10]) -> (y, keys, values) {
    y, keys, values = Attention(q, k, v, m, pk, pv) }"""


def cached(B, S, P, *, N=None, seed=0):
    rng, N = np.random.default_rng(seed), S if N is None else N
    shapes = {"q": (B, 4, S, 12), "k": (B, 2, N, 12), "v": (B, 2, N, 10), "m": (B, 1, S, P + N)}
    shapes |= {"pk": (B, 2, P, 12), "pv": (B, 2, P, 10)}
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


@pytest.mark.parametrize("S", [1, 2, 8, 9])
@pytest.mark.parametrize("P", [0, 1, 31, 255, 256, 600])
def test_former_keys_are_copied_and_read(S, P):
    """Whether queries are few or one more."""
    feeds = cached(2, S, P)
    for found, wanted in zip(run_cpu(CACHED, feeds, opset=23), reference(CACHED, feeds, opset=23), strict=True):
        np.testing.assert_allclose(found, wanted, atol=3e-6)


@pytest.mark.parametrize("N", [0, 5])
def test_new_keys_need_not_be_as_many_as_queries(N):
    """As where keys come from elsewhere."""
    feeds = cached(2, 2, 300, N=N)
    for found, wanted in zip(run_cpu(CACHED, feeds, opset=23), reference(CACHED, feeds, opset=23), strict=True):
        np.testing.assert_allclose(found, wanted, atol=3e-6)


def test_former_keys_are_copied_without_queries():
    """The caches are what they were, and the new keys."""
    feeds = cached(2, 0, 300, N=2)
    for found, wanted in zip(run_cpu(CACHED, feeds, opset=23), reference(CACHED, feeds, opset=23), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_one_session_takes_few_and_many_queries():
    """A prompt, then token after token, in one session."""
    session = cpu_session(CACHED, opset=23)
    for S, P in ((40, 0), (1, 40), (1, 41), (8, 42), (20, 50), (1, 0)):
        feeds = cached(2, S, P)
        for found, wanted in zip(session.run(None, feeds), reference(CACHED, feeds, opset=23), strict=True):
            np.testing.assert_allclose(found, wanted, atol=3e-6)


def test_sizes_that_are_known_need_one_way_only():
    """Few queries no block of many, and many no row."""
    one = "graph(q: float[b, 4, {S}, 12], k: float[b, 4, t, 12], v: float[b, 4, t, 12]) -> (y) {{ y = Attention(q, k, v) }}"
    assert steps_of(one.format(S=1), opset=23) == ["Attention"] * 2
    assert steps_of(one.format(S=40), opset=23) == ["Attention"]


@pytest.mark.parametrize("shape", ["t", "1, 1", "1, t", "s, 1", "4, s, t", "b, 1, 1, t", "1, 4, s, t", "b, 4, 1, 1"])
@pytest.mark.parametrize("dtype", ["float", "bool"])
def test_masks(shape, dtype):
    """Masks of each way to broadcast, of numbers and of truth values."""
    body = f"""graph(q: float[b, 4, s, 12], k: float[b, 2, t, 12], v: float[b, 2, t, 12], m: {dtype}[{shape}]) -> (y) {{
        y = Attention(q, k, v, m) }}"""
    rng = np.random.default_rng(1)
    sizes = [{"b": 2, "s": 3, "t": 300}.get(dim) or int(dim) for dim in shape.split(", ")]
    feeds = {
        "q": rng.standard_normal((2, 4, 3, 12)),
        "k": rng.standard_normal((2, 2, 300, 12)),
        "v": rng.standard_normal((2, 2, 300, 12)),
    }
    feeds = {name: array.astype(np.float32) for name, array in feeds.items()}
    feeds["m"] = rng.random(sizes) > 0.4 if dtype == "bool" else rng.standard_normal(sizes).astype(np.float32)
    np.testing.assert_allclose(run_cpu(body, feeds, opset=23)[0], reference(body, feeds, opset=23)[0], atol=3e-6)


@pytest.mark.parametrize("attributes", ["scale = 0.25", "is_causal = 1", "softcap = 1.5"])
def test_attributes(attributes):
    """Scale, future, capped scores."""
    body = f"""graph(q: float[b, 4, s, 12], k: float[b, 4, t, 12], v: float[b, 4, t, 12]) -> (y) {{
        y = Attention(q, k, v) {{{attributes}}} }}"""
    rng = np.random.default_rng(1)
    feeds = {name: rng.standard_normal((2, 4, n, 12)).astype(np.float32) for name, n in (("q", 5), ("k", 290), ("v", 290))}
    np.testing.assert_allclose(run_cpu(body, feeds, opset=23)[0], reference(body, feeds, opset=23)[0], atol=3e-6)


def test_a_mask_that_does_not_fit_is_an_error():
    """As with many queries."""
    session = cpu_session(CACHED, opset=23)
    feeds = cached(2, 1, 6) | {"m": np.zeros((2, 1, 1, 9), np.float32)}
    with pytest.raises(InvalidArgument, match="9"):
        session.run(None, feeds)


def test_bits_do_not_depend_on_threads_and_batch():
    """A row of a batch is the same alone, and on several threads."""
    feeds = cached(3, 1, 700)
    whole = cpu_session(CACHED, opset=23, threads=1).run(None, feeds)
    for found, wanted in zip(cpu_session(CACHED, opset=23, threads=4).run(None, feeds), whole, strict=True):
        np.testing.assert_array_equal(found, wanted)
    alone = cpu_session(CACHED, opset=23, threads=1).run(None, {name: array[1:2] for name, array in feeds.items()})
    np.testing.assert_array_equal(alone[0], whole[0][1:2])


JOINT = """graph(q: float[b, 4, s, 12], k: float[b, 2, n, 12], v: float[b, 2, n, 12], past: float[2, b, 2, p, 12], rows: int64[b]) -> (
    y, keys, values) {
    picked = Gather(past, rows) {axis = 1}
    one_key, one_value = Split(picked) {num_outputs = 2}
    axis: int64[1] = [0]
    pk = Squeeze(one_key, axis) pv = Squeeze(one_value, axis)
    y, keys, values = Attention(q, k, v, _, pk, pv) }"""
APART = """graph(q: float[b, 4, s, 12], k: float[b, 2, n, 12], v: float[b, 2, n, 10], m: float[b, 1, s, t],
    pk: float[a, 2, p, 12], pv: float[a, 2, p, 10], rows: int64[b]) -> (y, keys, values) {
    gk = Gather(pk, rows) gv = Gather(pv, rows)
    y, keys, values = Attention(q, k, v, m, gk, gv) }"""


def joint(S, P, rows=(2, 0, -1), N=None):
    feeds = cached(3, S, P, N=N)
    past = np.stack([feeds.pop("pk"), np.random.default_rng(9).standard_normal((3, 2, P, 12)).astype(np.float32)])
    del feeds["pv"], feeds["m"]
    return feeds | {"past": past, "v": feeds["v"].repeat(2, axis=3)[..., :12].copy(), "rows": np.array(rows)}


def test_picked_rows_are_copied_once():
    """Keys and values that a Gather picks for beams go from before it into the cache: there is no step that gathers."""
    assert "Gather" not in steps_of(JOINT, opset=23)
    same = APART.replace("float[a", "float[b")
    assert "Gather" not in steps_of(same, opset=23)
    assert "Gather" in steps_of(APART, opset=23)


@pytest.mark.parametrize("together", [True, False])
def test_picked_rows_are_those_of_few_and_of_many_queries(together):
    """In one session: a prompt without former keys, single tokens, some of both, and no queries."""
    body = JOINT if together else APART.replace("float[a", "float[b")
    session = cpu_session(body, opset=23)
    for S, P, N in ((20, 0, None), (1, 20, None), (1, 300, None), (8, 30, None), (20, 290, None), (0, 7, 2), (1, 21, None)):
        feeds = joint(S, P, N=N) if together else cached(3, S, P, N=N) | {"rows": np.array([2, 0, -1])}
        for found, wanted in zip(session.run(None, feeds), reference(body, feeds, opset=23), strict=True):
            np.testing.assert_allclose(found, wanted, atol=3e-6)


@pytest.mark.parametrize("S", [1, 20])
@pytest.mark.parametrize("rows", [(0, 3, 0), (0, 0, -4)])
def test_rows_that_there_are_not_are_an_error(S, rows):
    """Whether queries are few or many."""
    with pytest.raises(InvalidArgument, match="name one that former runs did not have"):
        run_cpu(JOINT, joint(S, 5, rows), opset=23)


def test_picked_rows_that_are_given_out_are_gathered_too():
    """A result of the model is made, whoever else reads before it."""
    body = JOINT.replace("y, keys, values) {", "y, keys, values, picked) {", 1)
    feeds = joint(1, 40)
    for found, wanted in zip(run_cpu(body, feeds, opset=23), reference(body, feeds, opset=23), strict=True):
        np.testing.assert_allclose(found, wanted, atol=3e-6)
