"""Steps written into a copy of a cache."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import I32
from sardonyx.codegen.kernels.cache_write import write_cache_write
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target


def _engine(target: Target, *, wraps: bool) -> Engine:
    engine, module = Engine(target), Module(target)
    write_cache_write(module, "write", I32, wraps=wraps, reads_starts=True)
    engine.add(module)
    return engine


@pytest.mark.parametrize(("start", "wanted"), [(0, [9, 8, 2, 3]), (2, [0, 1, 9, 8]), (3, [8, 1, 2, 9]), (7, [8, 1, 2, 9])])
def test_steps_wrap_around(target: Target, start: int, wanted: list[int]) -> None:
    """Two steps in a cache of four."""
    result, status = np.full(4, -7, np.int32), np.zeros(1, np.int64)
    buffers = [np.arange(4, dtype=np.int32), np.array([9, 8], np.int32), result, status, np.array([start])]
    call(_engine(target, wraps=True), "write", buffers, [1, 4, 2, 1])
    assert (result.tolist(), status.tolist()) == (wanted, [0])


@pytest.mark.parametrize("start", [-1, 3, 2**62])
def test_starts_that_do_not_fit_are_reported(target: Target, start: int) -> None:
    """Nothing is written for them."""
    result, status = np.full(4, -7, np.int32), np.zeros(1, np.int64)
    buffers = [np.arange(4, dtype=np.int32), np.array([9, 8], np.int32), result, status, np.array([start])]
    call(_engine(target, wraps=False), "write", buffers, [1, 4, 2, 1])
    assert (result.tolist(), status.tolist()) == ([-7] * 4, [1])
