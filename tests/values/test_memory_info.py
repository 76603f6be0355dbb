"""Descriptions of memory and allocators."""

from __future__ import annotations

import pytest

import sardonyx as ort
from sardonyx.values.memory_info import ArenaExtendStrategy, registered_allocators


def test_memory_of_a_known_name_is_described() -> None:
    """The properties are onnxruntime's."""
    info = ort.OrtMemoryInfo("Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT)
    found = (info.name, info.allocator_type, info.device_id, info.mem_type, info.device_mem_type, info.device_vendor_id)
    assert found == ("Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT, ort.OrtDeviceMemoryType.DEFAULT, 0)


def test_an_unknown_name_needs_the_second_form() -> None:
    """The message says so; the second form takes any name."""
    with pytest.raises(ort.InvalidArgument, match="Specified device is not supported: 'Foo'.*create_v2"):
        ort.OrtMemoryInfo("Foo", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT)
    kind, memory = ort.OrtMemoryInfoDeviceType.GPU, ort.OrtDeviceMemoryType.HOST_ACCESSIBLE
    info = ort.OrtMemoryInfo.create_v2("Foo", kind, 7, 1, memory, 64, ort.OrtAllocatorType.ORT_DEVICE_ALLOCATOR)
    assert (info.device_vendor_id, info.device_id, info.mem_type) == (7, 1, ort.OrtMemType.CPU_OUTPUT)
    assert not info.is_cpu


def test_an_alignment_is_a_power_of_two() -> None:
    """Anything else is refused."""
    kind, memory = ort.OrtMemoryInfoDeviceType.CPU, ort.OrtDeviceMemoryType.DEFAULT
    with pytest.raises(ort.InvalidArgument, match="power of two"):
        ort.OrtMemoryInfo.create_v2("Foo", kind, 0, 0, memory, 48, ort.OrtAllocatorType.ORT_DEVICE_ALLOCATOR)


def test_sizes_of_an_arena_come_in_two_forms() -> None:
    """Four integers, or a dictionary of names."""
    four = ort.OrtArenaCfg(8, 0, -1, -1)
    named = ort.OrtArenaCfg({"max_mem": 8, "arena_extend_strategy": ArenaExtendStrategy.kNextPowerOfTwo})
    assert vars(four) == vars(named)


@pytest.mark.parametrize("arguments", [({"x": 1},), (1, 2), ()])
def test_other_sizes_are_refused(arguments: tuple[int, ...]) -> None:
    """By name."""
    with pytest.raises(ort.InvalidArgument, match="OrtArenaCfg"):
        ort.OrtArenaCfg(*arguments)


def test_an_allocator_is_registered_for_the_host_only() -> None:
    """It is kept with its sizes."""
    info = ort.OrtMemoryInfo("Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT)
    ort.create_and_register_allocator(info, ort.OrtArenaCfg({"max_mem": 4096}))
    assert registered_allocators()["CPUExecutionProvider", info].max_mem == 4096
    other = ort.OrtMemoryInfo("Cuda", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT)
    with pytest.raises(ort.InvalidArgument, match="CPUExecutionProvider and the host's memory"):
        ort.create_and_register_allocator(other, None)
