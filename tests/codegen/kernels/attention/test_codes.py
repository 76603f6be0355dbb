"""Caches of integers of 8 and 4 bits, kernel by kernel."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, I8, U8, Type
from sardonyx.codegen.kernels.attention.codes import stored_name, write_append_codes, write_scaled_rows, write_wide_codes
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """An engine with all kernels."""
    engine, module = Engine(target), Module(target)
    for kind in (I8, U8):
        write_append_codes(module, f"append_{stored_name(kind)}", kind)
        write_wide_codes(module, f"wide_{stored_name(kind)}", kind)
    write_scaled_rows(module, "scaled")
    engine.add(module)
    return engine


def _numbers(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def _encoded(numbers: Array, kind: Type) -> Array:
    limit = 128 if kind == I8 else 8
    codes = np.clip(np.rint(numbers), -limit, limit - 1)
    if kind == I8:
        return codes.astype(np.int8)
    shifted = (codes + 8).astype(np.uint8)
    return shifted[..., ::2] | shifted[..., 1::2] << 4


def test_codes_have_names_of_their_own() -> None:
    """LLVM has one type for both, and no other type is called so."""
    assert [stored_name(kind) for kind in (I8, U8, F32)] == ["q8", "q4", "float"]


@pytest.mark.parametrize("kind", [I8, U8])
@pytest.mark.parametrize("D", [2, 6, 16, 18, 40])
def test_new_rows_are_rounded_behind_the_past(engine: Engine, kind: Type, D: int) -> None:
    """To even where two integers are as near; what is too large is the largest; zeros follow."""
    M, S, P, C = 2, 3, 9, 12
    new, scales, pairs = _numbers(2, S, M, D) * 3, np.abs(_numbers(M, D)) / 40 + 0.01, np.array([[4, 7], [9, 12]])
    new[0, 0, 0, :2] = scales[0, :2] * [0.5, 1.5]
    stored = _encoded(np.zeros((2, M, P, D)), kind)
    past = np.arange(stored.size).reshape(stored.shape).astype(stored.dtype)
    cache = np.full((2, M, C, stored.shape[3]), 7, stored.dtype)
    params = [M, S, P, C, D, S * M * D, D, M * D, 1]
    call(engine, f"append_{stored_name(kind)}", [past, new, scales, pairs, cache], params, 0, 2 * M)
    for batch, (start, end) in enumerate(pairs):
        np.testing.assert_array_equal(cache[batch, :, :start], past[batch, :, :start])
        expected = _encoded(new[batch] / scales, kind).swapaxes(0, 1)
        np.testing.assert_array_equal(cache[batch, :, start:end], expected)
        assert not cache[batch, :, end:].any()


def test_the_past_may_be_the_cache_or_be_copied_later(engine: Engine) -> None:
    """Then only the new rows are written."""
    D, new, pairs = 6, _numbers(1, 1, 1, 6), np.array([[2, 3]])
    for copies, is_same in ((1, True), (0, False)):
        cache = np.full((1, 1, 5, D), 9, np.int8)
        past = cache if is_same else np.zeros_like(cache)
        call(engine, "append_q8", [past, new, np.ones((1, D), np.float32), pairs, cache], [1, 1, 5, 5, D, D, D, D, copies], 0, 1)
        np.testing.assert_array_equal(cache[0, 0, 2], np.rint(new[0, 0, 0]))
        assert (np.delete(cache[0, 0], 2, axis=0) == 9).all()


@pytest.mark.parametrize("D", [1, 5, 16, 37])
def test_rows_are_multiplied_by_the_scales_of_their_heads(engine: Engine, D: int) -> None:
    """Heads of queries that share keys share scales; rows may lie apart."""
    B, S, H, M = 2, 3, 4, 2
    rows, scales, result = _numbers(B, S, H, D + 2), _numbers(M, D), np.zeros((B, S, H, D), np.float32)
    params = [H, H // M, D, S, S * H * (D + 2), D + 2, H * (D + 2)]
    call(engine, "scaled", [rows, scales, result], params, 0, B * S)
    np.testing.assert_array_equal(result, rows[..., :D] * scales[[0, 0, 1, 1]])


@pytest.mark.parametrize("D", [2, 6, 16, 18, 40])
def test_codes_are_widened_to_their_integers(engine: Engine, D: int) -> None:
    """All of them, with their signs."""
    numbers = np.arange(4 * D).reshape(4, D) * 5 % 256 - 128
    result = np.zeros((4, D), np.float32)
    call(engine, "wide_q8", [numbers.astype(np.int8), result], [D], 0, 4)
    np.testing.assert_array_equal(result, numbers)
    call(engine, "wide_q4", [_encoded(numbers % 16 - 8, U8), result], [D], 0, 4)
    np.testing.assert_array_equal(result, numbers % 16 - 8)
