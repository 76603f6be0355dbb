"""Attention of few queries against float64."""

import ml_dtypes
import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import BF16, F16
from sardonyx.codegen.kernels.attention.row_parts import PIECE, RowAttentionParams, part_elements
from sardonyx.codegen.kernels.attention.rows import write_join, write_row_attention
from sardonyx.codegen.kernels.attention.scores import AttentionShape, Masking
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import available_levels, host_target

LEVELS = [level for level in available_levels() if level != "amx"]
KINDS = {
    "none": AttentionShape(Masking.NONE),
    "full": AttentionShape(Masking.FULL),
    "replacing": AttentionShape(Masking.FULL, replaces=True),
    "causal": AttentionShape(Masking.NONE, is_causal=True),
    "softcap": AttentionShape(Masking.FULL, softcap=2.0),
}


@pytest.fixture(scope="module")
def engines():
    made = {}
    for level in LEVELS:
        module = Module(host_target(level))
        for name, shape in KINDS.items():
            if level == LEVELS[-1] or name in ("none", "full"):
                write_row_attention(module, name, shape, has_lengths=False, has_past=False)
        write_row_attention(module, "lengths", KINDS["causal"], has_lengths=True, has_past=True)
        write_row_attention(module, "cached", KINDS["none"], has_lengths=False, has_past=True)
        write_row_attention(module, "named", KINDS["full"], has_lengths=False, has_past=True, names_rows=True)
        for kind in (F16, BF16):
            write_row_attention(module, kind.name, KINDS["none"], has_lengths=False, has_past=True, kind=kind)
        write_join(module, "join")
        made[level] = Engine(module.target)
        made[level].add(module)
    return made


def run(engine, kind, q, k, v, *, mask=None, scale=0.5, cut=None, past=0, lengths=None, pasts=None, window=1 << 40, streams=False):
    """Attend with queries (B, S, H, D), keys and values (B, M, T, D); the tasks are run in parts that end at `cut`."""
    (B, S, H, D), (_, M, T, _), Dv = q.shape, k.shape, v.shape[3]
    y = np.full((B, S, H, Dv), np.nan, np.float32)
    strides = {name: (x[0].size, x.shape[3], x.shape[2] * x.shape[3]) for name, x in (("q", q), ("y", y))}
    strides |= {name: (x[0].size, x[0, 0].size, x.shape[3]) for name, x in (("k", k), ("v", v))}
    masks, mask_strides = [], (0, 0, 0)
    if mask is not None:
        masks = [np.ascontiguousarray(mask, np.float32)]
        mask_strides = (0 if len(mask) == 1 else mask[0].size, 0, 0 if mask.shape[2] == 1 else T)
    P = 0 if pasts is None else pasts[0].shape[2]
    ways = {"mask": mask_strides, "window": window, "P": P, "N": S, "streams": streams}
    params = RowAttentionParams(B=B, M=M, group=H // M, S=S, T=T, D=D, Dv=Dv, scale=scale, past=past, **ways, **strides)
    parts = np.full((B, M, params.pieces, H // M * S, part_elements(Dv)), np.nan, np.float32)
    lengths = np.zeros((B, 2), np.int64) if lengths is None else np.array(lengths, np.int64)
    buffers = [q, k, v, y, parts, lengths, *(pasts or (k, v)), *masks]
    tasks = params.tasks()
    for begin, end in ((0, cut), (cut, tasks)) if cut else ((0, tasks),):
        call(engine, kind, buffers, params.words(), begin, end)
    call(engine, "join", buffers, params.words(), 0, params.joins())
    return y


def exact(kind, q, k, v, mask=None, scale=0.5, past=0, window=1 << 40):
    """The same in float64."""
    q, k, v = np.swapaxes(q.astype(np.float64), 1, 2), k.astype(np.float64), v.astype(np.float64)
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], axis=1) for x in (k, v))
    scores = q @ k.swapaxes(2, 3) * scale
    if KINDS[kind].softcap:
        scores = np.tanh(scores / KINDS[kind].softcap) * KINDS[kind].softcap
    if mask is not None:
        scores = scores + mask
    if KINDS[kind].is_causal:
        last = np.arange(scores.shape[2])[:, None] + past
        key = np.arange(scores.shape[3])
        scores = np.where((key <= last) & (key > last - window), scores, -np.inf)
    top = scores.max(-1, keepdims=True, initial=-np.inf)
    weights = np.exp(scores - np.where(np.isneginf(top), 0, top))
    total = weights.sum(-1, keepdims=True)
    return np.swapaxes(weights / np.where(total == 0, 1, total) @ v, 1, 2)


