"""Facts about reductions."""

from __future__ import annotations

import pytest
from support.infer_op import UNKNOWN_DIM, A, B, dtype_of, error_of, floats, infer_op, infer_shape, ints, scalar

from sardonyx.dtypes import DataType
from sardonyx.ops.fact import tensor


def test_axes_are_kept_as_ones_or_dropped() -> None:
    """Keepdims decides what is left of a reduced axis; no axes mean all."""
    assert infer_shape("ReduceSum", floats(A, 3, B), ints(1)) == (A, 1, B)
    assert infer_shape("ReduceMean", floats(A, 3, B), ints(-1), keepdims=0) == (A, 3)
    assert infer_shape("ReduceMax", floats(A, 3), keepdims=0) == ()


def test_empty_axes_may_mean_none() -> None:
    """With noop_with_empty_axes nothing is reduced."""
    assert infer_shape("ReduceSum", floats(A, 3), noop_with_empty_axes=1) == (A, 3)
    assert infer_shape("ReduceSum", floats(A, 3), ints(), keepdims=0) == ()


def test_axes_were_an_attribute() -> None:
    """Before 13 (ReduceSum) and 18 the axes are an attribute."""
    assert infer_shape("ReduceSum", floats(A, 3), version=11, axes=(0,)) == (1, 3)
    assert infer_shape("ReduceMean", floats(A, 3), version=13, axes=(1,), keepdims=0) == (A,)


def test_unknown_axes_leave_the_rank() -> None:
    """With keepdims the rank is known even where the axes are not."""
    axes = tensor(DataType.INT64, (1,))
    assert infer_shape("ReduceSum", floats(2, 3), axes) == (UNKNOWN_DIM, UNKNOWN_DIM)
    assert infer_shape("ReduceSum", floats(2, 3), axes, keepdims=0) is None


@pytest.mark.parametrize(("op_type", "expected"), [("ReduceProd", 6 * A), ("ReduceSum", A + 5), ("ReduceMax", None)])
def test_sizes_are_reduced(op_type: str, expected: object) -> None:
    """A vector of sizes reduces to a size."""
    (fact,) = infer_op(op_type, ints(A, 2, 3), ints(0), keepdims=0)
    assert fact.shape == ()
    assert expected is None or fact.elements == [expected]


def test_arg_gives_int64() -> None:
    """ArgMax drops or keeps its axis and gives indices."""
    assert infer_shape("ArgMax", floats(A, 3), axis=1) == (A, 1)
    assert infer_shape("ArgMin", floats(A, 3), axis=-2, keepdims=0) == (3,)
    assert dtype_of("ArgMax", floats(A)) is DataType.INT64


def test_running_sums_keep_the_shape() -> None:
    """CumSum is as its input, and computed for known elements."""
    assert infer_shape("CumSum", floats(A, 3), scalar(0)) == (A, 3)
    assert infer_op("CumSum", ints(1, 2, 3), scalar(0))[0].elements == [1, 3, 6]


def test_axis_out_of_range_is_refused() -> None:
    """The axes must be there."""
    assert "axes=5 is outside" in error_of("ReduceSum", floats(2, 3), ints(5))
