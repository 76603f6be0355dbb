"""Stored, filled and counted arrays."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import I8, of_dtype
from sardonyx.codegen.kernels.fill import TASK_ELEMENTS, write_count, write_eye, write_fill, write_store
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target

_COUNTS = [0, 1, 15, 16, 17, TASK_ELEMENTS + 3]


@pytest.mark.parametrize("kind", ["int64", "int32", "float32", "float64", "bool"])
def test_numbers_are_stored(target: Target, kind: str) -> None:
    """Parameters become elements of any type."""
    module = Module(target)
    write_store(module, "store", of_dtype(np.dtype(kind)))
    engine = Engine(target)
    engine.add(module)
    result = np.ones(4, kind)
    call(engine, "store", [result], [3, 0, 7, -2])
    np.testing.assert_array_equal(result, np.array([0, 7, -2, 1]).astype(kind))


def test_every_element_is_filled(target: Target) -> None:
    """And none behind the last."""
    module = Module(target)
    write_fill(module, "fill", I8)
    engine = Engine(target)
    engine.add(module)
    for count in _COUNTS:
        result = np.zeros(count + 64, np.int8)
        call(engine, "fill", [np.array([7], np.int8), result], [count], 0, -(-count // TASK_ELEMENTS))
        assert (result[:count] == 7).all()
        assert not result[count:].any()


@pytest.mark.parametrize("kind", ["int16", "int32", "int64", "float32", "float64"])
def test_counting_rounds_twice(target: Target, kind: str) -> None:
    """The product first, then the sum; integers are exact."""
    module = Module(target)
    write_count(module, "count", of_dtype(np.dtype(kind)))
    engine = Engine(target)
    engine.add(module)
    start, delta = np.array([-3.1], np.float64).astype(kind), np.array([2.3], np.float64).astype(kind)
    for count in _COUNTS:
        result = np.zeros(count + 64, kind)
        call(engine, "count", [start, delta, result], [count], 0, -(-count // TASK_ELEMENTS))
        np.testing.assert_array_equal(result[:count], np.arange(count).astype(kind) * delta + start)
        assert not result[count:].any()


@pytest.mark.parametrize("diagonal", [-5, -2, 0, 3, 40])
@pytest.mark.parametrize("columns", [1, 16, 37])
def test_a_diagonal_of_ones(target: Target, columns: int, diagonal: int) -> None:
    """It may lie outside of the matrix."""
    module, result = Module(target), np.full((5, columns), 7, np.int8)
    write_eye(module, "eye", I8)
    engine = Engine(target)
    engine.add(module)
    call(engine, "eye", [np.ones(1, np.int8), result], [5, columns, diagonal, 2], 0, 3)
    np.testing.assert_array_equal(result, np.eye(5, columns, diagonal, dtype=np.int8))
