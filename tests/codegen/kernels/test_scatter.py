"""Scattering by index: places that recur, wrong indices, reductions."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, I64
from sardonyx.codegen.kernels.gather import GatherElementsParams
from sardonyx.codegen.kernels.scatter import REDUCTIONS, write_scatter, write_scatter_elements
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """Kernels for every reduction."""
    module = Module(target)
    for reduction in REDUCTIONS:
        write_scatter(module, f"rows_{reduction}", F32, I64, 1, reduction)
        write_scatter_elements(module, f"elements_{reduction}", F32, I64, reduction)
    write_scatter(module, "pairs", F32, I64, 2, "none")
    engine = Engine(target)
    engine.add(module)
    return engine


_RESULTS = {
    "none": [50.0, 2, 30, 4],
    "add": [61.0, 2, 33, 4],
    "mul": [500.0, 2, 90, 4],
    "max": [50.0, 2, 30, 4],
    "min": [1.0, 2, 3, 4],
}


@pytest.mark.parametrize("reduction", list(REDUCTIONS))
@pytest.mark.parametrize("inner", [1, 16, 19])
def test_updates_are_combined_in_order(engine: Engine, reduction: str, inner: int) -> None:
    """A place that recurs keeps the last update, or all of them combined."""
    result = np.repeat(np.array([[1.0], [2], [3], [4]], np.float32), inner, 1)
    updates = np.repeat(np.array([[10.0], [30], [50]], np.float32), inner, 1)
    status = np.zeros(1, np.int64)
    call(engine, f"rows_{reduction}", [np.array([0, -2, 0]), updates, result, status], [3, inner, 2, 4, inner], 0, 2)
    np.testing.assert_array_equal(result, np.repeat(np.array(_RESULTS[reduction], np.float32)[:, None], inner, 1))
    assert status[0] == 0


@pytest.mark.parametrize("wrong", [4, -5, 1 << 60])
def test_a_wrong_index_writes_nothing(engine: Engine, wrong: int) -> None:
    """It is reported by its place, and the other updates are written."""
    guarded = np.zeros(24, np.float32)
    status = np.zeros(1, np.int64)
    updates = np.ones((2, 2), np.float32)
    call(engine, "rows_none", [np.array([wrong, 1]), updates, guarded[8:16], status], [2, 2, 2, 4, 2])
    assert status[0] == 1
    assert guarded.tolist() == [0.0] * 10 + [1.0] * 2 + [0.0] * 12


def test_a_wrong_pair_is_reported_by_its_first_number(engine: Engine) -> None:
    """Counted through all pairs, from 1."""
    status, result = np.zeros(1, np.int64), np.zeros((2, 3), np.float32)
    call(engine, "pairs", [np.array([[1, 2], [0, 3]]), np.ones(2, np.float32), result, status], [2, 1, 2, 2, 3, 3, 1])
    assert status[0] == 3
    assert result.tolist() == [[0, 0, 0], [0, 0, 1]]


def test_nan_passes_through_reductions(engine: Engine) -> None:
    """As in NumPy, in either order."""
    for reduction in ("max", "min"):
        result, status = np.array([np.nan, 1], np.float32), np.zeros(1, np.int64)
        updates = np.array([5, np.nan], np.float32)
        call(engine, f"rows_{reduction}", [np.array([0, 1]), updates, result, status], [2, 1, 2, 2, 1])
        assert np.isnan(result).all()


@pytest.mark.parametrize("block", [1, 3, 100])
@pytest.mark.parametrize("axis", [0, 1])
def test_elements_are_written_along_an_axis(engine: Engine, axis: int, block: int) -> None:
    """Each update goes to its own place but for the axis, whatever blocks they are cut into."""
    indices = np.array([[0, -1], [1, 0]])
    updates, status = np.arange(1, 5, dtype=np.float32).reshape(2, 2), np.zeros(1, np.int64)
    result, wanted = np.zeros((3, 4), np.float32), np.zeros((3, 4), np.float32)
    params = GatherElementsParams.along(axis, (3, 4), (2, 2), 100).words()
    params[5] = block
    call(engine, "elements_add", [indices, updates, result, status], params, 0, -(-4 // block))
    for place, index in np.ndenumerate(indices):
        wanted[(index, place[1]) if axis == 0 else (place[0], index)] += updates[place]
    np.testing.assert_array_equal(result, wanted)
    indices[1, 1] = 9
    call(engine, "elements_add", [indices, updates, result, status], params, 0, -(-4 // block))
    assert status[0] == 4
