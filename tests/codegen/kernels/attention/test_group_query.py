"""What GroupQueryAttention does around attention, kernel by kernel."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import I32, I64
from sardonyx.codegen.kernels.attention.group_query import Rotation, write_append, write_lengths, write_rotate, write_seen
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """An engine with all kernels."""
    engine, module = Engine(target), Module(target)
    write_lengths(module, "lengths", (I32, I64))
    for rotation in Rotation:
        write_append(module, f"append_{rotation.value}", rotation)
        write_rotate(module, f"rotate_{rotation.value}", rotation)
    write_seen(module, "seen", 16)
    write_seen(module, "seen_masked", 16, has_mask=True)
    engine.add(module)
    return engine


def _numbers(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def _rotated(rows: Array, cos: Array, sin: Array, rotation: Rotation) -> Array:
    """Rows (S, heads, D), by angles (S, half)."""
    half, result = cos.shape[1], rows.copy()
    pairs = (
        (slice(0, half), slice(half, 2 * half)) if rotation is Rotation.HALVES else (slice(0, 2 * half, 2), slice(1, 2 * half, 2))
    )
    x, y = (rows[:, :, pair] for pair in pairs)
    result[:, :, pairs[0]] = x * cos[:, None] - y * sin[:, None]
    result[:, :, pairs[1]] = y * cos[:, None] + x * sin[:, None]
    return result if rotation is not Rotation.NONE else rows


def test_lengths_are_those_of_the_past_and_of_all(engine: Engine) -> None:
    """A first run has no past."""
    for S, longest, expected in ((2, 9, [[1, 3], [7, 9]]), (9, 9, [[0, 3], [0, 9]])):
        pairs, status = np.full((2, 2), 7), np.zeros(1, np.int64)
        lengths, bound = np.array([2, 8], np.int32), np.array([longest])
        call(engine, "lengths", [lengths, bound, pairs, status], [2, S, 20, 20, 20, -1], 0, 1)
        assert (pairs.tolist(), int(status[0])) == (expected, 0)


@pytest.mark.parametrize(
    ("length", "bound", "P", "C", "positions", "biased"),
    [
        (0, 9, 20, 20, 20, -1),
        (10, 9, 20, 20, 20, -1),
        (1, 9, 20, 20, 20, -1),
        (9, 9, 6, 20, 20, -1),
        (9, 9, 20, 8, 20, -1),
        (9, 9, 20, 20, 8, -1),
        (1, 1, 9, 9, 9, -1),
        (9, 9, 20, 20, 20, 8),
        (9, 9, 20, 20, 20, 10),
    ],
)
def test_a_length_that_does_not_fit_is_reported(
    engine: Engine, length: int, bound: int, P: int, C: int, positions: int, biased: int
) -> None:
    """Nothing is addressed by it."""
    pairs, status = np.full((1, 2), 7), np.zeros(1, np.int64)
    buffers = [np.array([length - 1], np.int32), np.array([bound]), pairs, status]
    call(engine, "lengths", buffers, [1, 2, P, C, positions, biased], 0, 1)
    assert (pairs.tolist(), int(status[0])) == ([[0, 0]], 1)


@pytest.mark.parametrize("rotation", Rotation)
@pytest.mark.parametrize(("D", "half"), [(6, 2), (32, 16), (40, 17), (2, 1)])
def test_new_rows_go_behind_the_past_and_zeros_behind_them(engine: Engine, rotation: Rotation, D: int, half: int) -> None:
    """For each batch behind its own past."""
    M, S, P, C = 2, 3, 9, 12
    past, new, cos, sin = _numbers(2, M, P, D), _numbers(2, S, M, D), _numbers(20, half), _numbers(20, half)
    pairs, cache = np.array([[4, 7], [9, 12]]), np.full((2, M, C, D), 7, np.float32)
    params = [M, S, P, C, D, half, S * M * D, D, M * D, 1]
    call(engine, f"append_{rotation.value}", [past, new, cos, sin, pairs, cache], params, 0, 2 * M)
    for batch, (start, end) in enumerate(pairs):
        rows = _rotated(new[batch], cos[start:end], sin[start:end], rotation).swapaxes(0, 1)
        np.testing.assert_array_equal(cache[batch, :, :start], past[batch, :, :start])
        np.testing.assert_allclose(cache[batch, :, start:end], rows, rtol=1e-6, atol=1e-6)
        assert not cache[batch, :, end:].any()


@pytest.mark.parametrize("is_same", [False, True])
def test_only_new_rows_are_written_where_the_past_is_not_copied(engine: Engine, is_same: bool) -> None:
    """Since others copy it, or since it is the cache itself."""
    M, S, P, D = 2, 3, 12, 6
    new, pairs, cache = _numbers(1, S, M, D), np.array([[4, 7]]), np.full((1, M, P, D), 7, np.float32)
    past = cache if is_same else _numbers(1, M, P, D)
    call(engine, "append_plain", [past, new, new, new, pairs, cache], [M, S, P, P, D, 0, S * M * D, D, M * D, is_same], 0, M)
    np.testing.assert_array_equal(cache[0, :, 4:7], new[0].swapaxes(0, 1))
    assert (cache[0, :, :4] == 7).all()
    assert (cache[0, :, 7:] == 7).all()


@pytest.mark.parametrize("rotation", [Rotation.HALVES, Rotation.NEIGHBOURS])
def test_rows_are_rotated_by_the_angles_of_their_positions(engine: Engine, rotation: Rotation) -> None:
    """All heads of a row by the same."""
    H, S, D, half = 3, 2, 22, 10
    rows, cos, sin, pairs = _numbers(2, S, H, D), _numbers(20, half), _numbers(20, half), np.array([[0, 2], [5, 7]])
    result = np.full_like(rows, 7)
    params = [H, S, 0, 0, D, half, S * H * D, D, H * D]
    call(engine, f"rotate_{rotation.value}", [rows, rows, cos, sin, pairs, result], params, 0, 2 * S)
    for batch, (start, end) in enumerate(pairs):
        wanted = _rotated(rows[batch], cos[start:end], sin[start:end], rotation)
        np.testing.assert_allclose(result[batch], wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("window", [1, 3, 1 << 40])
def test_a_query_sees_the_keys_of_its_window_up_to_itself(engine: Engine, window: int) -> None:
    """None behind the end of its sequence."""
    S, T, pairs = 18, 25, np.array([[4, 22], [0, 11]])
    panels = np.full((2, 2, T, 16), 7, np.float32)
    call(engine, "seen", [pairs, panels], [S, T, window, 1, 0, 0, 0], 0, 4)
    found = panels.swapaxes(2, 3).reshape(2, 32, T)[:, :S]
    keys = np.arange(T)
    for batch, (past, total) in enumerate(pairs):
        places = past + np.arange(S)[:, None]
        sees = (keys <= places) & (keys > places - window) & (keys < total)
        np.testing.assert_array_equal(found[batch], np.where(sees, 0, -np.inf))


def test_a_query_may_see_later_keys(engine: Engine) -> None:
    """As many as are said, up to the end of its sequence."""
    S, T, pairs = 18, 25, np.array([[4, 22], [0, 11]])
    panels = np.full((2, 2, T, 16), 7, np.float32)
    call(engine, "seen", [pairs, panels], [S, T, 1 << 40, 1, 0, 0, T], 0, 4)
    found = panels.swapaxes(2, 3).reshape(2, 32, T)[:, :S]
    for batch, (_, total) in enumerate(pairs):
        np.testing.assert_array_equal(found[batch], np.where(np.arange(T) < total, 0, -np.inf) + np.zeros((S, 1)))


@pytest.mark.parametrize("rows", [1, 2])
def test_what_is_seen_has_the_numbers_of_a_mask(engine: Engine, rows: int) -> None:
    """Of each head, and of each batch or of all."""
    S, T, H, pairs = 18, 25, 3, np.array([[4, 22], [0, 11]])
    mask, panels = _numbers(rows, H, 2, T, 16), np.full((2, H, 2, T, 16), 7, np.float32)
    step = 2 * T * 16
    call(engine, "seen_masked", [pairs, mask, panels], [S, T, 6, H, 0 if rows == 1 else H * step, step, 0], 0, 2 * H * 2)
    keys = np.arange(T)[:, None]
    for batch, (past, total) in enumerate(pairs):
        for number in range(2):
            places = past + number * 16 + np.arange(16)
            sees = (keys <= places) & (keys > places - 6) & (keys < total)
            wanted = np.where(sees, mask[batch % rows, :, number], -np.inf)
            np.testing.assert_array_equal(panels[batch, :, number], wanted)
