"""OrtValues."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import sardonyx as ort
from sardonyx.dtypes import Array, DataType
from sardonyx.ir import SequenceType, TensorType

X: Array = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_a_tensor_describes_itself() -> None:
    """With onnxruntime's names and numbers."""
    value = ort.OrtValue.ortvalue_from_numpy(X)
    found = (value.shape(), value.data_type(), value.element_type(), value.device_name(), value.tensor_size_in_bytes())
    assert found == ([2, 3], "tensor(float)", 1, "cpu", 24)
    assert (value.has_value(), value.is_tensor(), value.is_sparse_tensor(), value.is_tensor_sequence()) == (
        True,
        True,
        False,
        False,
    )


def test_a_dense_array_is_shared() -> None:
    """By address, in and out."""
    value = ort.OrtValue.ortvalue_from_numpy(X)
    assert value.data_ptr() == X.ctypes.data == value.numpy().ctypes.data == np.asarray(value).ctypes.data


@pytest.mark.parametrize("array", [X.T, X[:, ::2], X.astype(">f4")], ids=["transposed", "strided", "byte-swapped"])
def test_another_array_is_copied(array: Array) -> None:
    """Its values stay."""
    np.testing.assert_array_equal(ort.OrtValue.ortvalue_from_numpy(array).numpy(), array.astype(np.float32))


def test_text_is_held_as_strings() -> None:
    """Fixed-width text and bytes too."""
    for array in (np.array(["a", "bc"]), np.array([b"a", b"bc"]), np.array(["a", "bc"], dtype=object)):
        value = ort.OrtValue.ortvalue_from_numpy(array)
        assert (value.data_type(), value.numpy().tolist()) == ("tensor(string)", ["a", "bc"])
    with pytest.raises(ort.InvalidArgument, match="text has no address"):
        value.data_ptr()


@pytest.mark.parametrize(
    ("bits", "kind", "expected"),
    [
        (np.array([0x3F80], np.uint16), DataType.BFLOAT16, [1.0]),
        (np.array([0x38], np.uint8), DataType.FLOAT8E4M3FN, [1.0]),
        (np.array([0x7F, 0x01, 0], np.uint8), DataType.INT4, [-1, 7, 1]),
        (np.array([0x7F, 0x01, 0], np.uint8), DataType.UINT4, [15, 7, 1]),
        (np.array([0b11100100, 0, 0, 0], np.uint8), DataType.UINT2, [0, 1, 2, 3]),
    ],
)
def test_bits_are_read_as_another_type(bits: Array, kind: DataType, expected: list[float]) -> None:
    """Types of less than a byte lie packed, the low bits first."""
    value = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, kind)
    assert (value.data_type(), np.asarray(value).astype(np.float32).tolist()) == (f"tensor({kind})", expected)


def test_bits_of_another_width_are_refused() -> None:
    """Both widths are shown."""
    with pytest.raises(ort.InvalidArgument, match="incoming array: 1 specified by onnxtype: 2"):
        ort.OrtValue.ortvalue_from_numpy_with_onnx_type(np.zeros(3, np.uint8), DataType.BFLOAT16)


def test_numbers_of_half_a_byte_come_in_bytes() -> None:
    """Two in each; elements of another width are none of them."""
    with pytest.raises(ort.InvalidArgument, match=r"tensor\(int4\) lie in bytes, 2 in each"):
        ort.OrtValue.ortvalue_from_numpy_with_onnx_type(np.zeros(2, np.float32), DataType.INT4)


def test_no_type_is_not_float64() -> None:
    """NumPy takes None for it."""
    with pytest.raises(TypeError, match="onnx_element_type is an integer, got None"):
        ort.OrtValue.ortvalue_from_numpy_with_onnx_type(np.zeros(2), None)  # type: ignore[arg-type]
    with pytest.raises(ort.InvalidArgument, match="element_type is a NumPy type"):
        ort.OrtValue.ortvalue_from_shape_and_type([2], None)  # type: ignore[arg-type]


def test_float8_comes_back_as_bytes() -> None:
    """As onnxruntime gives it; `__array__` keeps the type."""
    value = ort.OrtValue.ortvalue_from_numpy(np.ones(3, ml_dtypes.float8_e4m3fn))
    assert (value.numpy().dtype, np.asarray(value).dtype) == (np.uint8, ml_dtypes.float8_e4m3fn)


@pytest.mark.parametrize("kind", [np.float32, "float32", 1, np.dtype("float32"), DataType.FLOAT])
def test_a_tensor_is_made_of_shape_and_type(kind: Any) -> None:
    """NumPy's types and ONNX's numbers."""
    value = ort.OrtValue.ortvalue_from_shape_and_type([2, 3], kind)
    assert (value.shape(), value.data_type()) == ([2, 3], "tensor(float)")


