"""Folds over windows of planes: borders, strides, blocks of the scratch row, special values, tasks."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.expr import argument
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, F64
from sardonyx.codegen.emit.window import WindowAxis
from sardonyx.codegen.kernels.images.plane_pool import LONGEST_EXTENT, PlanePoolCode, PlanePoolParams, write_plane_pool
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array

_RNG = np.random.default_rng(0)
_FOLDS = ("max", "mean", "norm1", "norm2", "sum")


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """An engine with every fold over two axes."""
    engine = Engine(target)
    for fold in _FOLDS:
        module = Module(target)
        write_plane_pool(module, fold, PlanePoolCode(fold, F32, 2, 0, 0, False, True, argument(0, F32)))
        engine.add(module)
    return engine


def _params(x: Array, stride: int, taps: int, dilation: int, threads: int = 1) -> PlanePoolParams:
    """3 rows with a stride of 2, and so many columns, over planes (P, H, W) with a border of 1."""
    planes, height, width = x.shape
    wide = (width + 2 - (taps - 1) * dilation - 1) // stride + 1
    high = (height + 2 - 3) // 2 + 1
    axes = [
        WindowAxis(height, high, 2, 1, 1, 3, width, wide),
        WindowAxis(width, wide, stride, dilation, 1, taps, 1, 1),
    ]
    return PlanePoolParams.blocked(planes, axes, (1, 1), threads=threads)


def _pool(engine: Engine, fold: str, x: Array, stride: int = 1, taps: int = 2, dilation: int = 1, threads: int = 1) -> Array:
    params = _params(x, stride, taps, dilation, threads)
    high, wide = (axis.places for axis in params.axes)
    size = len(x) * high * wide
    guarded = np.full(size + 64, 7, np.float32)
    call(engine, fold, [x, guarded], params.words(), 0, params.tasks())
    assert (guarded[size:] == 7).all()
    return guarded[:size].reshape(len(x), high, wide)


def _exact(fold: str, x: Array, stride: int = 1, taps: int = 2, dilation: int = 1) -> Array:
    """The same in float64, of windows in which padding is NaN."""
    padded = np.pad(x.astype(np.float64), [(0, 0), (1, 1), (1, 1)], constant_values=np.nan)
    high, wide = (x.shape[1] - 1) // 2 + 1, (x.shape[2] + 2 - (taps - 1) * dilation - 1) // stride + 1
    found = [
        padded[:, i : i + 2 * high - 1 : 2, j * dilation : j * dilation + stride * (wide - 1) + 1 : stride]
        for i in range(3)
        for j in range(taps)
    ]
    windows = np.stack(found, axis=-1)
    folds = {
        "max": np.nanmax,
        "mean": np.nanmean,
        "sum": np.nansum,
        "norm1": lambda x, axis: np.nansum(np.abs(x), axis=axis),
        "norm2": lambda x, axis: np.sqrt(np.nansum(x * x, axis=axis)),
    }
    return np.asarray(folds[fold](windows, axis=-1))


@pytest.mark.parametrize("width", [1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 67, 130])
@pytest.mark.parametrize("fold", _FOLDS)
def test_tails_of_rows(engine: Engine, fold: str, width: int) -> None:
    """Whole vectors, several at a time, and what is left."""
    x = _RNG.standard_normal((3, 5, width)).astype(np.float32)
    np.testing.assert_allclose(_pool(engine, fold, x), _exact(fold, x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dilation", [1, 3])
@pytest.mark.parametrize("stride", [1, 2, 3, 5])
@pytest.mark.parametrize("fold", _FOLDS)
def test_strides_and_dilations(engine: Engine, fold: str, stride: int, dilation: int) -> None:
    """Of the last axis, on which vectors lie."""
    x = _RNG.standard_normal((2, 6, 75)).astype(np.float32)
    found = _pool(engine, fold, x, stride, 4, dilation)
    np.testing.assert_allclose(found, _exact(fold, x, stride, 4, dilation), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("taps", [1, 2, 3, 7])
@pytest.mark.parametrize("stride", [1, 2])
def test_what_is_written_for_one_stride_and_few_taps(target: Target, stride: int, taps: int) -> None:
    """Gives the bits of the kernel for any."""
    x, engine = _RNG.standard_normal((2, 5, 150)).astype(np.float32), Engine(target)
    for symbol, code in (("any", (0, 0)), ("one", (stride, taps))):
        module = Module(target)
        write_plane_pool(module, symbol, PlanePoolCode("mean", F32, 2, *code, False, symbol == "any", argument(0, F32)))
        engine.add(module)
    assert _pool(engine, "one", x, stride, taps).tobytes() == _pool(engine, "any", x, stride, taps).tobytes()


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 6, 7, 8, 9])
@pytest.mark.parametrize("stride", [1, 2, 3, 4])
@pytest.mark.parametrize("fold", _FOLDS)
def test_short_rows(target: Target, fold: str, stride: int, width: int) -> None:
    """Fit into a register with their padding, or do not: the same bits, NaN and infinities included."""
    x, engine = _RNG.standard_normal((5, 4, width)).astype(np.float32), Engine(target)
    x.ravel()[[1, 7 % x.size, 11 % x.size]] = np.nan, np.inf, -np.inf
    for symbol, code in ((f"{fold}_any", (0, 0)), (f"{fold}_one", (stride, 3))):
        module = Module(target)
        write_plane_pool(module, symbol, PlanePoolCode(fold, F32, 2, *code, False, symbol.endswith("any"), argument(0, F32)))
        engine.add(module)
    found = [_pool(engine, symbol, x, stride, 3) for symbol in (f"{fold}_any", f"{fold}_one")]
    np.testing.assert_array_equal(found[1], found[0])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_short_rows_of_other_numbers_and_three_axes(target: Target, dtype: type) -> None:
    """Means of 2 x 2 x 2 elements, with a border of 1 that counts."""
    kind, engine, module = F64 if dtype is np.float64 else F32, Engine(target), Module(target)
    write_plane_pool(module, "mean", PlanePoolCode("mean", kind, 3, 1, 2, True, False, argument(0, kind)))
    engine.add(module)
    x = _RNG.standard_normal((3, 2, 4, 2)).astype(dtype)
    steps = ((8, 15), (2, 3), (1, 1))
    axes = [WindowAxis(size, size + 1, 1, 1, 1, 2, *step) for size, step in zip(x.shape[1:], steps, strict=True)]
    params = PlanePoolParams.blocked(3, axes, (1, 1, 1))
    y = np.zeros((3, 3, 5, 3), dtype)
    call(engine, "mean", [x, y], params.words(), 0, params.tasks())
    padded = np.pad(x.astype(np.float64), [(0, 0), (1, 1), (1, 1), (1, 1)])
    parts = [padded[:, i : i + 3, j : j + 5, k : k + 3] for i in range(2) for j in range(2) for k in range(2)]
    np.testing.assert_allclose(y, sum(parts) / 8, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("width", [LONGEST_EXTENT - 2, LONGEST_EXTENT, 2 * LONGEST_EXTENT + 100])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("fold", ["max", "mean"])
def test_rows_longer_than_the_scratch_row(engine: Engine, fold: str, stride: int, width: int) -> None:
    """Are made piece by piece."""
    x = _RNG.standard_normal((1, 3, width)).astype(np.float32)
    np.testing.assert_allclose(_pool(engine, fold, x, stride, 3), _exact(fold, x, stride, 3), rtol=1e-5, atol=1e-6)


def test_the_longest_window(engine: Engine) -> None:
    """As long as the scratch row."""
    x = _RNG.standard_normal((1, 1, LONGEST_EXTENT + 3)).astype(np.float32)
    np.testing.assert_allclose(_pool(engine, "max", x, 1, LONGEST_EXTENT), _exact("max", x, 1, LONGEST_EXTENT))


@pytest.mark.parametrize("fold", _FOLDS)
def test_threads_do_not_change_bits(engine: Engine, fold: str) -> None:
    """However rows are cut into tasks."""
    x = _RNG.standard_normal((5, 9, 40)).astype(np.float32)
    assert (
        _pool(engine, fold, x).tobytes()
        == _pool(engine, fold, x, threads=2).tobytes()
        == _pool(engine, fold, x, threads=7).tobytes()
    )


@pytest.mark.parametrize("fold", _FOLDS)
def test_nan_reaches_every_window_that_holds_it(engine: Engine, fold: str) -> None:
    """Wherever in the window it is, and no other window."""
    x = np.ones((3, 5, 20), np.float32)
    x[1, 1, 2] = np.nan
    found = np.isnan(_pool(engine, fold, x))
    expected = np.zeros(found.shape, np.bool_)
    expected[1, :2, 2:4] = True
    assert (found == expected).all()


def test_the_greatest_of_infinities(engine: Engine) -> None:
    """Minus infinity is an element like any other."""
    assert np.isneginf(_pool(engine, "max", np.full((2, 3, 35), -np.inf, np.float32))).all()
