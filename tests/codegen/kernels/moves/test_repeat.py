"""Rows that are repeated."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import of_dtype
from sardonyx.codegen.kernels.moves.repeat import RepeatParams, write_repeat
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target

KINDS = ["int8", "int16", "int32", "int64"]


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """An engine with the kernel of each size."""
    engine = Engine(target)
    for kind in KINDS:
        module = Module(target)
        write_repeat(module, kind, of_dtype(np.dtype(kind)))
        engine.add(module)
    return engine


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("inner", [1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 200])
@pytest.mark.parametrize("times", [1, 2, 5, 63, 64, 65, 200])
def test_every_length_and_number(engine: Engine, kind: str, inner: int, times: int) -> None:
    """Whole registers, what is left at the end of a task, nothing behind the last element; tasks of any size."""
    x = np.arange(6 * inner).astype(kind).reshape(2, 3, inner)
    expected = np.repeat(x[:, :, None], times, axis=2).reshape(-1)
    for grain in (1, 40, 700, 1 << 20):
        params = RepeatParams.blocked(inner, times, [(2, 3 * inner), (3, inner)], grain=grain)
        found = np.full(expected.size + 64, 99, kind)
        call(engine, kind, [x, found], params.words(), 0, params.tasks())
        np.testing.assert_array_equal(found[: expected.size], expected)
        assert (found[expected.size :] == 99).all()


def test_rows_may_lie_in_any_order(engine: Engine) -> None:
    """As the strides of their dimensions say, backwards too."""
    x = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    params = RepeatParams.blocked(4, 2, [(3, -4), (2, 12)], grain=100)
    found = np.zeros(48, np.int32)
    call(engine, "int32", [x.reshape(-1)[8:], found], params.words(), 0, params.tasks())
    np.testing.assert_array_equal(found, np.repeat(x[:, ::-1].transpose(1, 0, 2)[:, :, None], 2, axis=2).reshape(-1))


def test_nothing_is_no_task() -> None:
    """Rows without elements, no rows, no times."""
    assert RepeatParams.blocked(0, 3, [(2, 1)], grain=9).tasks() == 0
    assert RepeatParams.blocked(3, 3, [(0, 1)], grain=9).tasks() == 0
    assert RepeatParams.blocked(3, 0, [(2, 1)], grain=9).tasks() == 0