def arrays(B, S, T, H=2, M=2, D=8, Dv=8, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype(np.float32) for shape in ((B, S, H, D), (B, M, T, D), (B, M, T, Dv))]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("T", [1, 2, 5, 7, 8, 9, 15, 16, 17, 31, 33, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE + 17])
def test_keys_around_every_piece(engines, level, T):
    """Vectors and pieces of keys, and their tails, at each level."""
    q, k, v = arrays(2, 1, T)
    np.testing.assert_allclose(run(engines[level], "none", q, k, v), exact("none", q, k, v), atol=2e-6)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("D", "Dv"), [(1, 1), (3, 17), (16, 5), (17, 16), (31, 33), (64, 64), (64, 80), (128, 7), (130, 130)])
def test_sizes_of_heads(engines, level, D, Dv):
    """Head sizes that are no multiple of a vector, and that differ between keys and values."""
    q, k, v = arrays(1, 2, 300, D=D, Dv=Dv)
    np.testing.assert_allclose(run(engines[level], "none", q, k, v), exact("none", q, k, v), atol=1e-5)


@pytest.mark.parametrize(("S", "H", "M"), [(1, 6, 2), (3, 4, 4), (5, 6, 2), (8, 3, 1), (1, 8, 1)])
def test_rows_that_share_keys(engines, S, H, M):
    """Groups of heads, and some queries of each, in tiles of rows and alone."""
    q, k, v = arrays(2, S, 270, H=H, M=M)
    np.testing.assert_allclose(run(engines[LEVELS[-1]], "none", q, k, v), exact("none", q, k, v), atol=2e-6)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("T", [19, 300])
def test_masks_at_each_level(engines, level, T):
    """A mask of pairs is read row by row."""
    q, k, v = arrays(2, 3, T)
    mask = np.random.default_rng(6).standard_normal((2, 1, 3, T))
    np.testing.assert_allclose(run(engines[level], "full", q, k, v, mask=mask), exact("full", q, k, v, mask=mask), atol=2e-6)


@pytest.mark.parametrize("kind", ["full", "replacing", "softcap"])
@pytest.mark.parametrize("rows", [1, 5])
def test_masks_with_hidden_keys(engines, kind, rows):
    """Masks of keys and of pairs, beside capped scores too; whole rows that see nothing give zeros."""
    q, k, v = arrays(2, 5, 280)
    rng = np.random.default_rng(5)
    mask = rng.standard_normal((2, 1, rows, 280))
    mask = np.where(rng.random(mask.shape) > 0.5, 0 if kind == "replacing" else mask, -np.inf)
    mask[1, 0, 0] = -np.inf
    found = run(engines[LEVELS[-1]], kind, q, k, v, mask=mask)
    np.testing.assert_allclose(found, exact(kind, q, k, v, mask=mask), atol=2e-6)
    assert (found[1, 0] == 0).all()


@pytest.mark.parametrize("window", [1, 3, 290, 1 << 40])
def test_causal_queries_see_a_window(engines, window):
    """Those of the past that the window leaves, and none after their own."""
    q, k, v = arrays(1, 4, 310)
    found = run(engines[LEVELS[-1]], "causal", q, k, v, past=300, window=window)
    np.testing.assert_allclose(found, exact("causal", q, k, v, past=300, window=window), atol=2e-6)


def test_keys_that_no_query_sees_are_not_read(engines):
    """What is behind the end of a sequence may be NaN."""
    q, k, v = arrays(1, 2, 600)
    k[:, :, 402:], v[:, :, 402:] = np.nan, np.nan
    found = run(engines[LEVELS[-1]], "causal", q, k, v, past=400)
    np.testing.assert_allclose(found, exact("causal", q, k[:, :, :402], v[:, :, :402], past=400), atol=2e-6)


