"""Tensors quantized by their own range."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.kernels.quantized.dynamic import MOST_PIECES, DynamicParams, write_quantize, write_range
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """Both kernels."""
    module, engine = Module(target), Engine(target)
    write_range(module, "range")
    write_quantize(module, "quantize")
    engine.add(module)
    return engine


def _quantized(engine: Engine, x: Array) -> tuple[Array, Array, Array]:
    params, ranges = DynamicParams(x.size), np.full((MOST_PIECES, 2), 7, np.float32)
    y, scale, zero = np.full(x.size + 16, 7, np.uint8), np.zeros(1, np.float32), np.zeros(1, np.uint8)
    call(engine, "range", [x, ranges], params.words(), 0, params.pieces)
    call(engine, "quantize", [x, ranges, y, scale, zero], params.words(), 0, params.pieces)
    assert (y[x.size :] == 7).all()
    return y[: x.size], scale, zero


def _expected(x: Array) -> tuple[Array, np.float32, np.uint8]:
    with np.errstate(all="ignore"):
        low, high = x.min(initial=0), x.max(initial=0)
        scale = (high - low) / np.float32(255) if high > low else np.float32(1)
        zero = np.nan_to_num(np.clip(np.rint(-low / scale), 0, 255)).astype(np.uint8)
        moved = np.clip(np.rint(x / scale) + np.float32(zero), 0, 255)
    return np.nan_to_num(moved).astype(np.uint8), np.float32(scale), zero


@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, 100, 16384, 16385, 70001, 2_000_000])
def test_numbers_are_those_of_the_standard(engine: Engine, size: int) -> None:
    """Scale, zero point and all numbers, bit for bit, over one piece and many."""
    for offset in (0.0, 3.0, -3.0):
        x = (np.random.default_rng(size).standard_normal(size) + offset).astype(np.float32)
        for found, wanted in zip(_quantized(engine, x), _expected(x), strict=True):
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    "numbers",
    [
        [0, 0],
        [0, 1, np.nan, 3],
        [np.nan],
        [np.inf, np.nan, 2],
        [0, np.inf, 1],
        [-np.inf, 1, 2],
        [np.inf, -np.inf],
        [1e-40, 2e-40],
        [3e38, -3e38],
        [5, 7],
        [-5, -7],
        [-0.0],
        [1e-30, 2e-30],
        [1e30, 3e30],
    ],
)
def test_odd_numbers_are_those_of_the_standard(engine: Engine, numbers: list[float]) -> None:
    """NaN, infinities, denormals, zeros and ranges on one side of 0."""
    x = np.array(numbers, np.float32)
    for found, wanted in zip(_quantized(engine, x), _expected(x), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_a_missing_number_anywhere_counts(engine: Engine) -> None:
    """In any piece, also in the last lane of it."""
    for place in (0, 16383, 16384, 39_999):
        x = np.arange(40_000, dtype=np.float32)
        x[place] = np.nan
        y, scale, zero = _quantized(engine, x)
        assert (scale[0], zero[0], y[place], y[300]) == (1, 0, 0, 0 if place == 300 else 255)


def test_there_are_few_pieces() -> None:
    """Of some thousand numbers, and not more than a task reads."""
    assert [DynamicParams(count).pieces for count in (0, 1, 16384, 16385, 1 << 30)] == [1, 1, 1, 2, MOST_PIECES]
