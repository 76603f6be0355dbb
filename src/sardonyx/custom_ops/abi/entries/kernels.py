"""What a kernel may ask about its node while it is made: names, types, attributes, constant inputs."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from sardonyx.custom_ops.abi.c_memory import allocate
from sardonyx.custom_ops.abi.entries.core import LOGGER
from sardonyx.custom_ops.abi.entries.memory import check_allocator, default_allocator
from sardonyx.custom_ops.abi.entry import INT32, POINTER, SIZE, Entry, entry
from sardonyx.custom_ops.abi.handles import find, keep
from sardonyx.custom_ops.abi.node_info import NodeInfo
from sardonyx.custom_ops.abi.strings import bytes_of, copy_text, read_text, write_int32, write_pointer, write_size
from sardonyx.custom_ops.abi.values import HostValue, make_info, make_value
from sardonyx.dtypes import Array, DataType
from sardonyx.errors import InvalidArgument
from sardonyx.ir import AttributeKind, TensorType

__all__ = ["ENTRIES", "info_of_type"]

ENTRIES: list[Entry] = []


@entry(ENTRIES, "KernelInfoGetAttribute_float", POINTER, POINTER, POINTER)
def _attribute_float(info: int | None, name: int | None, out: int | None) -> None:
    value = find(info, NodeInfo).attribute(read_text(name), AttributeKind.FLOAT)
    ctypes.c_float.from_address(_there(out)).value = value


@entry(ENTRIES, "KernelInfoGetAttribute_int64", POINTER, POINTER, POINTER)
def _attribute_int64(info: int | None, name: int | None, out: int | None) -> None:
    ctypes.c_int64.from_address(_there(out)).value = find(info, NodeInfo).attribute(read_text(name), AttributeKind.INT)


@entry(ENTRIES, "KernelInfoGetAttribute_string", POINTER, POINTER, POINTER, POINTER)
def _attribute_string(info: int | None, name: int | None, out: int | None, size: int | None) -> None:
    copy_text(find(info, NodeInfo).attribute(read_text(name), AttributeKind.STRING), out, size)


@entry(ENTRIES, "KernelInfoGetAttributeArray_float", POINTER, POINTER, POINTER, POINTER)
def _attribute_floats(info: int | None, name: int | None, out: int | None, size: int | None) -> None:
    values: Sequence[float] = find(info, NodeInfo).attribute(read_text(name), AttributeKind.FLOATS)
    _copy_numbers((ctypes.c_float * len(values))(*values), len(values), out, size)


@entry(ENTRIES, "KernelInfoGetAttributeArray_int64", POINTER, POINTER, POINTER, POINTER)
def _attribute_ints(info: int | None, name: int | None, out: int | None, size: int | None) -> None:
    values: Sequence[int] = find(info, NodeInfo).attribute(read_text(name), AttributeKind.INTS)
    _copy_numbers((ctypes.c_int64 * len(values))(*values), len(values), out, size)


@entry(ENTRIES, "KernelInfoGetAttributeArray_string", POINTER, POINTER, POINTER, POINTER, POINTER)
def _attribute_strings(info: int | None, name: int | None, allocator: int | None, out: int | None, size: int | None) -> None:
    texts: Sequence[str] = find(info, NodeInfo).attribute(read_text(name), AttributeKind.STRINGS)
    write_size(size, len(texts))
    if not out:
        return
    check_allocator(allocator)
    if not texts:
        write_pointer(out, 0)
        return
    block = allocate(8 * len(texts))
    for index, text in enumerate(texts):
        content = bytes_of(text) + b"\0"
        address = allocate(len(content))
        ctypes.memmove(address, content, len(content))
        write_pointer(block + 8 * index, address)
    write_pointer(out, block)


@entry(ENTRIES, "KernelInfoGetAttribute_tensor", POINTER, POINTER, POINTER, POINTER)
def _attribute_tensor(info: int | None, name: int | None, allocator: int | None, out: int | None) -> None:
    check_allocator(allocator)
    tensor = find(info, NodeInfo).attribute(read_text(name), AttributeKind.TENSOR)
    write_pointer(out, _value_of(tensor.numpy().copy(), tensor.dtype).address)


def _value_of(array: Array, dtype: DataType) -> HostValue:
    return make_value(array if array.flags.c_contiguous else array.copy(), dtype)


@entry(ENTRIES, "KernelInfo_GetInputCount", POINTER, POINTER)
def _get_input_count(info: int | None, out: int | None) -> None:
    write_size(out, len(find(info, NodeInfo).site.input_names))


@entry(ENTRIES, "KernelInfo_GetOutputCount", POINTER, POINTER)
def _get_output_count(info: int | None, out: int | None) -> None:
    write_size(out, len(find(info, NodeInfo).site.output_names))


@entry(ENTRIES, "KernelInfo_GetInputName", POINTER, SIZE, POINTER, POINTER)
def _get_input_name(info: int | None, index: int, out: int | None, size: int | None) -> None:
    names = find(info, NodeInfo).site.input_names
    copy_text(names[_place(index, len(names), "input")], out, size)


@entry(ENTRIES, "KernelInfo_GetOutputName", POINTER, SIZE, POINTER, POINTER)
def _get_output_name(info: int | None, index: int, out: int | None, size: int | None) -> None:
    names = find(info, NodeInfo).site.output_names
    copy_text(names[_place(index, len(names), "output")], out, size)


@entry(ENTRIES, "KernelInfo_GetInputTypeInfo", POINTER, SIZE, POINTER)
def _get_input_type_info(info: int | None, index: int, out: int | None) -> None:
    types = find(info, NodeInfo).site.input_types
    write_pointer(out, info_of_type(types[_place(index, len(types), "input")]).address)


@entry(ENTRIES, "KernelInfo_GetOutputTypeInfo", POINTER, SIZE, POINTER)
def _get_output_type_info(info: int | None, index: int, out: int | None) -> None:
    types = find(info, NodeInfo).site.output_types
    write_pointer(out, info_of_type(types[_place(index, len(types), "output")]).address)


def info_of_type(type: TensorType | None) -> HostValue:
    """Return a new type and shape as the library sees what is known; -1 is an unknown dimension."""
    dims = () if type is None or type.shape is None else type.shape
    names = ["" if isinstance(dim, int) or str(dim).startswith("?") else str(dim) for dim in dims]
    dtype = DataType.UNDEFINED if type is None else type.dtype
    info = make_info(dtype, [dim if isinstance(dim, int) else -1 for dim in dims], names)
    info.has_shape = type is not None and type.shape is not None
    return info


@entry(ENTRIES, "KernelInfo_GetNodeName", POINTER, POINTER, POINTER)
def _get_node_name(info: int | None, out: int | None, size: int | None) -> None:
    copy_text(find(info, NodeInfo).site.name, out, size)


@entry(ENTRIES, "KernelInfo_GetOperatorDomain", POINTER, POINTER, POINTER)
def _get_operator_domain(info: int | None, out: int | None, size: int | None) -> None:
    copy_text(find(info, NodeInfo).site.domain, out, size)


@entry(ENTRIES, "KernelInfo_GetOperatorType", POINTER, POINTER, POINTER)
def _get_operator_type(info: int | None, out: int | None, size: int | None) -> None:
    copy_text(find(info, NodeInfo).site.op_type, out, size)


@entry(ENTRIES, "KernelInfo_GetOperatorSinceVersion", POINTER, POINTER)
def _get_operator_since_version(info: int | None, out: int | None) -> None:
    write_int32(out, find(info, NodeInfo).since)


@entry(ENTRIES, "KernelInfo_GetLogger", POINTER, POINTER)
def _get_logger(info: int | None, out: int | None) -> None:
    find(info, NodeInfo)
    write_pointer(out, LOGGER)


@entry(ENTRIES, "KernelInfoGetConstantInput_tensor", POINTER, SIZE, POINTER, POINTER)
def _get_constant_input(info: int | None, index: int, is_constant: int | None, out: int | None) -> None:
    found = find(info, NodeInfo)
    _place(index, len(found.site.input_names), "input")
    value = found.constant(index)
    write_int32(is_constant, int(value is not None))
    write_pointer(out, 0 if value is None else value.address)


@entry(ENTRIES, "KernelInfoGetAllocator", POINTER, INT32, POINTER)
def _get_allocator(info: int | None, memory_type: int, out: int | None) -> None:
    find(info, NodeInfo)
    write_pointer(out, default_allocator())


@entry(ENTRIES, "CopyKernelInfo", POINTER, POINTER)
def _copy_kernel_info(info: int | None, out: int | None) -> None:
    write_pointer(out, keep(find(info, NodeInfo)))


def _copy_numbers(
    values: ctypes.Array[ctypes.c_float] | ctypes.Array[ctypes.c_int64], count: int, out: int | None, size: int | None
) -> None:
    """Give numbers by the protocol of two calls: without a buffer their number, with one the numbers."""
    given = ctypes.c_size_t.from_address(_there(size))
    room, given.value = given.value, count
    if not out:
        return
    if room < count:
        raise InvalidArgument(f"the buffer for {room} numbers is too small for {count}")
    ctypes.memmove(out, values, ctypes.sizeof(values))


def _there(out: int | None) -> int:
    if not out:
        raise InvalidArgument("the library gave NULL where a result is to be written")
    return out


def _place(index: int, count: int, what: str) -> int:
    if index >= count:
        raise InvalidArgument(f"the library asks for {what} {index} of a node that has {count}")
    return index