@pytest.mark.parametrize("level", LEVELS)
def test_former_runs_are_copied_into_the_cache(engines, level):
    """Each batch has a length of its own; behind its end the cache is cleared, and its new rows stay."""
    B, S, C, P = 2, 2, 700, 650
    q, k, v = arrays(B, S, C, H=4)
    _, old_k, old_v = arrays(B, S, P, H=4, seed=1)
    lengths = [(600, 602), (0, 2)]
    found = run(engines[level], "lengths", q, k, v, lengths=lengths, pasts=(old_k, old_v))
    for batch, (past, total) in enumerate(lengths):
        np.testing.assert_array_equal(k[batch, :, :past], old_k[batch, :, :past])
        np.testing.assert_array_equal(v[batch, :, :past], old_v[batch, :, :past])
        assert not k[batch, :, total:].any()
        assert not v[batch, :, total:].any()
        assert k[batch, :, past:total].all()
        one = slice(batch, batch + 1)
        wanted = exact("causal", q[one], k[one, :, :total], v[one, :, :total], past=past)
        np.testing.assert_allclose(found[one], wanted, atol=2e-6)


def test_a_cache_in_place_is_left_alone(engines):
    """Where former keys are the cache itself, nothing of it is written."""
    q, k, v = arrays(1, 1, 400)
    before = k.copy(), v.copy()
    found = run(engines[LEVELS[-1]], "lengths", q, k, v, lengths=[(300, 301)], pasts=(k, v))
    np.testing.assert_array_equal(k, before[0])
    np.testing.assert_array_equal(v, before[1])
    np.testing.assert_allclose(found, exact("causal", q, k[:, :, :301], v[:, :, :301], past=300), atol=2e-6)


def test_former_runs_without_lengths(engines):
    """The past is a parameter where it is the same for all."""
    q, k, v = arrays(2, 3, 403)
    _, old_k, old_v = arrays(2, 3, 400, seed=1)
    found = run(engines[LEVELS[-1]], "cached", q, k, v, past=400, pasts=(old_k, old_v))
    np.testing.assert_array_equal(k[:, :, :400], old_k)
    np.testing.assert_allclose(found, exact("none", q, k, v), atol=2e-6)


