"""Transforms of lines, stage by stage."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32
from sardonyx.codegen.kernels.signal.fourier import TURNS_BLOCK, Lines, write_chirp_filter, write_fourier, write_turns
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array

COMPLEX = Lines(is_complex=True, inverse=False, mirrored=False, windowed=False)


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """Tables and the transform of complex lines."""
    engine, module = Engine(target), Module(target)
    write_turns(module, "turns", F32, squared=False)
    write_turns(module, "chirp", F32, squared=True)
    write_chirp_filter(module, "filter", F32)
    write_fourier(module, "fourier", F32, COMPLEX)
    engine.add(module)
    return engine


def _run(engine: Engine, x: Array, side: int, factors: list[int], *, by_chirp: bool = False, turns: int = 1000) -> Array:
    """Transform lines by kernels of so many turns each."""
    lines, length, _ = x.shape
    padded = int(np.prod(factors))
    table, work = np.zeros(4 * padded + 2 * length, np.float32), np.full(4 * padded * side, np.nan, np.float32)
    call(engine, "turns", [table], [padded, padded, 0], 0, -(-padded // TURNS_BLOCK))
    places = [0, 2 * length, 2, 0, 2 * length, 2, length]

    count = max(len(factors), 1)

    def words(side: int, first: int) -> list[int | float]:
        lately = [1, 1 if turns < 2 * count else 2, 1.0, int(by_chirp), 0, first, first + turns]
        return [padded, side, length, length, lines, lines, *places, *lately, len(factors), *factors]

    if by_chirp:
        call(engine, "chirp", [table], [length, 2 * length, 2 * padded])
        for first in range(0, count, turns):
            call(engine, "filter", [table, work], words(1, first))
    y = np.zeros_like(x)
    if turns >= 2 * count:
        call(engine, "fourier", [x, table, work, y], words(side, 0), 0, -(-lines // (2 * side)))
        return y
    for task in range(-(-lines // side)):
        for first in range(0, count * (1 + int(by_chirp)), turns):
            call(engine, "fourier", [x, table, work, y], words(side, first), task, task + 1)
    return y


def _exact(x: Array) -> Array:
    found = np.fft.fft(x[..., 0].astype(np.float64) + 1j * x[..., 1], axis=1)
    return np.stack([found.real, found.imag], axis=-1)


@pytest.mark.parametrize("factors", [[1], [2], [3, 2], [5, 4], [4, 4, 4, 3], [7, 2], [61], [2, 11, 13]])
@pytest.mark.parametrize("wide", [False, True])
def test_factors(engine: Engine, target: Target, factors: list[int], wide: bool) -> None:
    """One line alone, and as many as there are lanes side by side."""
    factors = [factor for factor in factors if factor > 1]
    x = np.random.default_rng(0).standard_normal((19, int(np.prod(factors)), 2)).astype(np.float32)
    y, exact = _run(engine, x, target.lanes(32) if wide else 1, factors), _exact(x)
    np.testing.assert_allclose(y, exact, atol=2e-6 * np.sqrt(np.mean(exact**2)) + 1e-12)


@pytest.mark.parametrize("wide", [False, True])
def test_chirps(engine: Engine, target: Target, wide: bool) -> None:
    """67 elements by transforms of 160."""
    x = np.random.default_rng(1).standard_normal((5, 67, 2)).astype(np.float32)
    y, exact = _run(engine, x, target.lanes(32) if wide else 1, [4, 4, 2, 5], by_chirp=True), _exact(x)
    np.testing.assert_allclose(y, exact, atol=3e-6 * np.sqrt(np.mean(exact**2)))


def test_keys() -> None:
    """Each way has its own."""
    assert Lines(False, False, False, False).key == "real"
    assert Lines(True, True, False, True).key == "complex_inverse_windowed"


@pytest.mark.parametrize("turns", [1, 2, 3])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("by_chirp", [False, True])
def test_pieces_of_a_transform_make_the_same_bits(
    engine: Engine, target: Target, turns: int, *, wide: bool, by_chirp: bool
) -> None:
    """Kernels of a few turns each go on where the one before ended."""
    x = np.random.default_rng(0).standard_normal((5, 37 if by_chirp else 120, 2)).astype(np.float32)
    factors, side = [4, 4, 5] if by_chirp else [4, 2, 3, 5], target.lanes(32) if wide else 1
    whole = _run(engine, x, side, factors, by_chirp=by_chirp)
    np.testing.assert_array_equal(_run(engine, x, side, factors, by_chirp=by_chirp, turns=turns), whole)
