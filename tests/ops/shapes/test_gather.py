"""Facts about operators that read or write at places that an input names."""

from __future__ import annotations

import numpy as np
import pytest
from support.infer_op import UNKNOWN_DIM, A, B, error_of, floats, infer_op, infer_shape, ints, scalar

from sardonyx.dtypes import DataType
from sardonyx.ir import Dim
from sardonyx.ops.fact import UNKNOWN, Fact, known, tensor


def indices(*shape: Dim) -> Fact:
    return tensor(DataType.INT64, shape)


def test_gather_puts_the_indices_dimensions_in_place_of_the_axis() -> None:
    """The axis is replaced by the shape of the indices, which may be a scalar."""
    assert infer_shape("Gather", floats(A, 3, B), indices(4, 5), axis=1) == (A, 4, 5, B)
    assert infer_shape("Gather", floats(A, 3), scalar(0), axis=-1) == (A,)
    assert infer_shape("Gather", UNKNOWN, indices(4)) is None


def test_gather_picks_elements() -> None:
    """Known elements at known indices are known."""
    assert infer_op("Gather", ints(A, 3, B), scalar(-1))[0].elements == [B]
    assert infer_op("Gather", ints(A, 3, B), ints(2, 0))[0].elements == [B, A]


def test_gather_checks_indices_against_a_known_size() -> None:
    """A constant index that no size of the axis can hold is refused."""
    assert "index 3 is outside [-3, 2]" in error_of("Gather", floats(3), ints(0, 3))
    assert infer_shape("Gather", floats(A), ints(100)) == (1,)
    assert "scalar" in error_of("Gather", floats(), scalar(0))


def test_gather_elements_is_shaped_as_the_indices() -> None:
    """Ranks must agree."""
    assert infer_shape("GatherElements", floats(A, 3), indices(2, 3)) == (2, 3)
    assert "ranks 2 and 1" in error_of("GatherElements", floats(A, 3), indices(2))


@pytest.mark.parametrize(("batch", "expected"), [(0, (4, 5, 7)), (1, (4, 5))])
def test_gather_nd(batch: int, expected: tuple[int, ...]) -> None:
    """The last dimension of the indices says how many axes are addressed."""
    assert infer_shape("GatherND", floats(4, 6, 7), indices(4, 5, 2), batch_dims=batch) == expected


def test_gather_nd_reads_elements() -> None:
    """Elements at known tuples of indices are known."""
    data = known(DataType.INT64, np.arange(6).reshape(2, 3))
    places = known(DataType.INT64, np.array([[1, 2], [0, 1]]))
    assert infer_op("GatherND", data, places)[0].elements == [5, 1]
    assert "address 3 axes" in error_of("GatherND", data, indices(1, 3))
    assert infer_shape("GatherND", floats(2, 3), indices(2, A)) is None


@pytest.mark.parametrize("op_type", ["Scatter", "ScatterElements", "ScatterND"])
def test_scatter_keeps_the_shape(op_type: str) -> None:
    """What is written to keeps its shape."""
    assert infer_shape(op_type, floats(A, 3), indices(1, 1), floats(1, 1)) == (A, 3)


def test_tensor_scatter_is_as_the_cache() -> None:
    """The cache keeps its shape."""
    assert infer_shape("TensorScatter", floats(A, 2, 128, 64), floats(A, 2, 1, 64)) == (A, 2, 128, 64)


def test_compress_counts_a_known_condition() -> None:
    """A known condition gives the size, an unknown one does not."""
    condition = known(DataType.BOOL, np.array([True, False, True, True]))
    assert infer_shape("Compress", floats(3, B), condition, axis=0) == (2, B)
    assert infer_shape("Compress", floats(A, B), condition, axis=0) == (UNKNOWN_DIM, B)
    assert infer_shape("Compress", floats(2, 3), condition) == (3,)
    assert infer_shape("Compress", floats(2, 3), tensor(DataType.BOOL, (2,)), axis=0) == (UNKNOWN_DIM, 3)


def test_non_zero_has_a_row_for_each_axis() -> None:
    """How many elements are not 0 is known only of known elements."""
    assert infer_shape("NonZero", floats(A, 3)) == (2, UNKNOWN_DIM)
    assert infer_op("NonZero", ints(0, 5, 7))[0].elements == [1, 2]


def test_one_hot_inserts_the_depth() -> None:
    """The depth, a value, becomes a dimension at the axis."""
    assert infer_shape("OneHot", indices(A, B), scalar(10), floats(2)) == (A, B, 10)
    assert infer_shape("OneHot", indices(A, B), scalar(10.0), floats(2), axis=0) == (10, A, B)
    assert infer_shape("OneHot", indices(A), indices(), floats(2)) == (A, UNKNOWN_DIM)