def aligned(shape):
    """An array of zeros at a multiple of 64 bytes."""
    size = int(np.prod(shape))
    room = np.zeros(size + 16, np.float32)
    return room[-room.ctypes.data // 4 % 16 :][:size].reshape(shape)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("D", "skew"), [(16, 0), (16, 1), (8, 0), (12, 0)])
def test_many_former_keys_are_written_past_the_caches(engines, level, D, skew):
    """The cache and the result have the bits that they have otherwise, wherever the cache lies."""
    q, k, v = arrays(2, 3, 803, D=D, Dv=D)
    pasts = tuple(arrays(2, 3, 800, D=D, Dv=D, seed=1)[1:])
    wanted = run(engines[level], "cached", q, k, v, past=800, pasts=pasts)
    caches = [aligned(k.size + 16)[skew : skew + k.size].reshape(k.shape) for _ in range(2)]
    for cache, rows in zip(caches, (k, v), strict=True):
        cache[:, :, 800:] = rows[:, :, 800:]
    found = run(engines[level], "cached", q, *caches, past=800, pasts=pasts, streams=True)
    np.testing.assert_array_equal(found, wanted)
    for cache, rows in zip(caches, (k, v), strict=True):
        np.testing.assert_array_equal(cache, rows)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize(("name", "dtype"), [("float16", np.float16), ("bfloat16", ml_dtypes.bfloat16)])
def test_keys_and_values_of_16_bits(engines, level, name, dtype, streams):
    """They are read as the numbers that they are, and copied as they are."""
    q, k, v = arrays(2, 3, 603, D=17, Dv=33)
    k, v = k.astype(dtype), v.astype(dtype)
    pasts = tuple(array.astype(dtype) for array in arrays(2, 3, 600, D=17, Dv=33, seed=1)[1:])
    found = run(engines[level], name, q, k, v, past=600, pasts=pasts, streams=streams)
    np.testing.assert_array_equal(k[:, :, :600], pasts[0])
    np.testing.assert_array_equal(v[:, :, :600], pasts[1])
    np.testing.assert_allclose(found, exact("none", q, k, v), atol=2e-6)


def test_no_keys_give_zeros(engines):
    """Without keys nothing is seen."""
    q, k, v = arrays(1, 5, 0)
    assert (run(engines[LEVELS[-1]], "none", q, k, v) == 0).all()


def test_no_queries_are_no_task():
    """Without queries there is nothing to do."""
    strides = dict.fromkeys("qkvy", (0, 0, 0))
    assert RowAttentionParams(B=1, M=2, group=1, S=0, T=5, D=8, Dv=8, scale=1, **strides).tasks() == 0


def test_nan_and_infinity(engines):
    """A query with NaN or an infinite score gives NaN, its neighbours do not notice."""
    q, k, v = arrays(1, 6, 300)
    q[0, 3], q[0, 5] = np.nan, np.inf
    found = run(engines[LEVELS[-1]], "none", q, k, v)
    assert np.flatnonzero(np.isnan(found).any(axis=(0, 2, 3))).tolist() == [3, 5]
    assert np.isnan(found[0, [3, 5]]).all()


def test_large_scores_do_not_overflow(engines):
    """Scores of hundreds, in later pieces of keys larger than before, stay exact."""
    q, k, v = arrays(1, 2, 900)
    k *= np.linspace(1, 200, 900, dtype=np.float32)[None, None, :, None]
    np.testing.assert_allclose(run(engines[LEVELS[-1]], "none", q, k, v), exact("none", q, k, v), atol=2e-4)


def test_bits_do_not_depend_on_tasks_and_batch(engines):
    """The same queries give the same bits with other tasks, in a batch or alone, beside other rows or none."""
    engine = engines[LEVELS[-1]]
    q, k, v = arrays(3, 5, 600)
    whole = run(engine, "none", q, k, v)
    assert np.array_equal(whole, run(engine, "none", q, k, v, cut=7))
    alone = run(engine, "none", *(np.ascontiguousarray(x[1:2]) for x in (q, k, v)))
    assert np.array_equal(whole[1:2], alone)
    one = run(engine, "none", np.ascontiguousarray(q[:, 3:4]), k, v)
    assert np.array_equal(whole[:, 3:4], one)


def attend_named(engine, named, *, former=3, S=1):
    """Attend with three former keys of `former` rows, of which each batch names one; keys, values, the result and the status."""
    B, M, P, D = len(named), 2, 3, 8
    q, k, v = arrays(B, 1, P + 1)
    pasts = arrays(former, 1, P, seed=4)[1:]
    mask = np.zeros((1, 1, 1, P + 1), np.float32)
    y, status = np.zeros((B, 1, 2, D), np.float32), np.zeros(1, np.int64)
    places = {name: (x[0].size, D, 2 * D) for name, x in (("q", q), ("y", y))} | dict.fromkeys("kv", (k[0].size, k[0, 0].size, D))
    params = RowAttentionParams(B, M, 1, S, P + 1, D, D, 0.5, past=P, P=P, N=1, former=former, **places)
    parts = np.zeros((B, M, 1, 1, part_elements(D)), np.float32)
    buffers = [q, k, v, y, parts, np.zeros((B, 2), np.int64), *pasts, mask, np.array(named, np.int64), status]
    call(engine, "named", buffers, params.words(), 0, params.tasks())
    return k, v, y, pasts, q, int(status[0])


@pytest.mark.parametrize("level", LEVELS)
def test_each_batch_names_the_row_it_goes_on_from(engines, level):
    """Former keys and values are those of the named rows, of which one may be named twice, and counted from the last."""
    k, v, y, pasts, q, status = attend_named(engines[level], [2, 0, -1, 2])
    for cache, past in ((k, pasts[0]), (v, pasts[1])):
        np.testing.assert_array_equal(cache[:, :, :3], past[[2, 0, 2, 2]])
    np.testing.assert_allclose(y, exact("full", q, k, v, mask=np.zeros((1, 1, 1, 4))), atol=2e-6)
    assert status == 0


def test_without_queries_named_rows_are_copied(engines):
    """As before a step for many queries."""
    k, _, y, pasts, _, _ = attend_named(engines[LEVELS[-1]], [1, 1], S=0)
    np.testing.assert_array_equal(k[:, :, :3], pasts[0][[1, 1]])
    assert not y.any()


@pytest.mark.parametrize(("named", "former"), [([0, 3], 3), ([-4, 0], 3), ([0, 1 << 62], 3), ([0, 0], 0)])
def test_a_row_that_there_was_not_is_reported(engines, named, former):
    """Nothing outside the former keys is read."""
    assert attend_named(engines[LEVELS[-1]], named, former=former)[-1] == 1
