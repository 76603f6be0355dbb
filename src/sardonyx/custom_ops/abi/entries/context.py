"""What a kernel may ask while it computes: inputs, outputs, scratch memory, and loops in parallel."""

from __future__ import annotations

import ctypes
import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from sardonyx.custom_ops.abi.cpp_exceptions import protect
from sardonyx.custom_ops.abi.entries.core import LOGGER
from sardonyx.custom_ops.abi.entries.memory import default_allocator
from sardonyx.custom_ops.abi.entry import INT32, POINTER, SIZE, Entry, entry
from sardonyx.custom_ops.abi.frame import find_frame
from sardonyx.custom_ops.abi.strings import write_pointer, write_size
from sardonyx.custom_ops.abi.values import PRESENT
from sardonyx.errors import Fail, InvalidArgument
from sardonyx.forks import without_fork

__all__ = ["ENTRIES"]

ENTRIES: list[Entry] = []
_MOST_THREADS = 16
_ALIGNMENT = 64


@entry(ENTRIES, "KernelContext_GetInputCount", POINTER, POINTER)
def _get_input_count(context: int | None, out: int | None) -> None:
    write_size(out, len(find_frame(context).inputs))


@entry(ENTRIES, "KernelContext_GetOutputCount", POINTER, POINTER)
def _get_output_count(context: int | None, out: int | None) -> None:
    write_size(out, len(find_frame(context).outputs))


@entry(ENTRIES, "KernelContext_GetInput", POINTER, SIZE, POINTER)
def _get_input(context: int | None, index: int, out: int | None) -> None:
    values = find_frame(context).inputs
    if index >= len(values):
        raise InvalidArgument(f"the library asks for input {index} of a node that has {len(values)}")
    value = values[index]
    write_pointer(out, value.address if value is not None and value.words[PRESENT] else 0)


@entry(ENTRIES, "KernelContext_GetOutput", POINTER, SIZE, POINTER, SIZE, POINTER)
def _get_output(context: int | None, index: int, dims: int | None, count: int, out: int | None) -> None:
    if count and not dims:
        raise InvalidArgument(f"the library gave NULL for the {count} dimensions of output {index}")
    shape = tuple((ctypes.c_int64 * count).from_address(dims)) if dims else ()
    value = find_frame(context).output(index, shape)
    write_pointer(out, 0 if value is None else value.address)


@entry(ENTRIES, "KernelContext_GetLogger", POINTER, POINTER)
def _get_logger(context: int | None, out: int | None) -> None:
    find_frame(context)
    write_pointer(out, LOGGER)


@entry(ENTRIES, "KernelContext_GetAllocator", POINTER, POINTER, POINTER)
def _get_allocator(context: int | None, memory: int | None, out: int | None) -> None:
    find_frame(context)
    write_pointer(out, default_allocator())


@entry(ENTRIES, "KernelContext_GetScratchBuffer", POINTER, POINTER, SIZE, POINTER)
def _get_scratch_buffer(context: int | None, memory: int | None, size: int, out: int | None) -> None:
    frame = find_frame(context)
    buffer = (ctypes.c_uint8 * (size + _ALIGNMENT))()
    frame.keep(buffer)
    address = ctypes.addressof(buffer)
    write_pointer(out, address + -address % _ALIGNMENT)


@entry(ENTRIES, "KernelContext_GetGPUComputeStream", POINTER, POINTER)
def _get_gpu_compute_stream(context: int | None, out: int | None) -> None:
    find_frame(context)
    write_pointer(out, 0)


@entry(ENTRIES, "KernelContext_GetSyncStream", POINTER, POINTER)
def _get_sync_stream(context: int | None, out: int | None) -> None:
    find_frame(context)
    write_pointer(out, 0)


@entry(ENTRIES, "KernelContext_GetResource", POINTER, INT32, INT32, POINTER)
def _get_resource(context: int | None, version: int, number: int, out: int | None) -> None:
    find_frame(context)
    write_pointer(out, 0)
    raise Fail(f"the library asks for resource {number} of a device; the kernel runs on the host, which has none")


@entry(ENTRIES, "KernelContext_ParallelFor", POINTER, POINTER, SIZE, SIZE, POINTER)
def _parallel_for(context: int | None, function: int | None, total: int, batches: int, data: int | None) -> None:
    find_frame(context)
    if not function:
        raise InvalidArgument("the library gave NULL for the function of a parallel loop")
    call = protect(function, None, (POINTER, SIZE), "the function of a parallel loop")
    threads = min(total, batches or total, _MOST_THREADS)
    if threads <= 1:
        _call_range(call, data, 0, total)
        return
    bounds = [total * part // threads for part in range(threads + 1)]
    with without_fork():
        pool = ThreadPoolExecutor(threads)
    with pool:
        parts = [pool.submit(_call_range, call, data, first, last) for first, last in itertools.pairwise(bounds)]
    for part in parts:
        part.result()


def _call_range(call: Any, data: int | None, first: int, last: int) -> None:
    for index in range(first, last):
        call(data, index)