@pytest.mark.parametrize(
    ("shape", "kind"), [([-1], np.float32), ([1 << 62, 8], np.float32), ([1], "datetime64"), ([1], 99), ([1], 0)]
)
def test_a_shape_or_type_that_cannot_be_is_refused(shape: list[int], kind: Any) -> None:
    """With a typed error."""
    with pytest.raises(ort.InvalidArgument):
        ort.OrtValue.ortvalue_from_shape_and_type(shape, kind)


def test_only_the_host_has_memory() -> None:
    """Other devices are refused by name, unknown ones as arguments."""
    with pytest.raises(ort.NotImplemented, match="cuda"):
        ort.OrtValue.ortvalue_from_numpy(X, "cuda", 0)
    with pytest.raises(ort.InvalidArgument, match="Unsupported device type"):
        ort.OrtValue.ortvalue_from_shape_and_type([1], np.float32, "foo")


def test_an_update_keeps_the_address() -> None:
    """Of an array or another value."""
    value = ort.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32)
    address = value.data_ptr()
    value.update_inplace(X)
    value.update_inplace(ort.OrtValue.ortvalue_from_numpy(X + 1))
    np.testing.assert_array_equal(value.numpy(), X + 1)
    assert value.data_ptr() == address


@pytest.mark.parametrize("data", [np.zeros((4, 4), np.float32), np.zeros(3, np.float32), np.array(["a"] * 3, dtype=object)])
def test_an_update_of_another_size_is_refused(data: Array) -> None:
    """Nothing is written beyond the tensor."""
    with pytest.raises(ort.InvalidArgument, match="does not match the size of the OrtValue"):
        ort.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32).update_inplace(data)


def test_read_only_memory_is_not_updated() -> None:
    """A constant stays one."""
    array = X.copy()
    array.flags.writeable = False
    with pytest.raises(ort.InvalidArgument, match="read-only"):
        ort.OrtValue.ortvalue_from_numpy(array).update_inplace(X)


@pytest.mark.parametrize(
    ("held", "kind"),
    [
        ([X, X], "seq(tensor(float))"),
        ({"a": 1.0}, "map(string,tensor(float))"),
        ({1: X}, "map(int64,tensor(float))"),
        (None, "optional()"),
    ],
)
def test_other_values_are_held_too(held: Any, kind: str) -> None:
    """They are no tensors."""
    value = ort.OrtValue.of(held)
    assert (value.data_type(), value.is_tensor(), value.has_value()) == (kind, False, held is not None)
    with pytest.raises(ort.RuntimeException, match="only OrtValues that are Tensors"):
        value.numpy()


def test_a_type_may_be_given() -> None:
    """Where the value does not show it."""
    assert ort.OrtValue.of([], SequenceType(TensorType(DataType.INT64))).data_type() == "seq(tensor(int64))"


def test_a_sparse_tensor_is_held() -> None:
    """It has a shape and no address."""
    sparse = ort.SparseTensor.from_dense(X)
    value = ort.OrtValue.ort_value_from_sparse_tensor(sparse)
    assert (value.shape(), value.is_sparse_tensor(), value.as_sparse_tensor()) == ([2, 3], True, sparse)
    with pytest.raises(ort.InvalidArgument, match="no sparse tensor"):
        ort.OrtValue.ortvalue_from_numpy(X).as_sparse_tensor()


@pytest.mark.parametrize("given", [3, X, None, [X]])
def test_the_constructor_takes_a_value(given: Any) -> None:
    """Anything else is told where values are made."""
    with pytest.raises(ort.InvalidArgument, match="ortvalue_from_numpy"):
        ort.OrtValue(given)


def test_tensors_are_copied_pairwise() -> None:
    """Into the memory that is there."""
    target = ort.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32)
    ort.copy_tensors([ort.OrtValue.ortvalue_from_numpy(X)], [target])
    np.testing.assert_array_equal(target.numpy(), X)
    with pytest.raises(ort.InvalidArgument, match="1 sources for 0 destinations"):
        ort.copy_tensors([target], [])


def test_a_sequence_of_tensors_has_their_type() -> None:
    """As onnxruntime's; other values that are no tensors have none."""
    assert ort.OrtValue.of([np.zeros(2, np.float32)]).element_type() == 1
    with pytest.raises(ort.RuntimeException, match="element_type"):
        ort.OrtValue.of([{"a": 1.0}]).element_type()


def test_numbers_of_maps_are_floats() -> None:
    """Those that a session returns are Python's."""
    assert ort.OrtValue.of([{"a": 1.0}]).data_type() == "seq(map(string,tensor(float)))"
    assert ort.OrtValue.of({1: 2}).data_type() == "map(int64,tensor(int64))"


def test_an_array_that_memory_does_not_hold_is_refused() -> None:
    """Whose elements repeat, so that it takes no memory itself."""
    with pytest.raises(ort.InvalidArgument, match="can be allocated"):
        ort.OrtValue.ortvalue_from_numpy(np.broadcast_to(np.zeros(1, np.float32), (1 << 31, 1 << 20)))
