"""Values, their types and shapes, and tensors of strings."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np

from sardonyx.custom_ops.abi.c_memory import free
from sardonyx.custom_ops.abi.entries.memory import CPU_INFO, check_allocator
from sardonyx.custom_ops.abi.entry import INT32, POINTER, SIZE, Entry, entry
from sardonyx.custom_ops.abi.strings import bytes_of, read_text, text_of, write_int32, write_pointer, write_size
from sardonyx.custom_ops.abi.values import HostValue, find_value, make_info, make_value, new_array, release_value
from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument

__all__ = ["ENTRIES"]

ENTRIES: list[Entry] = []
_TENSOR = 1


@entry(ENTRIES, "GetTensorTypeAndShape", POINTER, POINTER)
def _get_tensor_type_and_shape(value: int | None, out: int | None) -> None:
    found = find_value(value)
    write_pointer(out, make_info(found.dtype, found.shape).address)


@entry(ENTRIES, "GetTensorElementType", POINTER, POINTER)
def _get_tensor_element_type(info: int | None, out: int | None) -> None:
    write_int32(out, int(find_value(info).dtype))


@entry(ENTRIES, "GetDimensionsCount", POINTER, POINTER)
def _get_dimensions_count(info: int | None, out: int | None) -> None:
    write_size(out, len(find_value(info).shape))


@entry(ENTRIES, "GetDimensions", POINTER, POINTER, SIZE)
def _get_dimensions(info: int | None, out: int | None, count: int) -> None:
    shape = find_value(info).shape[:count]
    if shape:
        ctypes.memmove(out or 0, (ctypes.c_int64 * len(shape))(*shape), 8 * len(shape))


@entry(ENTRIES, "GetSymbolicDimensions", POINTER, POINTER, SIZE)
def _get_symbolic_dimensions(info: int | None, out: int | None, count: int) -> None:
    found = find_value(info)
    names = found.symbols or ("",) * len(found.shape)
    found.keeps = [ctypes.create_string_buffer(bytes_of(name)) for name in names]
    for index, buffer in enumerate(found.keeps[:count]):
        write_pointer((out or 0) + 8 * index, ctypes.addressof(buffer))


@entry(ENTRIES, "GetTensorShapeElementCount", POINTER, POINTER)
def _get_tensor_shape_element_count(info: int | None, out: int | None) -> None:
    shape = find_value(info).shape
    if any(size < 0 for size in shape):
        raise InvalidArgument(f"a shape with unknown dimensions, {list(shape)}, has no number of elements")
    write_size(out, math.prod(shape))


@entry(ENTRIES, "TensorTypeAndShape_HasShape", POINTER, returns=ctypes.c_bool)
def _tensor_type_and_shape_has_shape(info: int | None) -> bool:
    return find_value(info).has_shape


@entry(ENTRIES, "CreateTensorTypeAndShapeInfo", POINTER)
def _create_tensor_type_and_shape_info(out: int | None) -> None:
    write_pointer(out, make_info(DataType.UNDEFINED, ()).address)


@entry(ENTRIES, "SetTensorElementType", POINTER, INT32)
def _set_tensor_element_type(info: int | None, dtype: int) -> None:
    found = find_value(info)
    found.set_type(DataType(dtype), found.shape)


@entry(ENTRIES, "SetDimensions", POINTER, POINTER, SIZE)
def _set_dimensions(info: int | None, dims: int | None, count: int) -> None:
    found = find_value(info)
    found.set_type(found.dtype, _sizes(dims, count))
    found.has_shape = True
    found.symbols = ("",) * count


@entry(ENTRIES, "SetSymbolicDimensions", POINTER, POINTER, SIZE)
def _set_symbolic_dimensions(info: int | None, names: int | None, count: int) -> None:
    found = find_value(info)
    texts = [read_text(address) if address else "" for address in _pointers(names, count)]
    if len(found.shape) != count:
        found.set_type(found.dtype, (-1,) * count)
    found.symbols = tuple(texts)


@entry(ENTRIES, "GetTypeInfo", POINTER, POINTER)
def _get_type_info(value: int | None, out: int | None) -> None:
    _get_tensor_type_and_shape(value, out)


@entry(ENTRIES, "CastTypeInfoToTensorInfo", POINTER, POINTER)
def _cast_type_info_to_tensor_info(info: int | None, out: int | None) -> None:
    write_pointer(out, find_value(info).address)


@entry(ENTRIES, "GetOnnxTypeFromTypeInfo", POINTER, POINTER)
def _get_onnx_type_from_type_info(info: int | None, out: int | None) -> None:
    find_value(info)
    write_int32(out, _TENSOR)


@entry(ENTRIES, "HasValue", POINTER, POINTER)
def _has_value(value: int | None, out: int | None) -> None:
    write_int32(out, int(bool(value) and find_value(value).content is not None))


def _get_data(value: int | None, out: int | None) -> None:
    found = find_value(value)
    if found.dtype is DataType.STRING:
        raise InvalidArgument("a tensor of strings has no address; use GetStringTensorContent and FillStringTensor")
    write_pointer(out, _held(found).ctypes.data)


entry(ENTRIES, "GetTensorMutableData", POINTER, POINTER)(_get_data)
entry(ENTRIES, "GetTensorData", POINTER, POINTER)(_get_data)


@entry(ENTRIES, "TensorAt", POINTER, POINTER, SIZE, POINTER)
def _tensor_at(value: int | None, place: int | None, count: int, out: int | None) -> None:
    found = find_value(value)
    indices = _sizes(place, count)
    if len(indices) != len(found.shape) or any(not 0 <= at < size for at, size in zip(indices, found.shape, strict=True)):
        raise InvalidArgument(f"{list(indices)} is no place in a tensor of shape {list(found.shape)}")
    array = _held(found)
    write_pointer(out, array.ctypes.data + int(np.dot(indices, array.strides)))


@entry(ENTRIES, "GetTensorSizeInBytes", POINTER, POINTER)
def _get_tensor_size_in_bytes(value: int | None, out: int | None) -> None:
    found = find_value(value)
    if found.dtype is DataType.STRING:
        raise InvalidArgument("a tensor of strings has no size in bytes; use GetStringTensorDataLength")
    write_size(out, _held(found).nbytes)


@entry(ENTRIES, "GetTensorMemoryInfo", POINTER, POINTER)
def _get_tensor_memory_info(value: int | None, out: int | None) -> None:
    find_value(value)
    write_pointer(out, CPU_INFO)


@entry(ENTRIES, "GetTensorElementTypeAndShapeDataReference", POINTER, POINTER, POINTER, POINTER)
def _get_tensor_element_type_and_shape(value: int | None, dtype: int | None, dims: int | None, count: int | None) -> None:
    found = find_value(value)
    write_int32(dtype, int(found.dtype))
    write_pointer(dims, found.words[4])
    write_size(count, len(found.shape))


@entry(ENTRIES, "CreateTensorAsOrtValue", POINTER, POINTER, SIZE, INT32, POINTER)
def _create_tensor(allocator: int | None, dims: int | None, count: int, dtype: int, out: int | None) -> None:
    check_allocator(allocator)
    kind = DataType(dtype)
    write_pointer(out, make_value(new_array(kind, _sizes(dims, count)), kind).address)


@entry(ENTRIES, "CreateTensorWithDataAsOrtValue", POINTER, POINTER, SIZE, POINTER, SIZE, INT32, POINTER)
def _create_tensor_with_data(
    memory: int | None, data: int | None, size: int, dims: int | None, count: int, dtype: int, out: int | None
) -> None:
    kind, shape = DataType(dtype), _sizes(dims, count)
    if kind is DataType.STRING:
        raise InvalidArgument("a tensor of strings cannot be made on the library's memory; use CreateTensorAsOrtValue")
    needed = new_array(kind, (0,)).itemsize * math.prod(shape)
    if any(number < 0 for number in shape) or needed > size:
        raise InvalidArgument(f"a tensor of {kind}{list(shape)} needs {needed} bytes, the library gives {size}")
    block: Any = (ctypes.c_uint8 * needed).from_address(data or 0) if needed else bytearray()
    array = np.frombuffer(block, kind.numpy).reshape(shape)
    write_pointer(out, make_value(array, kind).address)


@entry(ENTRIES, "CreateTensorWithDataAndDeleterAsOrtValue", POINTER, POINTER, SIZE, POINTER, SIZE, INT32, POINTER)
def _create_tensor_with_deleter(
    deleter: int | None, data: int | None, size: int, dims: int | None, count: int, dtype: int, out: int | None
) -> None:
    """Make a tensor on memory that goes back to its allocator: copied, the memory given back at once."""
    check_allocator(deleter)
    kind, shape = DataType(dtype), _sizes(dims, count)
    array = new_array(kind, shape)
    if kind is DataType.STRING or array.nbytes > size or (array.nbytes and not data):
        raise InvalidArgument(f"a tensor of {kind}{list(shape)} needs {array.nbytes} bytes, the library gives {size}")
    ctypes.memmove(array.ctypes.data, data or 0, array.nbytes)
    write_pointer(out, make_value(array, kind).address)
    free(data)


@entry(ENTRIES, "IsSparseTensor", POINTER, POINTER)
def _is_sparse_tensor(value: int | None, out: int | None) -> None:
    find_value(value)
    write_int32(out, 0)


def _release(address: int | None) -> None:
    release_value(address)


for _name in ("Value", "TypeInfo", "TensorTypeAndShapeInfo"):
    entry(ENTRIES, f"Release{_name}", POINTER, returns=None)(_release)


# Strings


@entry(ENTRIES, "FillStringTensor", POINTER, POINTER, SIZE)
def _fill_string_tensor(value: int | None, texts: int | None, count: int) -> None:
    found = find_value(value).writable_texts()
    if count != len(found):
        raise InvalidArgument(f"the library gives {count} texts for a tensor of {len(found)}")
    for index, address in enumerate(_pointers(texts, count)):
        found[index] = read_text(address)


@entry(ENTRIES, "FillStringTensorElement", POINTER, POINTER, SIZE)
def _fill_string_tensor_element(value: int | None, text: int | None, index: int) -> None:
    found = find_value(value).writable_texts()
    found[_index(index, len(found))] = read_text(text)


@entry(ENTRIES, "GetStringTensorDataLength", POINTER, POINTER)
def _get_string_tensor_data_length(value: int | None, out: int | None) -> None:
    write_size(out, sum(map(len, find_value(value).texts())))


@entry(ENTRIES, "GetStringTensorContent", POINTER, POINTER, SIZE, POINTER, SIZE)
def _get_string_tensor_content(value: int | None, out: int | None, size: int, offsets: int | None, count: int) -> None:
    texts = find_value(value).texts()
    content = b"".join(texts)
    if size < len(content) or count < len(texts):
        raise InvalidArgument(f"{len(texts)} texts of {len(content)} bytes do not fit {size} bytes and {count} offsets")
    ctypes.memmove(out or 0, content, len(content))
    begin = 0
    for index, text in enumerate(texts):
        write_size((offsets or 0) + 8 * index, begin)
        begin += len(text)


@entry(ENTRIES, "GetStringTensorElementLength", POINTER, SIZE, POINTER)
def _get_string_tensor_element_length(value: int | None, index: int, out: int | None) -> None:
    texts = find_value(value).texts()
    write_size(out, len(texts[_index(index, len(texts))]))


@entry(ENTRIES, "GetStringTensorElement", POINTER, SIZE, SIZE, POINTER)
def _get_string_tensor_element(value: int | None, size: int, index: int, out: int | None) -> None:
    texts = find_value(value).texts()
    text = texts[_index(index, len(texts))]
    if size < len(text):
        raise InvalidArgument(f"the buffer of {size} bytes is too small for a text of {len(text)}")
    ctypes.memmove(out or 0, text, len(text))


@entry(ENTRIES, "GetResizedStringTensorElementBuffer", POINTER, SIZE, SIZE, POINTER)
def _get_resized_string_tensor_element_buffer(value: int | None, index: int, size: int, out: int | None) -> None:
    holder = find_value(value)
    found = holder.writable_texts()
    buffer = ctypes.create_string_buffer(size + 1)
    found[_index(index, len(found))] = _Pending(buffer, size)
    write_pointer(out, ctypes.addressof(buffer))


class _Pending:
    """A text that the library writes into a buffer of ours after the call that asked for it."""

    def __init__(self, buffer: Any, size: int) -> None:
        self._buffer, self._size = buffer, size

    def __str__(self) -> str:
        return text_of(self._buffer.raw[: self._size])


def _sizes(address: int | None, count: int) -> tuple[int, ...]:
    return tuple((ctypes.c_int64 * count).from_address(address)) if address and count else ()


def _pointers(address: int | None, count: int) -> tuple[int, ...]:
    if count and not address:
        raise InvalidArgument("the library gave NULL where a list of texts is expected")
    return tuple((ctypes.c_uint64 * count).from_address(address or 0)) if count else ()


def _index(index: int, count: int) -> int:
    if index >= count:
        raise InvalidArgument(f"there is no element {index} in a tensor of {count}")
    return index


def _held(value: HostValue) -> Any:
    if value.array is None:
        raise InvalidArgument("the library asks for the elements of what is a type, or a value that is left out")
    return value.array
