"""Folds over windows: special values, tails of channels, tasks."""

import math

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.window import WindowAxis
from sardonyx.codegen.kernels.pool import FOLDS, PoolParams, write_pool
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array

_RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """An engine with every fold over two axes."""
    engine = Engine(target)
    for fold in FOLDS:
        module = Module(target)
        write_pool(module, fold, fold, 2, dilated=False)
        engine.add(module)
    return engine


def _pool(engine: Engine, fold: str, x: Array, threads: int = 1) -> Array:
    """3 x 2 windows with strides 2 and 1, over x (N, H, W, C) with a border of 1."""
    N, H, W, C = x.shape
    high, wide = (H + 2 - 3) // 2 + 1, W + 2 - 2 + 1
    axes = [WindowAxis(H, high, 2, 1, 1, 3, W * C, wide * C), WindowAxis(W, wide, 1, 1, 1, 2, C, C)]
    params = PoolParams.blocked(N, C, axes, (1, 1), threads=threads)
    size = N * high * wide * C
    guarded = np.full(size + 64, 7, np.float32)
    call(engine, fold, [x, guarded], params.words(), 0, params.tasks())
    assert (guarded[size:] == 7).all()
    return guarded[:size].reshape(N, high, wide, C)


def _windows(x: Array) -> Array:
    """The elements of each window in float64 (N, places, places, C, 6), NaN where there is padding."""
    x = np.pad(x.astype(np.float64), [(0, 0), (1, 1), (1, 1), (0, 0)], constant_values=np.nan)
    high, wide = (x.shape[1] - 3) // 2 + 1, x.shape[2] - 1
    taps = [x[:, i : i + 2 * high - 1 : 2, j : j + wide] for i in range(3) for j in range(2)]
    return np.stack(taps, axis=-1)


_EXACT = {
    "max": np.nanmax,
    "mean": np.nanmean,
    "sum": np.nansum,
    "norm1": lambda x, axis: np.nansum(np.abs(x), axis=axis),
    "norm2": lambda x, axis: np.sqrt(np.nansum(x * x, axis=axis)),
}


@pytest.mark.parametrize("C", [1, 3, 4, 5, 8, 15, 16, 17, 33, 63, 64, 65, 130])
@pytest.mark.parametrize("fold", FOLDS)
def test_tails_of_channels(engine: Engine, fold: str, C: int) -> None:
    """Whole vectors, several at a time, and what is left."""
    x = _RNG.standard_normal((2, 5, 6, C)).astype(np.float32)
    np.testing.assert_allclose(_pool(engine, fold, x), _EXACT[fold](_windows(x), axis=-1), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("fold", FOLDS)
def test_threads_do_not_change_bits(engine: Engine, fold: str) -> None:
    """However rows and places are cut into tasks."""
    x = _RNG.standard_normal((1, 3, 40, 20)).astype(np.float32)
    assert _pool(engine, fold, x).tobytes() == _pool(engine, fold, x, 2).tobytes() == _pool(engine, fold, x, 7).tobytes()


@pytest.mark.parametrize("fold", FOLDS)
def test_nan_reaches_every_window_that_holds_it(engine: Engine, fold: str) -> None:
    """Wherever in the window it is, and no other window."""
    x = np.ones((1, 5, 6, 20), np.float32)
    x[0, 1, 2, 3] = np.nan
    found = np.isnan(_pool(engine, fold, x))
    expected = np.zeros(found.shape, np.bool_)
    expected[0, :2, 2:4, 3] = True
    assert (found == expected).all()


def test_the_greatest_of_infinities(engine: Engine) -> None:
    """Minus infinity is an element like any other."""
    x = np.full((1, 3, 3, 5), -math.inf, np.float32)
    assert np.isneginf(_pool(engine, "max", x)).all()
