"""Values, types and texts."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from support.ort_api import ask, call

from sardonyx.custom_ops.abi.entries.kernels import info_of_type
from sardonyx.custom_ops.abi.entries.memory import CPU_INFO, default_allocator
from sardonyx.custom_ops.abi.statuses import raise_status
from sardonyx.custom_ops.abi.values import find_value, make_value
from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument
from sardonyx.ir import TensorType

DIMS = (ctypes.c_int64 * 2)(2, 3)


def test_a_library_makes_tensors() -> None:
    """In new memory, or on its own, which must be large enough."""
    value = ask("CreateTensorAsOrtValue", default_allocator(), ctypes.byref(DIMS), 2, ctypes.c_int(1))
    assert find_value(value).shape == (2, 3)
    data = np.arange(6, dtype=np.float32)
    arguments = (CPU_INFO, data.ctypes.data, 24, ctypes.byref(DIMS), 2, ctypes.c_int(1))
    made = ask("CreateTensorWithDataAsOrtValue", *arguments)
    array = find_value(made).array
    assert array is not None
    assert array.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert ask("GetTensorSizeInBytes", made) == 24
    assert ask("GetTensorMemoryInfo", made) == CPU_INFO
    with pytest.raises(InvalidArgument, match="needs 24 bytes, the library gives 23"):
        ask("CreateTensorWithDataAsOrtValue", *arguments[:2], 23, *arguments[3:])
    call("ReleaseValue", made)
    with pytest.raises(InvalidArgument):
        ask("GetTensorSizeInBytes", made)


def test_an_element_is_found_by_its_place() -> None:
    """A place outside is refused."""
    array = np.arange(6, dtype=np.int64).reshape(2, 3)
    value, place = make_value(array).address, (ctypes.c_int64 * 2)(1, 2)
    assert ctypes.c_int64.from_address(ask("TensorAt", value, ctypes.byref(place), 2)).value == 5
    with pytest.raises(InvalidArgument, match="no place in a tensor"):
        ask("TensorAt", value, ctypes.byref(DIMS), 2)


def test_a_library_makes_types() -> None:
    """Element type, sizes and the names of unknown ones."""
    info = ask("CreateTensorTypeAndShapeInfo")
    raise_status(call("SetTensorElementType", info, ctypes.c_int(7)), "type")
    raise_status(call("SetDimensions", info, ctypes.byref((ctypes.c_int64 * 2)(-1, 3)), 2), "dims")
    names = (ctypes.c_char_p * 2)(b"n", None)
    raise_status(call("SetSymbolicDimensions", info, ctypes.byref(names), 2), "names")
    assert find_value(info).symbols == ("n", "")
    found = (ctypes.c_char_p * 2)()
    raise_status(call("GetSymbolicDimensions", info, ctypes.byref(found), 2), "names")
    assert list(found) == [b"n", b""]
    assert call("TensorTypeAndShape_HasShape", info, returns=ctypes.c_bool)
    with pytest.raises(InvalidArgument, match="unknown dimensions"):
        ask("GetTensorShapeElementCount", info)


def test_values_are_tensors() -> None:
    """By each of the questions that there are."""
    value = make_value(np.zeros((2, 3), np.float32)).address
    info = ask("GetTypeInfo", value)
    assert [ask(name, value, out=ctypes.c_int32) for name in ("IsTensor", "HasValue", "GetValueType")] == [1, 1, 1]
    assert ask("HasValue", None, out=ctypes.c_int32) == 0
    assert ask("GetOnnxTypeFromTypeInfo", info, out=ctypes.c_int32) == 1
    assert ask("CastTypeInfoToTensorInfo", info) == info
    kind, dims, count = ctypes.c_int32(), ctypes.c_uint64(), ctypes.c_uint64()
    name = "GetTensorElementTypeAndShapeDataReference"
    raise_status(call(name, value, ctypes.byref(kind), ctypes.byref(dims), ctypes.byref(count)), name)
    assert (kind.value, list((ctypes.c_int64 * count.value).from_address(dims.value))) == (1, [2, 3])


def test_texts_are_read() -> None:
    """All in one piece with offsets, or one by one."""
    value = make_value(np.array(["a", "", "üb"], object)).address
    length = ask("GetStringTensorDataLength", value)
    assert length == 4
    buffer, offsets = ctypes.create_string_buffer(4), (ctypes.c_size_t * 3)()
    raise_status(call("GetStringTensorContent", value, ctypes.byref(buffer), 4, ctypes.byref(offsets), 3), "content")
    assert (buffer.raw, list(offsets)) == ("aüb".encode(), [0, 1, 1])
    assert ask("GetStringTensorElementLength", value, 2) == 3
    raise_status(call("GetStringTensorElement", value, 3, 2, ctypes.byref(buffer)), "element")
    assert buffer.raw[:3] == "üb".encode()
    with pytest.raises(InvalidArgument, match="do not fit"):
        raise_status(call("GetStringTensorContent", value, ctypes.byref(buffer), 3, ctypes.byref(offsets), 3), "content")
    with pytest.raises(InvalidArgument, match="no element 3"):
        ask("GetStringTensorElementLength", value, 3)


def test_texts_are_written() -> None:
    """All at once, one by one, or into a buffer."""
    holder = make_value(np.array(["", ""], object))
    texts = (ctypes.c_char_p * 2)(b"a", "ü".encode())
    raise_status(call("FillStringTensor", holder.address, ctypes.byref(texts), 2), "fill")
    assert holder.array is not None
    assert holder.array.tolist() == ["a", "ü"]
    raise_status(call("FillStringTensorElement", holder.address, ctypes.c_char_p(b"c"), 1), "fill")
    buffer = ask("GetResizedStringTensorElementBuffer", holder.address, 0, 2)
    ctypes.memmove(buffer, b"xy", 2)
    assert [str(item) for item in holder.array] == ["xy", "c"]
    with pytest.raises(InvalidArgument, match="gives 1 texts for a tensor of 2"):
        raise_status(call("FillStringTensor", holder.address, ctypes.byref(texts), 1), "fill")


def test_memory_is_given_back_to_the_allocator_that_it_came_from() -> None:
    """A tensor on the library's memory that the runtime is to release has the elements; too little memory is an error."""
    data = ask("AllocatorAlloc", default_allocator(), 24)
    ctypes.memmove(data, np.arange(6, dtype=np.float32).ctypes.data, 24)
    arguments = (ctypes.byref(DIMS), 2, ctypes.c_int(1))
    with pytest.raises(InvalidArgument, match="needs 24 bytes, the library gives 20"):
        ask("CreateTensorWithDataAndDeleterAsOrtValue", default_allocator(), data, 20, *arguments)
    value = ask("CreateTensorWithDataAndDeleterAsOrtValue", default_allocator(), data, 24, *arguments)
    array = find_value(value).array
    assert array is not None
    assert array.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert ask("IsSparseTensor", value, out=ctypes.c_int32) == 0
    call("ReleaseValue", value)


def test_a_type_may_have_no_shape() -> None:
    """Of an input of unknown rank; dimensions that are set make one."""
    for kind, has_shape in ((None, False), (TensorType(DataType.FLOAT), False), (TensorType(DataType.FLOAT, ()), True)):
        assert call("TensorTypeAndShape_HasShape", info_of_type(kind).address, returns=ctypes.c_bool) is has_shape
    info = info_of_type(None).address
    raise_status(call("SetDimensions", info, ctypes.byref(DIMS), 2), "dims")
    assert call("TensorTypeAndShape_HasShape", info, returns=ctypes.c_bool)
