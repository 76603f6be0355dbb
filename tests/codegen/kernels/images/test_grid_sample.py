"""Sampling at positions: between elements, at borders, far away."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.kernels.images.grid_sample import BLOCK, MODES, PADDINGS, Sampling, write_grid_sample
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """Every way along one axis."""
    engine = Engine(target)
    for mode in MODES:
        for padding in PADDINGS:
            for align in (False, True):
                module, sampling = Module(target), Sampling(mode, padding, align, 1)
                write_grid_sample(module, sampling.key, sampling)
                engine.add(module)
    return engine


def _run(engine: Engine, sampling: Sampling, x: Array, grid: Array) -> Array:
    y = np.full((x.shape[0], x.shape[1], grid.shape[1]), -7, np.float32)
    blocks = -(-grid.shape[1] // BLOCK)
    call(engine, sampling.key, [x, grid, y], [grid.shape[1], x.shape[1], x.shape[2], x.shape[2], 1], 0, x.shape[0] * blocks)
    return y


@pytest.mark.parametrize("count", [1, 15, 16, 17, BLOCK, BLOCK + 1, 150])
def test_between_elements(engine: Engine, count: int) -> None:
    """With corners aligned, linear samples are NumPy's interpolation."""
    x = np.random.default_rng(0).standard_normal((2, 3, 9)).astype(np.float32)
    grid = np.random.default_rng(1).uniform(-1, 1, (2, count, 1)).astype(np.float32)
    y = _run(engine, Sampling("linear", "border", True, 1), x, grid)
    for image in range(2):
        for channel in range(3):
            wanted = np.interp(grid[image, :, 0], np.linspace(-1, 1, 9), x[image, channel])
            np.testing.assert_allclose(y[image, channel], wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("padding", "wanted"), [("border", [5, 1, 5]), ("reflection", [4, 2, 4]), ("zeros", [0, 0, 0])])
def test_beyond_the_image(engine: Engine, padding: str, wanted: list[float]) -> None:
    """Elements 5 and -1 of five with aligned corners, counted from 0, and 13, which is reflected twice."""
    x = np.array([[[1, 2, 3, 4, 5]]], np.float32)
    grid = np.array([[[1.5], [-1.5], [5.5]]], np.float32)
    y = _run(engine, Sampling("nearest", padding, True, 1), x, grid)
    assert y[0, 0].tolist() == wanted


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("padding", PADDINGS)
def test_positions_that_are_no_numbers_read_nothing_outside(engine: Engine, mode: str, padding: str) -> None:
    """NaN, infinities and what no integer holds; NaN is the middle."""
    x = np.ones((1, 1, 5), np.float32)
    grid = np.array([np.nan, np.inf, -np.inf, 3e38, -3e38, 1e12, 0], np.float32).reshape(1, -1, 1)
    y = _run(engine, Sampling(mode, padding, False, 1), x, grid)
    np.testing.assert_allclose(y[0, 0, [0, -1]], 1, rtol=1e-6)
    assert np.isfinite(y).all()
