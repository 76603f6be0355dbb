"""Normalization kernels: each norm both ways, long rows, statistics."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.expr import argument
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32
from sardonyx.codegen.kernels.lines import Along, LineParams
from sardonyx.codegen.kernels.normalize import Norm, write_normalize
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array

_EPSILON = 1e-3
_X = argument(0, F32)


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """Every norm both ways, the first with its statistics too."""
    module = Module(target)
    for along in Along:
        for norm in Norm:
            write_normalize(module, f"{norm.value}_{along.value}", along, norm, after=_X, extra_operands=[])
        write_normalize(module, f"saved_{along.value}", along, Norm.STANDARD, after=_X * 2, extra_operands=[], saved=2)
    engine = Engine(target)
    engine.add(module)
    return engine


def _run(engine: Engine, name: str, along: Along, x: Array, *saved: Array) -> Array:
    params = LineParams(x.shape[0], x.shape[1], x.shape[2], along)
    y = np.full_like(x, 99)
    call(engine, f"{name}_{along.value}", [x, y, *saved], [*params.words(), _EPSILON], 0, params.tasks())
    return y


def _exact(norm: Norm, x: Array, axes: tuple[int, ...]) -> Array:
    wide = x.astype(np.float64)
    if norm is Norm.STANDARD:
        return np.asarray((wide - wide.mean(axes, keepdims=True)) / np.sqrt(wide.var(axes, keepdims=True) + _EPSILON))
    if norm is Norm.ROOT_MEAN:
        return np.asarray(wide / np.sqrt(np.square(wide).mean(axes, keepdims=True) + _EPSILON))
    length = np.abs(wide).sum(axes, keepdims=True) if norm is Norm.NORM_1 else np.sqrt(np.square(wide).sum(axes, keepdims=True))
    return np.asarray(wide / length)


_AXES: dict[Along, tuple[int, ...]] = {Along.ROWS: (1, 2), Along.COLUMNS: (1,)}


@pytest.mark.parametrize("norm", Norm)
@pytest.mark.parametrize("along", Along)
def test_norms_are_those_of_float64(engine: Engine, along: Along, norm: Norm) -> None:
    """On sizes around vectors, strips and the blocks of long rows, far from 0 too."""
    for shape in ((1, 1, 2), (5, 1, 17), (4, 6, 48), (9, 3, 33), (1, 1, 4096), (2, 1, 4097), (1, 3, 5000), (2, 67, 70)):
        x = (np.random.default_rng(0).standard_normal(shape) + 3).astype(np.float32)
        exact = _exact(norm, x, _AXES[along])
        np.testing.assert_allclose(_run(engine, norm.value, along, x), exact, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("length", [7, 4096, 10_000])
def test_variance_far_from_zero(engine: Engine, length: int) -> None:
    """What the rounding of the mean lost is taken away too: a thousand deviations away no digit is lost."""
    x = (np.random.default_rng(1).standard_normal((3, 1, length)) + 1000).astype(np.float32)
    exact = _exact(Norm.STANDARD, x, (1, 2))
    np.testing.assert_allclose(_run(engine, "standard", Along.ROWS, x), exact, rtol=0, atol=1e-6)


@pytest.mark.parametrize("along", Along)
def test_statistics_are_stored(engine: Engine, along: Along) -> None:
    """Mean and 1 / deviation, one of each for each fold."""
    x = np.random.default_rng(2).standard_normal((5, 4, 19)).astype(np.float32)
    axes = _AXES[along]
    mean, inverse = (np.zeros(x.mean(axes).shape, np.float32) for _ in range(2))
    y = _run(engine, "saved", along, x, mean, inverse)
    np.testing.assert_allclose(mean, x.mean(axes, dtype=np.float64), rtol=0, atol=1e-6)
    np.testing.assert_allclose(inverse, 1 / np.sqrt(x.var(axes, dtype=np.float64) + _EPSILON), rtol=1e-6)
    np.testing.assert_allclose(y, 2 * _exact(Norm.STANDARD, x, axes), rtol=0, atol=3e-6)


def test_a_row_alone_gives_the_bits_that_it_has_in_a_batch(engine: Engine) -> None:
    """Rows that are folded side by side take no other way than a single one."""
    for norm in Norm:
        for length in (3, 16, 97, 768, 1024):
            x = np.random.default_rng(length).standard_normal((5, 1, length)).astype(np.float32)
            alone = [_run(engine, norm.value, Along.ROWS, np.ascontiguousarray(row[None])) for row in x]
            assert _run(engine, norm.value, Along.ROWS, x).tobytes() == np.concatenate(alone).tobytes()


@pytest.mark.parametrize("along", Along)
def test_special_values(engine: Engine, along: Along) -> None:
    """Nothing but zeros stays so; huge equal elements are their mean; NaN and infinity make NaN of their fold alone."""
    rows = np.array([[0] * 4, [1e30] * 4, [np.nan, 1, 2, 3], [np.inf, 1, 2, 3], [1, -1, 1, -1]], np.float32)
    x = rows[:, None, :] if along is Along.ROWS else np.ascontiguousarray(rows.T[None])
    for norm in Norm:
        y = _run(engine, norm.value, along, x)
        found = y[:, 0, :] if along is Along.ROWS else y[0].T
        assert (found[0] == 0).all()
        assert np.isnan(found[2]).all() or norm is not Norm.STANDARD
        assert np.isnan(found[2, 0])
        assert np.isfinite(found[4]).all()
    y = _run(engine, "standard", along, x)
    assert ((y[1, 0, :] if along is Along.ROWS else y[0].T[1]) == 0).all()
