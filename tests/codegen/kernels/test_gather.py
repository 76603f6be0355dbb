"""Gathering by index: negative and wrong indices, tasks, tuples."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import I32, I64
from sardonyx.codegen.kernels.gather import GatherElementsParams, GatherParams, write_gather, write_gather_elements
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """Kernels for elements of four bytes."""
    module = Module(target)
    write_gather(module, "rows", I32, I64, 1, single=False)
    write_gather(module, "singles", I32, I64, 1, single=True)
    write_gather(module, "pairs", I32, I32, 2, single=True)
    write_gather_elements(module, "elements", I32, I64)
    engine = Engine(target)
    engine.add(module)
    return engine


def _rows(engine: Engine, data: Array, indices: Array, block: int = 2, together: int = 1) -> tuple[Array, int]:
    outer, axis, inner = data.shape
    result, status = np.full((outer, indices.size, inner), -1, np.int32), np.zeros(1, np.int64)
    params = GatherParams(outer, indices.size, inner, axis * inner, 0, ((axis, inner),), block, together)
    call(engine, "rows", [data, indices, result, status], params.words(), 0, params.tasks())
    return result, int(status[0])


@pytest.mark.parametrize("inner", [0, 1, 15, 16, 17, 37])
def test_rows_are_taken(engine: Engine, inner: int) -> None:
    """Indices count from the end where they are negative."""
    data = np.arange(3 * 5 * inner, dtype=np.int32).reshape(3, 5, inner)
    indices = np.array([4, 0, -1, -5, 2], np.int64)
    result, status = _rows(engine, data, indices)
    np.testing.assert_array_equal(result, data[:, indices])
    assert status == 0


@pytest.mark.parametrize("together", [1, 2, 3, 9])
def test_several_of_a_batch_are_one_task(engine: Engine, together: int) -> None:
    """Where a task has all tuples of each; the last one may have fewer."""
    data = np.arange(7 * 5 * 3, dtype=np.int32).reshape(7, 5, 3)
    indices = np.array([4, 0, -1], np.int64)
    result, status = _rows(engine, data, indices, 100, together)
    np.testing.assert_array_equal(result, data[:, indices])
    assert status == 0


@pytest.mark.parametrize("wrong", [5, -6, 1 << 40, -(1 << 63), (1 << 63) - 1])
def test_a_wrong_index_is_reported_and_reads_nothing(engine: Engine, wrong: int) -> None:
    """The status word has its place, counted from 1; what it would have given is left alone."""
    data = np.arange(10, dtype=np.int32).reshape(1, 5, 2)
    result, status = _rows(engine, data, np.array([1, wrong, 2], np.int64))
    assert status == 2
    np.testing.assert_array_equal(result, [[[2, 3], [-1, -1], [4, 5]]])


def test_tuples_name_elements(engine: Engine) -> None:
    """Two numbers each, for a batch of its own data and tuples."""
    data = np.arange(2 * 3 * 4, dtype=np.int32).reshape(2, 3, 4)
    indices = np.array([[[0, 1], [-1, -1]], [[2, 0], [1, 3]]], np.int32)
    result, status = np.full((2, 2), -1, np.int32), np.zeros(1, np.int64)
    params = GatherParams(2, 2, 1, 12, 2, ((3, 4), (4, 1)), 1)
    call(engine, "pairs", [data, indices, result, status], params.words(), 0, params.tasks())
    np.testing.assert_array_equal(result, [[1, 11], [20, 19]])
    assert status[0] == 0
    indices[1, 1, 1] = 4
    call(engine, "pairs", [data, indices, result, status], params.words(), 0, params.tasks())
    assert status[0] == 7


@pytest.mark.parametrize("grain", [1, 3, 4, 10, 1000])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_elements_are_taken_along_an_axis(engine: Engine, axis: int, grain: int) -> None:
    """Indices may be shorter than the data off the axis, and longer along it; a task is some rows, or a part of one."""
    data = np.arange(3 * 4 * 5, dtype=np.int32).reshape(3, 4, 5)
    shape = [2, 3, 4]
    shape[axis] = 7
    indices = np.random.default_rng(0).integers(-data.shape[axis], data.shape[axis], shape)
    result, status = np.full(shape, -1, np.int32), np.zeros(1, np.int64)
    params = GatherElementsParams.along(axis, data.shape, shape, grain)
    call(engine, "elements", [data, indices, result, status], params.words(), 0, params.tasks())
    cut = tuple(slice(None) if place == axis else slice(size) for place, size in enumerate(shape))
    np.testing.assert_array_equal(result, np.take_along_axis(data[cut], indices % data.shape[axis], axis))
    assert status[0] == 0
    indices[1, 2, 3] = data.shape[axis]
    call(engine, "elements", [data, indices, result, status], params.words(), 0, params.tasks())
    assert status[0] == np.ravel_multi_index((1, 2, 3), shape) + 1


@pytest.mark.parametrize("count", [1, 2, 3, 8, 31, 257, 1024, 1025])
def test_lines_that_take_the_same_places(engine: Engine, count: int) -> None:
    """Several side by side, by a table of places; a wrong index is reported, whichever it is."""
    data = np.arange(23 * 40, dtype=np.int32).reshape(23, 40)
    indices = np.random.default_rng(count).integers(-40, 40, count)
    for together in (3, 4, 7, 23):
        params = GatherParams(23, count, 1, 40, 0, ((40, 1),), 1 << 14, together)
        result, status = np.full((24, count), -1, np.int32), np.zeros(1, np.int64)
        call(engine, "singles", [data, indices, result, status], params.words(), 0, params.tasks())
        np.testing.assert_array_equal(result, [*data[:, indices], np.full(count, -1)])
        assert status[0] == 0
        spoiled = indices.copy()
        spoiled[count // 2] = 40
        call(engine, "singles", [data, spoiled, result, status], params.words(), 0, params.tasks())
        assert (status[0] - 1) % count == count // 2


@pytest.mark.parametrize("count", [1, 15, 16, 17, 33, 100])
@pytest.mark.parametrize("wrong", [5, -6, 1 << 40, -(1 << 63), (1 << 63) - 1])
def test_single_elements_are_taken_by_vectors(engine: Engine, count: int, wrong: int) -> None:
    """Wherever a wrong index stands its place is reported, and the others are taken."""
    data = np.arange(10, dtype=np.int32).reshape(2, 5)
    indices = np.random.default_rng(count).integers(-5, 5, count)
    params = GatherParams(2, count, 1, 5, 0, ((5, 1),), 1 << 14)
    for place in sorted({0, count // 2, count - 1}):
        result, status = np.full((3, count), -1, np.int32), np.zeros(1, np.int64)
        call(engine, "singles", [data, indices, result, status], params.words(), 0, params.tasks())
        np.testing.assert_array_equal(result, [*data[:, indices], np.full(count, -1)])
        assert status[0] == 0
        spoiled = indices.copy()
        spoiled[place] = wrong
        call(engine, "singles", [data, spoiled, result, status], params.words(), 0, params.tasks())
        assert status[0] == place + 1


def test_one_long_row_is_many_tasks() -> None:
    """So that it is shared by threads, and ends when it is to; rows that are short share one, and no index is none."""
    assert GatherElementsParams.along(0, (5,), (1000,), 64).tasks() == 16
    assert GatherElementsParams.along(1, (9, 5), (9, 20), 64).tasks() == 3
    assert GatherElementsParams.along(1, (9, 5), (9, 0), 64).tasks() == 0
    assert GatherElementsParams.along(1, (0, 5), (0, 20), 64).tasks() == 0


@pytest.mark.parametrize("axis", [0, 1])
def test_a_wrong_index_among_elements_is_reported(engine: Engine, axis: int) -> None:
    """In a row of several vectors."""
    data = np.arange(40 * 50, dtype=np.int32).reshape(40, 50)
    indices = np.random.default_rng(0).integers(-40, 40, (40, 50))
    params = GatherElementsParams.along(axis, data.shape, indices.shape, 64)
    result, status = np.full((40, 50), -1, np.int32), np.zeros(1, np.int64)
    call(engine, "elements", [data, indices, result, status], params.words(), 0, params.tasks())
    np.testing.assert_array_equal(result, np.take_along_axis(data, indices, axis))
    assert status[0] == 0
    indices[7, 49] = 50
    call(engine, "elements", [data, indices, result, status], params.words(), 0, params.tasks())
    assert status[0] == 7 * 50 + 49 + 1
