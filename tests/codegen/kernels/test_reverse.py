"""Sequences turned around: every length, either layout, and wrong lengths."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import I32
from sardonyx.codegen.kernels.reverse import write_reverse
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """A kernel for elements of four bytes."""
    module = Module(target)
    write_reverse(module, "reverse", I32, steps_first=True)
    engine = Engine(target)
    engine.add(module)
    return engine


@pytest.mark.parametrize("inner", [0, 1, 16, 19])
def test_the_first_steps_are_turned_around(engine: Engine, inner: int) -> None:
    """The others stay."""
    data, lengths = np.arange(4 * 3 * inner, dtype=np.int32).reshape(4, 3, inner), np.array([0, 3, 4])
    result, status = np.zeros_like(data), np.zeros(1, np.int64)
    call(engine, "reverse", [data, lengths, result, status], [4, 3, inner, 2], 0, 2)
    wanted = data.copy()
    for sequence, length in enumerate(lengths):
        wanted[:length, sequence] = data[:length, sequence][::-1]
    np.testing.assert_array_equal(result, wanted)
    assert status[0] == 0


@pytest.mark.parametrize("wrong", [-1, 5, 1 << 62, -(1 << 63)])
def test_a_length_that_cannot_be_is_reported(engine: Engine, wrong: int) -> None:
    """With the number of its sequence, and nothing of it is written."""
    data, result, status = np.ones((4, 3, 2), np.int32), np.zeros((4, 3, 2), np.int32), np.zeros(1, np.int64)
    call(engine, "reverse", [data, np.array([1, wrong, 4]), result, status], [4, 3, 2, 4], 0, 1)
    assert status[0] == 2
    assert result[:, 1].max() == 0
