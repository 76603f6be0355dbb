"""Inverses by elimination in place."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F64
from sardonyx.codegen.kernels.matrices.inverse import write_inverse
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """Of float64."""
    engine, module = Engine(target), Module(target)
    write_inverse(module, "inverse", F64)
    engine.add(module)
    return engine


def _inverses(engine: Engine, x: Array, *, together: int = 1, columns: int = 100) -> tuple[Array, int]:
    """What the kernel makes of matrices, with so many at a time and so many columns for each task, and its status."""
    count, size = x.shape[:2]
    y, status, parts = np.full((count + 1, size, size), 7.0), np.zeros(1, np.int64), max(-(-size // columns), 1)
    tasks, work = -(-count // together) * parts * together, np.zeros((together, size * size + 2 * size + 1))
    call(engine, "inverse", [x, y, work, status], [size, together, parts, columns, count], 0, tasks)
    assert (y[count] == 7).all()
    return y[:count], int(status[0])


@pytest.mark.parametrize("together", [1, 2, 5])
@pytest.mark.parametrize("columns", [1, 3, 100])
@pytest.mark.parametrize("size", [0, 1, 2, 5, 7, 8, 9, 17])
def test_against_numpy(engine: Engine, size: int, columns: int, together: int) -> None:
    """Matrices one after the other, or several at a time, with the columns divided among tasks or not."""
    x = np.random.default_rng(size).standard_normal((3, size, size))
    found, status = _inverses(engine, x, together=together, columns=columns)
    np.testing.assert_allclose(found, np.linalg.inv(x), rtol=1e-9, atol=1e-9)
    assert status == 0


def test_rows_that_change_places(engine: Engine) -> None:
    """A permutation is inverted exactly, whatever moved."""
    x = np.stack([np.eye(6)[order] for order in ([5, 4, 3, 2, 1, 0], [1, 2, 3, 4, 5, 0], [0, 2, 1, 5, 3, 4])])
    assert (_inverses(engine, x)[0] == x.transpose(0, 2, 1)).all()


def test_a_singular_matrix_is_reported(engine: Engine) -> None:
    """By its number and 1; NaN is no reason."""
    x = np.stack([np.eye(3), np.ones((3, 3)), np.full((3, 3), np.nan)])
    found, status = _inverses(engine, x)
    assert status == 2
    assert (found[0] == x[0]).all()
    assert np.isnan(found[2]).all()
