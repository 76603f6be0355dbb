"""Kernels that measure a machine."""

import numpy as np
import pytest

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.float_words import float_word
from sardonyx.codegen.kernels.peak import SCALE_BYTES, write_multiply_adds, write_scale
from sardonyx.codegen.run.driver import Driver
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.run.step_table import Buffer, KernelCall, StepTable
from sardonyx.codegen.target import available_levels, host_target
from sardonyx.dtypes import Array


def _run(level: str, kernel: str, data: Array, params: list[int], tasks: int) -> None:
    target = host_target(level)
    module, engine = Module(target), Engine(target)
    write_multiply_adds(module, "multiply_adds")
    write_scale(module, "scale")
    engine.add(module)
    table = StepTable([KernelCall(engine.address(kernel), [Buffer(1)] * 2, params, tasks)], 1)
    table.set_bases([data.ctypes.data])
    assert Driver(target).run(table) == -1


@pytest.mark.parametrize("level", available_levels())
def test_memory_is_read_and_written(level: str) -> None:
    """Every element of every task, once."""
    data = np.arange(3 * SCALE_BYTES // 4, dtype=np.float32)
    expected = data * 2
    expected[2 * SCALE_BYTES // 4 :] /= 2
    _run(level, "scale", data, [float_word(2.0)], 2)
    np.testing.assert_array_equal(data, expected)


@pytest.mark.parametrize("level", available_levels())
def test_multiply_adds_are_done(level: str) -> None:
    """Chain i begins at 1 + i and adds 1 as often as asked: for 2 tasks of 3 loops 6 times."""
    target = host_target(level)
    chains = write_multiply_adds(Module(target), "m") // (2 * target.lanes(32))
    data = np.ones(64, np.float32)
    _run(level, "multiply_adds", data, [3], 2)
    assert data[: target.lanes(32)].tolist() == [sum(1.0 + place + 6 for place in range(chains))] * target.lanes(32)
