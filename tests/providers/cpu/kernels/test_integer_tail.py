"""The epilogue of an integer product."""

import numpy as np
import pytest

from sardonyx.codegen.emit.expr import argument
from sardonyx.codegen.emit.types import I8, I32, U8
from sardonyx.providers.cpu.kernels.integer_tail import (
    IntegerTail,
    IntegerTailCode,
    multipliers,
    place_integer_epilogue,
    requantized,
)


def test_one_scale_of_weights_is_that_of_every_channel() -> None:
    """There is a multiplier for each channel, in float32: the input's scale times the weights' by the result's."""
    x, w, y = np.float32(0.1), np.array([0.3], np.float32), np.float32(0.7)
    found = multipliers((np.asarray(x), w, np.asarray(y)), 3)
    assert found.tolist() == [np.float32(np.float32(x * w[0]) / y)] * 3


def test_a_scale_of_zero_gives_what_the_division_gives() -> None:
    """Infinity, or NaN, and no warning."""
    zero, one = np.zeros((), np.float32), np.ones((), np.float32)
    assert multipliers((one, one, zero), 1).tolist() == [np.inf]
    assert np.isnan(multipliers((zero, one, zero), 1)).all()


@pytest.mark.parametrize("kind", [U8, I8])
def test_a_result_has_the_type_of_its_zero_point(kind: object) -> None:
    """What is stored is of 8 bits, with or without a sign."""
    assert requantized(U8 if kind is U8 else I8, 3).type == kind


def test_sums_alone_need_no_epilogue() -> None:
    """Sums that are stored as they are."""
    assert place_integer_epilogue(IntegerTailCode(argument(0, I32), "", ()), 3) is None


def test_rows_lie_apart_where_nothing_is_read_at_their_place() -> None:
    """An operand of the size of the result lies densely."""
    expr = argument(0, I32) + argument(1, I32)
    assert IntegerTail(IntegerTailCode(expr, "c", (I32,)), ()).may_be_pitched
    assert not IntegerTail(IntegerTailCode(expr, "w", (I32,)), ()).may_be_pitched
