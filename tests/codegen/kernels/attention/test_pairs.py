"""Attention in pairs of bfloat16: operands, and results against float64."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.kernels.attention.block_params import BLOCK_KEYS, AttentionParams, scratch_elements, together
from sardonyx.codegen.kernels.attention.blocks import write_attention
from sardonyx.codegen.kernels.attention.pairs import PairParams, write_key_pairs, write_value_pairs
from sardonyx.codegen.kernels.attention.scores import AttentionShape, Masking
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target, available_levels, emulated_target, host_target
from sardonyx.dtypes import Array, DataType

BFLOAT = DataType.BFLOAT16.numpy
TARGETS = [host_target(available_levels()[-1]), emulated_target("avx512", ["avx512bf16"]), emulated_target("neon", ["bf16"])]
KINDS = {
    "none": AttentionShape(Masking.NONE, in_pairs=True),
    "keys": AttentionShape(Masking.KEYS, in_pairs=True),
    "causal": AttentionShape(Masking.NONE, is_causal=True, in_pairs=True),
}


@pytest.fixture(scope="module", params=TARGETS, ids=lambda target: target.isa)
def engine(request: pytest.FixtureRequest) -> Engine:
    """An engine with the kernels."""
    module, engine = Module(request.param), Engine(request.param)
    write_key_pairs(module, "key_pairs")
    write_value_pairs(module, "value_pairs")
    for name, shape in KINDS.items():
        write_attention(module, name, shape)
    engine.add(module)
    return engine


def _draw(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def _rounded(array: Array) -> Array:
    return array.astype(BFLOAT)


def _paired(engine: Engine, name: str, x: Array) -> Array:
    """Keys or values (B, T, M, D) in pairs, with what must stay behind them."""
    B, T, M, D = x.shape
    shape = (B, M, T, -(-D // 2)) if name == "key_pairs" else (B, M, -(-T // 2), D)
    size = int(np.prod(shape))
    words = np.full(size + 8, 7, np.uint32)
    params = PairParams(M, shape[2], T, D, (T * M * D, D, M * D))
    call(engine, name, [x, words], params.words(), 0, params.tasks(B))
    assert (words[size:] == 7).all()
    return words[:size].reshape(shape)


@pytest.mark.parametrize(("T", "D"), [(1, 1), (3, 2), (40, 31), (33, 32), (2, 33), (5, 80)])
def test_keys_become_words_of_two_elements(engine: Engine, T: int, D: int) -> None:
    """Behind an odd one is a zero."""
    keys = _draw(2, T, 3, D)
    expected = np.pad(_rounded(keys).swapaxes(1, 2), [(0, 0)] * 3 + [(0, D % 2)])
    np.testing.assert_array_equal(_paired(engine, "key_pairs", keys).view(np.uint16), expected.view(np.uint16))


@pytest.mark.parametrize(("T", "D"), [(1, 1), (2, 5), (65, 16), (64, 17), (7, 80)])
def test_values_become_words_of_two_keys(engine: Engine, T: int, D: int) -> None:
    """Behind an odd key are zeros."""
    values = _draw(2, T, 3, D)
    padded = np.pad(_rounded(values).swapaxes(1, 2), [(0, 0), (0, 0), (0, T % 2), (0, 0)])
    expected = np.ascontiguousarray(padded.reshape(2, 3, -1, 2, D).swapaxes(3, 4)).view(np.uint32)[..., 0]
    np.testing.assert_array_equal(_paired(engine, "value_pairs", values), expected)


def _run(engine: Engine, kind: str, q: Array, k: Array, v: Array, *, mask: Array | None = None, threads: int = 1) -> Array:
    target: Target = engine.target
    (B, S, H, D), (_, T, M, _), Dv = q.shape, k.shape, v.shape[3]
    words = [_paired(engine, name, x) for name, x in (("key_pairs", k), ("value_pairs", v))]
    places = [(x[0].size, x[0, 0].size, x.shape[3]) for x in words]
    rows = {name: (x[0].size, x.shape[3], x[0, 0].size) for name, x in (("q", q), ("y", q))}
    rows["y"] = (S * H * Dv, Dv, H * Dv)
    params = AttentionParams(
        B=B, H=H, group=H // M, S=S, T=T, D=D, Dv=Dv, scale=0.3, past=T - S, mask=(0, 0), k=places[0], v=places[1], **rows
    )
    y = np.full((B, S, H, Dv), np.nan, np.float32)
    scratch = np.full((together(threads), scratch_elements(target, D, Dv)), np.nan, np.float32)
    masks = [] if mask is None else [mask]
    call(engine, kind, [q, *words, y, scratch, *masks], params.words(target, threads), 0, params.tasks(target, threads))
    return y


def _exact(q: Array, k: Array, v: Array, mask: Array | None = None, *, is_causal: bool = False) -> Array:
    """In float64, of rounded operands; queries are scaled before they are rounded."""
    scaled = _rounded(q * np.float32(0.3))
    wide = [np.swapaxes(x.astype(np.float64), 1, 2) for x in (scaled, _rounded(k), _rounded(v))]
    queries, keys, values = wide[0], *(np.repeat(x, q.shape[2] // k.shape[2], axis=1) for x in wide[1:])
    scores = queries @ keys.swapaxes(2, 3) + (0 if mask is None else mask)
    if is_causal:
        scores = np.where(np.tri(*scores.shape[2:], scores.shape[3] - scores.shape[2], dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.swapaxes(weights / weights.sum(-1, keepdims=True) @ values, 1, 2)


@pytest.mark.parametrize("T", [1, 2, 5, 7, 12, BLOCK_KEYS - 1, BLOCK_KEYS, BLOCK_KEYS + 1, 2 * BLOCK_KEYS + 3])
@pytest.mark.parametrize(("S", "D", "Dv"), [(1, 8, 8), (17, 7, 33), (70, 64, 16), (131, 34, 1)])
def test_results_are_those_of_rounded_operands(engine: Engine, S: int, T: int, D: int, Dv: int) -> None:
    """But for the exponentials, which are rounded too."""
    q, k, v = _draw(2, S, 4, D), _draw(2, T, 2, D), _draw(2, T, 2, Dv)
    assert np.abs(_run(engine, "none", q, k, v) - _exact(q, k, v)).max() < 2.0**-8 * np.abs(v).max()


@pytest.mark.parametrize(("S", "T"), [(1, 151), (3, 3), (70, 229), (65, 66)])
def test_causal_queries_see_an_odd_number_of_keys_too(engine: Engine, S: int, T: int) -> None:
    """What stands behind the last key of a block counts for nothing."""
    q, k, v = _draw(1, S, 2, 16), _draw(1, T, 2, 16), _draw(1, T, 2, 16)
    assert np.abs(_run(engine, "causal", q, k, v) - _exact(q, k, v, is_causal=True)).max() < 2.0**-8 * np.abs(v).max()


def test_masks_of_keys(engine: Engine) -> None:
    """Keys that are hidden count for nothing, whatever the values beside them in a word."""
    q, k, v = _draw(1, 20, 2, 8), _draw(1, 33, 2, 8), _draw(1, 33, 2, 8)
    mask = np.where(np.arange(33) % 3 == 0, -np.inf, 0).astype(np.float32)
    assert np.abs(_run(engine, "keys", q, k, v, mask=mask) - _exact(q, k, v, mask)).max() < 2.0**-8 * np.abs(v).max()


def test_threads_and_batches_do_not_change_bits(engine: Engine) -> None:
    """The same queries give the same bits in a batch or alone."""
    q, k, v = _draw(3, 100, 2, 8), _draw(3, 150, 2, 8), _draw(3, 150, 2, 8)
    whole = _run(engine, "none", q, k, v)
    assert whole.tobytes() == _run(engine, "none", q, k, v, threads=2).tobytes()
    alone = _run(engine, "none", *(np.ascontiguousarray(x[1:2]) for x in (q, k, v)))
    assert alone.tobytes() == whole[1:2].tobytes()


def test_nan_stays_with_its_query(engine: Engine) -> None:
    """Its neighbours do not notice."""
    q, k, v = _draw(1, 70, 2, 8), _draw(1, 40, 2, 8), _draw(1, 40, 2, 8)
    q[0, 3], q[0, 66] = np.nan, np.inf
    touched = np.isnan(_run(engine, "none", q, k, v)).any(axis=(0, 2, 3))
    assert np.flatnonzero(touched).tolist() == [3, 66]
