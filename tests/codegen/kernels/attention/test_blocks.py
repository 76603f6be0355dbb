"""The attention kernel against float64."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.kernels.attention.block_params import BLOCK_KEYS, AttentionParams, scratch_elements, together
from sardonyx.codegen.kernels.attention.blocks import write_attention
from sardonyx.codegen.kernels.attention.scores import AttentionShape, Masking
from sardonyx.codegen.kernels.gemm import tiling
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import available_levels, host_target

LEVELS = [level for level in available_levels() if level != "amx"]
KINDS = {
    "none": AttentionShape(Masking.NONE),
    "keys": AttentionShape(Masking.KEYS),
    "full": AttentionShape(Masking.FULL),
    "replacing": AttentionShape(Masking.FULL, replaces=True),
    "causal": AttentionShape(Masking.NONE, is_causal=True),
    "softcap": AttentionShape(Masking.KEYS, softcap=2.0),
}


@pytest.fixture(scope="module")
def engines():
    made = {}
    for level in LEVELS:
        module = Module(host_target(level))
        for name, shape in KINDS.items():
            if level == LEVELS[-1] or name in ("none", "full"):
                write_attention(module, name, shape)
        made[level] = Engine(module.target)
        made[level].add(module)
    return made


def run(engine, kind, q, k, v, *, mask=None, scale=0.5, threads=1, cut=None, past=0):
    """Attend with (B, S, H, D) arrays; the tasks are run in parts that end at `cut`."""
    target = engine.target
    (B, S, H, D), (_, T, M, _), Dv = q.shape, k.shape, v.shape[3]
    y = np.full((B, S, H, Dv), np.nan, np.float32)
    strides = {name: (x[0].size, x.shape[3], x.shape[2] * x.shape[3]) for name, x in (("q", q), ("k", k), ("v", v), ("y", y))}
    masks, mask_strides = [], (0, 0)
    if mask is not None:
        masks, mask_strides = [packed(mask, target)], (0 if len(mask) == 1 else packed(mask[:1], target).size, 0)
    params = AttentionParams(B=B, H=H, group=H // M, S=S, T=T, D=D, Dv=Dv, scale=scale, past=past, mask=mask_strides, **strides)
    scratch = np.full((together(threads), scratch_elements(target, D, Dv)), np.nan, np.float32)
    tasks = params.tasks(target, threads)
    for begin, end in ((0, cut), (cut, tasks)) if cut else ((0, tasks),):
        call(engine, kind, [q, k, v, y, scratch, *masks], params.words(target, threads), begin, end)
    return y


def packed(mask, target):
    """(B, 1, S, T) as panels of queries along the lanes, (B, 1, 1, T) as it is."""
    B, _, S, T = mask.shape
    if S == 1:
        return np.ascontiguousarray(mask, np.float32)
    width = tiling(target).panel
    padded = np.zeros((B, -(-S // width) * width, T), np.float32)
    padded[:, :S] = mask[:, 0]
    return np.ascontiguousarray(padded.reshape(B, -1, width, T).transpose(0, 1, 3, 2))


def exact(kind, q, k, v, mask=None, scale=0.5, past=0):
    """The same in float64."""
    q, k, v = (np.swapaxes(x.astype(np.float64), 1, 2) for x in (q, k, v))
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], axis=1) for x in (k, v))
    scores = q @ k.swapaxes(2, 3) * scale
    if KINDS[kind].softcap:
        scores = np.tanh(scores / KINDS[kind].softcap) * KINDS[kind].softcap
    if mask is not None:
        scores = scores + mask
    if KINDS[kind].is_causal:
        scores = np.where(np.tri(*scores.shape[2:], past, dtype=bool), scores, -np.inf)
    top = scores.max(-1, keepdims=True, initial=-np.inf)
    weights = np.exp(scores - np.where(np.isneginf(top), 0, top))
    total = weights.sum(-1, keepdims=True)
    return np.swapaxes(weights / np.where(total == 0, 1, total) @ v, 1, 2)


def arrays(B, S, T, H=2, M=2, D=8, Dv=8, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype(np.float32) for shape in ((B, S, H, D), (B, T, M, D), (B, T, M, Dv))]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("S", [1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 47, 63, 64, 65, 97, 131])
def test_queries_around_every_width(engines, level, S):
    """Blocks of queries and their tails, at each level."""
    q, k, v = arrays(2, S, 19)
    np.testing.assert_allclose(run(engines[level], "none", q, k, v), exact("none", q, k, v), atol=2e-6)


@pytest.mark.parametrize("S", [1, 3, 70])
def test_causal_queries_see_the_keys_before_them(engines, S):
    """Those of the past, be they more than a block of queries is wide, and none after their own."""
    q, k, v = arrays(1, S, 150 + S + 9)
    found = run(engines[LEVELS[-1]], "causal", q, k, v, past=150)
    np.testing.assert_allclose(found, exact("causal", q, k, v, past=150), atol=2e-6)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("T", [1, 2, 5, 6, 7, 11, 13, BLOCK_KEYS - 1, BLOCK_KEYS, BLOCK_KEYS + 1, 2 * BLOCK_KEYS + 3])
def test_keys_around_every_block(engines, level, T):
    """Tiles and blocks of keys, and their tails, at each level."""
    q, k, v = arrays(1, 21, T)
    np.testing.assert_allclose(run(engines[level], "none", q, k, v), exact("none", q, k, v), atol=2e-6)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("D", "Dv"), [(1, 1), (3, 17), (16, 5), (17, 16), (31, 33), (64, 80), (128, 7)])
def test_sizes_of_heads(engines, level, D, Dv):
    """Head sizes that are no multiple of a vector, and that differ between keys and values."""
    q, k, v = arrays(1, 20, 23, D=D, Dv=Dv)
    np.testing.assert_allclose(run(engines[level], "none", q, k, v), exact("none", q, k, v), atol=1e-5)


def test_heads_share_keys_and_values(engines):
    """Groups of query heads read one head of keys and values."""
    q, k, v = arrays(2, 18, 30, H=6, M=2)
    np.testing.assert_allclose(run(engines[LEVELS[-1]], "none", q, k, v), exact("none", q, k, v), atol=2e-6)


@pytest.mark.parametrize("kind", ["keys", "full", "replacing", "causal", "softcap"])
@pytest.mark.parametrize("S", [5, 64, 90])
def test_masks(engines, kind, S):
    """Masks of keys and of pairs, the future, and capped scores; whole rows that see nothing give zeros."""
    q, k, v = arrays(2, S, 140)
    mask = None
    if kind != "causal":
        rng = np.random.default_rng(5)
        mask = rng.standard_normal((2, 1, 1 if kind in ("keys", "softcap") else S, 140))
        mask = np.where(rng.random(mask.shape) > 0.5, 0 if kind == "replacing" else mask, -np.inf)
        mask[1, 0, 0] = -np.inf
    found = run(engines[LEVELS[-1]], kind, q, k, v, mask=mask)
    np.testing.assert_allclose(found, exact(kind, q, k, v, mask=mask), atol=2e-6)
    assert mask is None or (found[1, 0] == 0).all()


@pytest.mark.parametrize("level", LEVELS)
def test_masks_of_pairs_at_each_level(engines, level):
    """The panels of a mask are as wide as those of the queries."""
    q, k, v = arrays(2, 75, 9)
    mask = np.random.default_rng(6).standard_normal((1, 1, 75, 9))
    np.testing.assert_allclose(run(engines[level], "full", q, k, v, mask=mask), exact("full", q, k, v, mask=mask), atol=2e-6)


def test_no_keys_give_zeros(engines):
    """Without keys nothing is seen."""
    q, k, v = arrays(1, 5, 0)
    assert (run(engines[LEVELS[-1]], "none", q, k, v) == 0).all()


def test_no_queries_are_no_task(engines):
    """Without queries there is nothing to do."""
    q, k, v = arrays(1, 0, 5)
    assert run(engines[LEVELS[-1]], "none", q, k, v).size == 0


def test_nan_and_infinity(engines):
    """A query with NaN or an infinite score gives NaN, its neighbours do not notice."""
    q, k, v = arrays(1, 70, 200)
    q[0, 3], q[0, 66] = np.nan, np.inf
    found = run(engines[LEVELS[-1]], "none", q, k, v)
    touched = np.isnan(found).any(axis=(0, 2, 3))
    assert np.flatnonzero(touched).tolist() == [3, 66]
    assert np.isnan(found[0, [3, 66]]).all()


def test_masked_scores_may_be_nan_where_the_mask_replaces(engines):
    """A key that is not seen does no harm, whatever it is, unless its value is no number."""
    q, k, v = arrays(1, 20, 9)
    k[0, 4] = np.nan
    mask = np.zeros((1, 1, 20, 9))
    mask[..., 4] = -np.inf
    found = run(engines[LEVELS[-1]], "replacing", q, k, v, mask=mask)
    k[0, 4] = 0
    np.testing.assert_allclose(found, exact("full", q, k, v, mask=mask), atol=2e-6)


def test_large_scores_do_not_overflow(engines):
    """Scores of hundreds, in later blocks of keys larger than before, stay exact."""
    q, k, v = arrays(1, 17, 300)
    k *= np.linspace(1, 200, 300, dtype=np.float32)[None, :, None, None]
    np.testing.assert_allclose(run(engines[LEVELS[-1]], "none", q, k, v), exact("none", q, k, v), atol=2e-4)


def test_bits_do_not_depend_on_threads_and_batch(engines):
    """The same queries give the same bits with other tasks, in a batch or alone, and wherever they stand in a block."""
    engine = engines[LEVELS[-1]]
    q, k, v = arrays(3, 100, 150)
    whole = run(engine, "none", q, k, v)
    assert np.array_equal(whole, run(engine, "none", q, k, v, threads=2, cut=3))
    alone = run(engine, "none", *(np.ascontiguousarray(x[1:2]) for x in (q, k, v)))
    assert np.array_equal(whole[1:2], alone)
    some = run(engine, "none", np.ascontiguousarray(q[:, 41:60]), k, v)
    assert np.array_equal(whole[:, 41:60], some)


def test_memory_beyond_the_result_stays(engines):
    """Only the rows of the result are written."""
    engine = engines[LEVELS[-1]]
    q, k, v = arrays(1, 21, 13, Dv=5)
    target = engine.target
    y = np.full((21 * 2 * 5 + 64,), 7, np.float32)
    strides = {"q": (0, 8, 16), "k": (0, 8, 16), "v": (0, 5, 10), "y": (0, 5, 10)}
    params = AttentionParams(B=1, H=2, group=1, S=21, T=13, D=8, Dv=5, scale=1.0, **strides)
    scratch = np.zeros(scratch_elements(target, 8, 5) + 16, np.float32)
    scratch[-16:] = 7
    call(engine, "none", [q, k, v, y, scratch], params.words(target, 1), 0, params.tasks(target, 1))
    assert (y[-64:] == 7).all()
    assert (scratch[-16:] == 7).all()
