"""Sparse tensors."""

from __future__ import annotations

import numpy as np
import pytest

import sardonyx as ort
from sardonyx.dtypes import Array

DENSE: Array = np.array([[0, 3, 0], [0, 0, 0], [5, 0, 7]], np.float32)
VALUES: Array = np.array([3, 5, 7], np.float32)


def _coo(indices: object) -> ort.SparseTensor:
    return ort.SparseTensor.sparse_coo_from_numpy([3, 3], VALUES, np.array(indices, np.int64), ort.OrtDevice.make("cpu", 0))


@pytest.mark.parametrize("indices", [[1, 6, 8], [[0, 1], [2, 0], [2, 2]]], ids=["flat", "coordinates"])
def test_coo_places_values(indices: object) -> None:
    """By position or by coordinates."""
    made = _coo(indices)
    np.testing.assert_array_equal(made.to_dense(), DENSE)
    assert (made.format(), made.dense_shape(), made.data_type()) == (
        ort.OrtSparseFormat.ORT_SPARSE_COO,
        [3, 3],
        "sparse_tensor(float)",
    )
    np.testing.assert_array_equal(made.as_coo_view().indices(), indices)


def test_coordinates_may_come_flat() -> None:
    """A row after the other, as onnxruntime's examples have them."""
    made = _coo([0, 1, 2, 0, 2, 2])
    np.testing.assert_array_equal(made.to_dense(), DENSE)
    assert made.as_coo_view().indices().shape == (3, 2)


def test_csr_places_values_by_rows() -> None:
    """The outer indices say where each row begins."""
    inner, outer = np.array([1, 0, 2]), np.array([0, 1, 1, 3])
    made = ort.SparseTensor.sparse_csr_from_numpy([3, 3], VALUES, inner, outer, ort.OrtDevice.make("cpu", 0))
    np.testing.assert_array_equal(made.to_dense(), DENSE)
    np.testing.assert_array_equal(made.as_csrc_view().outer(), outer)


def test_values_share_memory_with_what_was_given() -> None:
    """A dense array of them is not copied; it cannot be written through the tensor, whose places are checked once."""
    tensor = _coo([1, 6, 8])
    assert np.shares_memory(tensor.values(), VALUES)
    assert not tensor.values().flags.writeable
    assert not tensor.as_coo_view().indices().flags.writeable
    assert VALUES.flags.writeable


def test_a_dense_array_gives_its_values_and_places() -> None:
    """There and back."""
    np.testing.assert_array_equal(ort.SparseTensor.from_dense(DENSE).to_dense(), DENSE)


def test_a_view_of_another_format_is_refused() -> None:
    """The message names the format that there is."""
    with pytest.raises(ort.InvalidArgument, match=r"does not contain CSR\(C\) format; it has OrtSparseFormat.ORT_SPARSE_COO"):
        _coo([1, 6, 8]).as_csrc_view()


@pytest.mark.parametrize("indices", [[1, 6, 9], [-1, 0, 1], [1, 6], [[0, 1], [2, 0], [2, 3]]])
def test_places_outside_are_refused(indices: object) -> None:
    """So that making the tensor dense writes nowhere else."""
    with pytest.raises(ort.InvalidArgument, match="coo_indices"):
        _coo(indices)


@pytest.mark.parametrize(
    ("inner", "outer"),
    [([1, 0, 3], [0, 1, 1, 3]), ([1, 0, 2], [0, 2, 1, 3]), ([1, 0, 2], [0, 1, 1, 2]), ([1], [0, 1, 1, 3]), ([1, 0, 2], [])],
)
def test_rows_that_do_not_rise_are_refused(inner: list[int], outer: list[int]) -> None:
    """And columns that are not there."""
    with pytest.raises(ort.InvalidArgument, match="inner"):
        ort.SparseTensor.sparse_csr_from_numpy([3, 3], VALUES, np.array(inner), np.array(outer))


def test_other_devices_are_refused() -> None:
    """There is no provider of theirs."""
    with pytest.raises(ort.NotImplemented, match="cuda"):
        ort.SparseTensor.sparse_coo_from_numpy([3, 3], VALUES, np.array([1, 6, 8]), ort.OrtDevice.make("cuda", 0))


def test_values_have_one_dimension() -> None:
    """A column of them is none, as in onnxruntime."""
    with pytest.raises(ort.InvalidArgument, match=r"a list of one dimension, got the shape \(3, 1\)"):
        ort.SparseTensor.sparse_coo_from_numpy([3, 3], VALUES.reshape(-1, 1), np.array([1, 6, 8]))


@pytest.mark.parametrize("shape", [[1] * 70, [-1]], ids=["rank", "negative"])
def test_no_shape_that_no_tensor_has(shape: list[int]) -> None:
    """Ranks above the limit are refused when the tensor is made."""
    with pytest.raises(ort.InvalidArgument, match="at most 64 sizes"):
        ort.SparseTensor.sparse_coo_from_numpy(shape, VALUES[:0], np.zeros(0, np.int64))


def test_a_dense_array_that_memory_does_not_hold_is_refused() -> None:
    """A few values may lie in a shape that takes more than any machine has."""
    made = ort.SparseTensor.sparse_coo_from_numpy([1 << 40, 1 << 40], VALUES, np.array([[0, 0], [1, 1], [2, 2]]))
    with pytest.raises(ort.InvalidArgument, match="no dense array"):
        made.to_dense()


def test_a_device_that_is_none_is_a_type_error() -> None:
    """It is said which argument is wrong."""
    with pytest.raises(TypeError, match="ort_device"):
        ort.SparseTensor.sparse_coo_from_numpy([3, 3], VALUES, np.array([0, 1, 2]), None)  # type: ignore[arg-type]
