"""Elements at places: the last one of several stays, and wrong places write nothing."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import I32
from sardonyx.codegen.kernels.images.unpool import write_unpool
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """A kernel for elements of four bytes."""
    module = Module(target)
    write_unpool(module, "unpool", I32)
    engine = Engine(target)
    engine.add(module)
    return engine


@pytest.mark.parametrize("size", [4, 16, 37])
def test_elements_are_put_over_zeros(engine: Engine, size: int) -> None:
    """In their order."""
    result, status = np.full(size + 1, -7, np.int32), np.zeros(1, np.int64)
    call(engine, "unpool", [np.array([5, 6, 7], np.int32), np.array([1, 3, 1]), result, status], [3, size])
    assert result[:5].tolist()[:4] == [0, 7, 0, 6]
    assert (result[4:size].tolist(), result[size], status[0]) == ([0] * (size - 4), -7, 0)


@pytest.mark.parametrize("wrong", [-1, 4, 1 << 62, -(1 << 63)])
def test_a_wrong_place_is_reported(engine: Engine, wrong: int) -> None:
    """By its number."""
    result, status = np.zeros(4, np.int32), np.zeros(1, np.int64)
    call(engine, "unpool", [np.array([5, 6], np.int32), np.array([0, wrong]), result, status], [2, 4])
    assert (result.tolist(), status[0]) == ([5, 0, 0, 0], 2)
