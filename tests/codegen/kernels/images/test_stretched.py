"""Filters that are stretched where an axis shrinks."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.kernels.images.stretched import write_stretched, write_stretched_table
from sardonyx.codegen.kernels.resize import TableWords
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array

SIZE, TAPS = 40, 8


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """Tables and both ways to resample."""
    engine, module = Engine(target), Module(target)
    write_stretched_table(module, "table", is_cubic=False)
    write_stretched(module, "resample")
    engine.add(module)
    return engine


def _table(engine: Engine, output: int) -> tuple[Array, Array]:
    """A triangle over a quarter of an element of the output, around each fourth of the input."""
    first, weights = np.full(output, -7, np.int32), np.full((TAPS, output), -7, np.float32)
    call(engine, "table", [first, weights], [*TableWords(SIZE, output, divisor=0.25).words(), TAPS, 0.25])
    return first, weights


@pytest.mark.parametrize("output", [1, 9, 10])
def test_a_table(engine: Engine, output: int) -> None:
    """A triangle of 8 taps, whose sum is 1."""
    first, weights = _table(engine, output)
    np.testing.assert_array_equal(first, 4 * np.arange(output) - 3)
    np.testing.assert_allclose(weights[:, 0], np.array([1, 2, 3, 4, 3, 2, 1, 0]) / 16, atol=1e-7)


@pytest.mark.parametrize("inner", [1, 3, 16, 37])
def test_resampling(engine: Engine, inner: int) -> None:
    """Elements beyond the ends are the last ones."""
    first, weights = _table(engine, 10)
    x = np.random.default_rng(0).standard_normal((2, SIZE, inner)).astype(np.float32)
    y = np.full((2, 10, inner), -7, np.float32)
    call(engine, "resample", [x, y, first, weights], [SIZE, 10, TAPS, inner], 0, 2 if inner == 1 else 20)
    places = np.clip(first + np.arange(TAPS)[:, None], 0, SIZE - 1)
    np.testing.assert_allclose(y, np.einsum("oteh,te->oeh", x[:, places], weights), atol=1e-5)
