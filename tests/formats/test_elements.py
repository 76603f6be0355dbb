"""Packed elements and arrays."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, numpy_helper

from sardonyx.dtypes import DataType, bit_width
from sardonyx.formats.elements import pack, packed_size_bytes, unpack

PACKABLE = [dtype for dtype in DataType if dtype not in (DataType.UNDEFINED, DataType.STRING)]
SUB_BYTE = [dtype for dtype in PACKABLE if bit_width(dtype) < 8]


def every_code(dtype: DataType, count: int) -> np.ndarray:
    codes = np.arange(count * dtype.numpy.itemsize, dtype=np.uint8)
    codes = codes % 2 if dtype is DataType.BOOL else codes & ((1 << min(bit_width(dtype), 8)) - 1)
    return codes.view(dtype.numpy)


@pytest.mark.parametrize("dtype", PACKABLE, ids=str)
@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 7, 8, 64, 67])
def test_unpacking_undoes_packing(dtype: DataType, count: int) -> None:
    """Every code of every type survives, whatever the number of elements leaves of the last byte."""
    array = every_code(dtype, count)
    packed = pack(array, dtype)
    assert len(packed) == packed_size_bytes(dtype, count)
    again = unpack(packed, dtype, (count,))
    assert again.dtype == dtype.numpy
    assert again.tobytes() == array.tobytes()


@pytest.mark.parametrize("dtype", SUB_BYTE, ids=str)
@pytest.mark.parametrize("count", [1, 3, 8, 21])
def test_packing_agrees_with_onnx(dtype: DataType, count: int) -> None:
    """The onnx package reads what we pack."""
    array = every_code(dtype, count)
    proto = TensorProto(data_type=int(dtype), dims=[count], raw_data=pack(array, dtype))
    assert numpy_helper.to_array(proto).astype(np.float32).tolist() == array.astype(np.float32).tolist()


def test_the_first_int4_is_in_the_low_half() -> None:
    """0x21 holds 1, then 2; the high half of the last byte is padding."""
    assert unpack(b"\x21\xff", DataType.INT4, (3,)).astype(int).tolist() == [1, 2, -1]


def test_whole_byte_types_are_views() -> None:
    """No byte is copied for a type that memory holds as the file does."""
    data = np.arange(16, dtype=np.uint8)
    assert np.shares_memory(unpack(memoryview(data), DataType.FLOAT, (2, 2)), data)


def test_any_byte_but_zero_is_true() -> None:
    """A byte of 2 becomes a proper True, equal to 1."""
    assert unpack(b"\x00\x02\x01", DataType.BOOL, (3,)).view(np.uint8).tolist() == [0, 1, 1]


def test_a_transposed_array_is_packed_row_major() -> None:
    """The layout in memory does not show in the file."""
    array = np.arange(6, dtype=np.int32).reshape(2, 3).T
    assert unpack(pack(array, DataType.INT32), DataType.INT32, (3, 2)).tolist() == array.tolist()
