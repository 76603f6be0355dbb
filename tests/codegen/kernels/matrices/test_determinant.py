"""Determinants by elimination."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F64
from sardonyx.codegen.kernels.matrices.determinant import write_determinant
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """Of float64."""
    engine, module = Engine(target), Module(target)
    write_determinant(module, "determinant", F64)
    engine.add(module)
    return engine


def _determinants(engine: Engine, x: Array, *, together: int, columns: int) -> Array:
    """What the kernel makes of matrices, with so many at a time and so many columns for each task."""
    count, size = x.shape[:2]
    y, parts = np.full(count, 7.0), max(-(-size // columns), 1)
    tasks = -(-count // together) * parts * together
    call(engine, "determinant", [x, y, np.zeros((together, size * size + 1))], [size, together, parts, columns, count], 0, tasks)
    return y


@pytest.mark.parametrize("together", [1, 2, 5])
@pytest.mark.parametrize("columns", [1, 3, 100])
@pytest.mark.parametrize("size", [0, 1, 7, 8, 9])
def test_against_numpy(engine: Engine, size: int, columns: int, together: int) -> None:
    """Matrices one after the other, or several at a time, with the columns divided among tasks or not."""
    x = np.random.default_rng(size).standard_normal((3, size, size))
    found = _determinants(engine, x, together=together, columns=columns)
    np.testing.assert_allclose(found, np.linalg.det(x), rtol=1e-12)


def test_rows_that_are_exchanged_turn_the_sign(engine: Engine) -> None:
    """Of the unit matrix with two rows exchanged, and of one with two rows that are equal."""
    x = np.stack([np.eye(3)[[0, 2, 1]], np.ones((3, 3))])
    assert _determinants(engine, x, together=1, columns=2).tolist() == [-1, 0]
