"""Memory infos and allocators."""

from __future__ import annotations

import ctypes

import pytest
from support.ort_api import ask, call

from sardonyx.custom_ops.abi.entries.memory import CPU_INFO, allocator_functions, check_allocator, default_allocator
from sardonyx.custom_ops.abi.statuses import raise_status
from sardonyx.errors import InvalidArgument


def test_memory_is_given_and_taken_back() -> None:
    """By the table's functions, and by the allocator's own."""
    allocator = ask("GetAllocatorWithDefaultOptions")
    assert allocator == default_allocator()
    address = ask("AllocatorAlloc", allocator, 8)
    ctypes.memset(address, 0, 8)
    raise_status(call("AllocatorFree", allocator, address), "free")
    alloc, free, info, reserve = (ctypes.c_uint64.from_address(word).value for word in allocator_functions())
    assert alloc == reserve
    address = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)(alloc)(allocator, 8)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(free)(allocator, address)
    assert ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(info)(allocator) == CPU_INFO
    assert ask("AllocatorGetInfo", allocator) == CPU_INFO
    call("ReleaseAllocator", allocator)


def test_another_allocator_is_refused() -> None:
    """Memory comes from one allocator only."""
    with pytest.raises(InvalidArgument, match="an allocator of its own"):
        check_allocator(1234)


def test_memory_infos_are_compared_and_read() -> None:
    """Name, number, kind and type."""
    one = ask("CreateMemoryInfo", ctypes.c_char_p(b"Cpu"), ctypes.c_int(0), ctypes.c_int(0), ctypes.c_int(0))
    other = ask("CreateCpuMemoryInfo", ctypes.c_int(1), ctypes.c_int(0))
    assert ask("CompareMemoryInfo", one, CPU_INFO, out=ctypes.c_int32) == 0
    assert ask("CompareMemoryInfo", one, other, out=ctypes.c_int32) == -1
    assert ctypes.string_at(ask("MemoryInfoGetName", one)) == b"Cpu"
    assert [ask(f"MemoryInfoGet{what}", other, out=ctypes.c_int32) for what in ("Id", "MemType", "Type")] == [0, 0, 1]
    device = ctypes.c_int32(9)
    call("MemoryInfoGetDeviceType", one, ctypes.byref(device))
    assert device.value == 0
    call("ReleaseMemoryInfo", one)
    call("ReleaseMemoryInfo", CPU_INFO)
    assert ctypes.string_at(ask("MemoryInfoGetName", CPU_INFO)) == b"Cpu"


def test_memory_infos_of_a_vendor_are_read() -> None:
    """The second form has the vendor, the kind of device and who may read its memory."""
    numbers = [ctypes.c_int(value) for value in (1, 0x10DE, 2, 5)]
    info = ask("CreateMemoryInfo_V2", ctypes.c_char_p(b"Device"), *numbers, 0, ctypes.c_int(0))
    assert ask("MemoryInfoGetId", info, out=ctypes.c_int32) == 2
    assert call("MemoryInfoGetVendorId", info, returns=ctypes.c_uint32) == 0x10DE
    assert call("MemoryInfoGetDeviceMemType", info, returns=ctypes.c_int32) == 5
    device = ctypes.c_int32(9)
    call("MemoryInfoGetDeviceType", info, ctypes.byref(device))
    assert device.value == 1
    assert ask("CompareMemoryInfo", info, CPU_INFO, out=ctypes.c_int32) == -1
    call("ReleaseMemoryInfo", info)
