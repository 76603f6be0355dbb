"""Memory infos and allocators: all memory is the host's, from the C library's allocator."""

from __future__ import annotations

import ctypes
import dataclasses
import functools

from sardonyx.custom_ops.abi.c_memory import allocate, free
from sardonyx.custom_ops.abi.entry import INT32, POINTER, SIZE, UINT32, Entry, entry
from sardonyx.custom_ops.abi.handles import drop, find, keep
from sardonyx.custom_ops.abi.strings import bytes_of, read_text, write_int32, write_pointer
from sardonyx.errors import InvalidArgument, RuntimeException

__all__ = ["CPU_INFO", "ENTRIES", "allocator_functions", "check_allocator", "default_allocator"]

ENTRIES: list[Entry] = []
_VERSION = 18
"""The version of OrtAllocator up to which its functions are filled."""


@dataclasses.dataclass(frozen=True, slots=True)
class MemoryInfo:
    """An OrtMemoryInfo."""

    name: ctypes.Array[ctypes.c_char]
    """The kind of memory."""
    allocator_type: int
    """Its OrtAllocatorType."""
    device: int
    """The number of the device."""
    memory_type: int
    """Its OrtMemType."""
    vendor: int = 0
    """The number of the device's vendor; 0 for the host."""
    device_type: int = 0
    """Its OrtMemoryInfoDeviceType; 0 is the host."""
    access: int = 0
    """Its OrtDeviceMemoryType."""

    def same(self, other: MemoryInfo) -> bool:
        """Return whether both are the same memory."""
        return self._facts() == other._facts()

    def _facts(self) -> tuple[object, ...]:
        kinds = self.allocator_type, self.memory_type, self.device_type, self.access
        return (self.name.value, self.device, self.vendor, *kinds)


def _memory_info(name: str, allocator_type: int, device: int, memory_type: int) -> int:
    return keep(MemoryInfo(ctypes.create_string_buffer(bytes_of(name)), allocator_type, device, memory_type))


CPU_INFO = _memory_info("Cpu", 0, 0, 0)
"""The handle of the host's memory."""


class _Allocator(ctypes.Structure):
    """An OrtAllocator, whose functions a library may call by itself; those after Info are of later versions."""

    _fields_ = (
        ("version", ctypes.c_uint32),
        ("Alloc", POINTER),
        ("Free", POINTER),
        ("Info", POINTER),
        ("Reserve", POINTER),
        ("GetStats", POINTER),
        ("AllocOnStream", POINTER),
        ("Shrink", POINTER),
    )


_KEPT: list[object] = []


@functools.cache
def default_allocator() -> int:
    """Return the address of the one allocator, in memory that outlives Python, as libraries keep it."""
    make, give_back = ctypes.CFUNCTYPE(POINTER, POINTER, SIZE), ctypes.CFUNCTYPE(None, POINTER, POINTER)
    functions = make(_alloc), give_back(_free), ctypes.CFUNCTYPE(POINTER, POINTER)(_info)
    _KEPT.extend(functions)
    address = allocate(ctypes.sizeof(_Allocator))
    block = _Allocator.from_address(address)
    ctypes.memset(address, 0, ctypes.sizeof(_Allocator))
    block.version = _VERSION
    block.Alloc, block.Free, block.Info = (ctypes.cast(function, POINTER).value for function in functions)
    block.Reserve = block.Alloc
    return address


def allocator_functions() -> tuple[int, ...]:
    """Return the addresses of the words that hold the default allocator's functions."""
    first = default_allocator() + 8
    return tuple(range(first, first + 32, 8))


def _alloc(allocator: int | None, size: int) -> int | None:
    try:
        return allocate(size)
    except RuntimeException:
        return None


def _free(allocator: int | None, address: int | None) -> None:
    free(address)


def _info(allocator: int | None) -> int:
    return CPU_INFO


def check_allocator(allocator: int | None) -> None:
    """Raise InvalidArgument for what is no allocator of ours."""
    if allocator != default_allocator():
        raise InvalidArgument("the library gave an allocator of its own; expected one that it got from the runtime")


