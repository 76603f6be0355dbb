"""Determinants by elimination."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F64
from sardonyx.codegen.kernels.determinant import write_determinant
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """Of float64."""
    engine, module = Engine(target), Module(target)
    write_determinant(module, "determinant", F64)
    engine.add(module)
    return engine


@pytest.mark.parametrize("size", [1, 7, 8, 9])
def test_against_numpy(engine: Engine, size: int) -> None:
    """Matrices one after the other, in one workspace."""
    x, y = np.random.default_rng(size).standard_normal((3, size, size)), np.zeros(3)
    call(engine, "determinant", [x, y, np.zeros((1, size, size))], [size, 1], 0, 3)
    np.testing.assert_allclose(y, np.linalg.det(x), rtol=1e-12)


def test_rows_that_are_exchanged_turn_the_sign(engine: Engine) -> None:
    """Of the unit matrix with two rows exchanged, and of one with two rows that are equal."""
    x, y = np.stack([np.eye(3)[[0, 2, 1]], np.ones((3, 3))]), np.zeros(2)
    call(engine, "determinant", [x, y, np.zeros((1, 3, 3))], [3, 1], 0, 2)
    assert y.tolist() == [-1, 0]
