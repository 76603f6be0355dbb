"""What a kernel may ask while it computes; inputs and outputs are asked for by the library in C too."""

from __future__ import annotations

import ctypes
import threading

import pytest
from support.ort_api import ask, call

from sardonyx.custom_ops.abi.entries.memory import CPU_INFO, default_allocator
from sardonyx.custom_ops.abi.frame import Frame
from sardonyx.custom_ops.abi.statuses import raise_status
from sardonyx.dtypes import DataType
from sardonyx.errors import Fail, InvalidArgument

FRAME = Frame([], [], [], lambda index, types: DataType.FLOAT, [])
TASK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t)


@pytest.mark.parametrize(("total", "batches"), [(0, 0), (1, 0), (7, 1), (7, 3), (100, 0)])
def test_a_parallel_loop_calls_each_once(total: int, batches: int) -> None:
    """For any number of batches; 0 leaves it to the runtime."""
    seen: list[int] = []
    lock = threading.Lock()

    def note(data: int | None, index: int) -> None:
        with lock:
            seen.append(index)

    raise_status(call("KernelContext_ParallelFor", FRAME.address, TASK(note), total, batches, None), "loop")
    assert sorted(seen) == list(range(total))


def test_a_loop_without_function_is_refused() -> None:
    """NULL cannot be called."""
    with pytest.raises(InvalidArgument, match="NULL for the function"):
        raise_status(call("KernelContext_ParallelFor", FRAME.address, None, 3, 0, None), "loop")


def test_scratch_memory_is_aligned() -> None:
    """It lives until the end of the run."""
    address = ask("KernelContext_GetScratchBuffer", FRAME.address, CPU_INFO, 100)
    assert address % 64 == 0
    ctypes.memset(address, 0, 100)
    assert FRAME.keeps


def test_there_is_no_device() -> None:
    """No stream, and a resource is an error."""
    assert ask("KernelContext_GetGPUComputeStream", FRAME.address) == 0
    assert ask("KernelContext_GetSyncStream", FRAME.address) == 0
    with pytest.raises(Fail, match="resource 3 of a device"):
        ask("KernelContext_GetResource", FRAME.address, ctypes.c_int(1), ctypes.c_int(3))


def test_a_kernel_has_allocator_and_logger() -> None:
    """Those of all."""
    assert ask("KernelContext_GetAllocator", FRAME.address, CPU_INFO) == default_allocator()
    assert ask("KernelContext_GetLogger", FRAME.address)


def test_another_context_is_refused() -> None:
    """Such as one of a call that is over."""
    with pytest.raises(InvalidArgument, match="kernel context"):
        ask("KernelContext_GetLogger", 0x1234)