@entry(ENTRIES, "GetAllocatorWithDefaultOptions", POINTER)
def _get_allocator_with_default_options(out: int | None) -> None:
    write_pointer(out, default_allocator())


@entry(ENTRIES, "AllocatorAlloc", POINTER, SIZE, POINTER)
def _allocator_alloc(allocator: int | None, size: int, out: int | None) -> None:
    check_allocator(allocator)
    write_pointer(out, allocate(size))


@entry(ENTRIES, "AllocatorFree", POINTER, POINTER)
def _allocator_free(allocator: int | None, address: int | None) -> None:
    check_allocator(allocator)
    free(address)


@entry(ENTRIES, "AllocatorGetInfo", POINTER, POINTER)
def _allocator_get_info(allocator: int | None, out: int | None) -> None:
    check_allocator(allocator)
    write_pointer(out, CPU_INFO)


@entry(ENTRIES, "ReleaseAllocator", POINTER, returns=None)
def _release_allocator(allocator: int | None) -> None:
    return


@entry(ENTRIES, "CreateMemoryInfo", POINTER, INT32, INT32, INT32, POINTER)
def _create_memory_info(name: int | None, allocator_type: int, device: int, memory_type: int, out: int | None) -> None:
    write_pointer(out, _memory_info(read_text(name), allocator_type, device, memory_type))


@entry(ENTRIES, "CreateCpuMemoryInfo", INT32, INT32, POINTER)
def _create_cpu_memory_info(allocator_type: int, memory_type: int, out: int | None) -> None:
    write_pointer(out, _memory_info("Cpu", allocator_type, 0, memory_type))


@entry(ENTRIES, "CreateMemoryInfo_V2", POINTER, INT32, UINT32, INT32, INT32, SIZE, INT32, POINTER)
def _create_memory_info_of_vendor(
    name: int | None,
    device_type: int,
    vendor: int,
    device: int,
    access: int,
    alignment: int,
    allocator_type: int,
    out: int | None,
) -> None:
    text = ctypes.create_string_buffer(bytes_of(read_text(name)))
    write_pointer(out, keep(MemoryInfo(text, allocator_type, device, 0, vendor, device_type, access)))


@entry(ENTRIES, "CompareMemoryInfo", POINTER, POINTER, POINTER)
def _compare_memory_info(one: int | None, other: int | None, out: int | None) -> None:
    write_int32(out, 0 if find(one, MemoryInfo).same(find(other, MemoryInfo)) else -1)


@entry(ENTRIES, "MemoryInfoGetName", POINTER, POINTER)
def _memory_info_get_name(info: int | None, out: int | None) -> None:
    write_pointer(out, ctypes.addressof(find(info, MemoryInfo).name))


@entry(ENTRIES, "MemoryInfoGetId", POINTER, POINTER)
def _memory_info_get_id(info: int | None, out: int | None) -> None:
    write_int32(out, find(info, MemoryInfo).device)


@entry(ENTRIES, "MemoryInfoGetMemType", POINTER, POINTER)
def _memory_info_get_mem_type(info: int | None, out: int | None) -> None:
    write_int32(out, find(info, MemoryInfo).memory_type)


@entry(ENTRIES, "MemoryInfoGetType", POINTER, POINTER)
def _memory_info_get_type(info: int | None, out: int | None) -> None:
    write_int32(out, find(info, MemoryInfo).allocator_type)


@entry(ENTRIES, "MemoryInfoGetDeviceType", POINTER, POINTER, returns=None)
def _memory_info_get_device_type(info: int | None, out: int | None) -> None:
    write_int32(out, find(info, MemoryInfo).device_type)


@entry(ENTRIES, "MemoryInfoGetDeviceMemType", POINTER, returns=INT32)
def _memory_info_get_device_mem_type(info: int | None) -> int:
    return find(info, MemoryInfo).access


@entry(ENTRIES, "MemoryInfoGetVendorId", POINTER, returns=UINT32)
def _memory_info_get_vendor_id(info: int | None) -> int:
    return find(info, MemoryInfo).vendor


@entry(ENTRIES, "ReleaseMemoryInfo", POINTER, returns=None)
def _release_memory_info(info: int | None) -> None:
    if info != CPU_INFO:
        drop(info)
