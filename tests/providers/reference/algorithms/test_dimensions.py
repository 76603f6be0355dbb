"""Facts about how axes, positions and counts are checked."""

import numpy as np
import pytest

from sardonyx.config import Limits
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms import dimensions
from sardonyx.providers.reference.algorithms.dimensions import (
    as_float,
    as_int,
    as_ints,
    check_output_size,
    normalize_axes,
    normalize_axis,
    normalize_position,
)


def test_negative_axes_count_from_the_back():
    """An axis in [-rank, rank) is counted from the front."""
    assert [normalize_axis(axis, 3) for axis in (-3, -1, 0, 2)] == [0, 2, 0, 2]


@pytest.mark.parametrize("axis", [-4, 3])
def test_an_axis_out_of_range_is_named(axis):
    """The message of a wrong axis holds the axis and the range."""
    with pytest.raises(InvalidArgument, match=rf"axis={axis} is outside \[-3, 2\]"):
        normalize_axis(axis, 3)


def test_axes_named_twice_are_rejected():
    """1 and -1 are the same axis of a matrix."""
    with pytest.raises(InvalidArgument, match="twice"):
        normalize_axes([1, -1], 2)


def test_a_position_out_of_range_is_named():
    """The message of a wrong position holds the number of entries."""
    assert normalize_position(-2, 2) == 0
    with pytest.raises(InvalidArgument, match="there are 2 entries"):
        normalize_position(2, 2)


def test_integers_come_from_tensors_of_rank_0_and_1():
    """A matrix is no list of integers, and two elements are not one."""
    assert as_ints(np.array([3, 4]), "axes") == (3, 4)
    assert as_int(np.array([[7]]), "k") == 7
    with pytest.raises(InvalidArgument, match="axes has shape"):
        as_ints(np.zeros((1, 1), np.int64), "axes")
    with pytest.raises(InvalidArgument, match="exactly one element"):
        as_int(np.array([1, 2]), "k")


def test_sizes_that_no_machine_holds_are_rejected_unallocated():
    """A shape of 2**60 elements raises, whatever memory there is."""
    check_output_size((3, 4), 8)
    with pytest.raises(InvalidArgument, match="at most"):
        check_output_size((1 << 30, 1 << 30), 4)


def test_a_shape_may_take_the_limit_but_no_more(monkeypatch):
    """Its elements times their size."""
    monkeypatch.setattr(dimensions, "LIMITS", Limits(tensor_bytes=16))
    check_output_size((2, 2), 4)
    with pytest.raises(InvalidArgument, match="that is 20 bytes; at most 16 are allowed"):
        check_output_size((5,), 4)


def test_a_float_is_one_element():
    """A tensor of one element is its number; any other is refused by name."""
    assert as_float(np.array([[0.5]]), "ratio") == 0.5
    with pytest.raises(InvalidArgument, match=r"ratio has shape \(0,\); expected a tensor of exactly one element"):
        as_float(np.zeros(0), "ratio")


def test_numbers_that_are_no_integers_are_refused() -> None:
    """An index is not rounded; an empty list has no elements that could be wrong."""
    with pytest.raises(InvalidArgument, match="axes has elements of type float32; expected integers"):
        as_ints(np.array([1.5], np.float32), "axes")
    assert as_ints(np.zeros(0, np.float32), "axes") == ()
