"""OrtApiBase and OrtApi: the table of functions that a library is given.

The table lies in memory that is never given back, and when Python ends every function in it is exchanged for one of the C library
that does nothing: libraries call ReleaseCustomOpDomain and the like from static destructors, after Python is gone.
"""

from __future__ import annotations

import atexit
import ctypes
import dataclasses
import functools
from collections.abc import Iterable
from typing import Any

from sardonyx.custom_ops.abi.c_memory import allocate, fallback_table, idle_function
from sardonyx.custom_ops.abi.chain import RunChain
from sardonyx.custom_ops.abi.entries import containers, context, core, kernels, memory, operators, pairs, sessions, tensors
from sardonyx.custom_ops.abi.entry import POINTER, Entry, make_callback, unfilled
from sardonyx.custom_ops.abi.names import API_VERSION, FUNCTIONS, INDEX, NO_STATUS
from sardonyx.custom_ops.abi.native import FALLBACKS, native_functions

__all__ = ["Api", "filled_functions", "shared_api"]

_ROOM = 512
"""How many entries the table has; those beyond the known ones say that they are not there."""
_VERSION_TEXT = ctypes.create_string_buffer(f"1.{API_VERSION}.0".encode())


@dataclasses.dataclass(frozen=True, slots=True)
class Api:
    """The table of one process."""

    base: int
    """The address of OrtApiBase."""
    api: int
    """The address of OrtApi."""
    run: RunChain
    """What runs the kernels of a chain."""
    keeps: tuple[object, ...]
    """What must live as long: callbacks, the engine of native functions."""


def filled_functions() -> dict[str, Entry]:
    """Return every function that is filled, by name."""
    modules = (core, memory, tensors, containers, kernels, context, operators, pairs, sessions)
    return {item.name: item for module in modules for item in module.ENTRIES}


@functools.cache
def shared_api() -> Api:
    """Return the table of this process, made by the first call."""
    entries = filled_functions()
    callbacks = {name: make_callback(item) for name, item in entries.items()}
    missing = {name: unfilled(name, returns_status=name not in NO_STATUS) for name in FUNCTIONS if name not in callbacks}
    beyond = unfilled(f"an entry beyond the {len(FUNCTIONS)} that are known", returns_status=True)
    for index, name in enumerate(FALLBACKS):
        ctypes.c_uint64.from_address(fallback_table() + 8 * index).value = _address(callbacks[name])
    engine, natives, run = native_functions()
    functions = [_address(callbacks.get(name) or missing[name]) for name in FUNCTIONS]
    for name, address in natives.items():
        functions[INDEX[name]] = address
    api = _permanent([*functions, *[_address(beyond)] * (_ROOM - len(functions))])
    get_api = ctypes.CFUNCTYPE(POINTER, ctypes.c_uint32)(functools.partial(_get_api, api))
    get_version = ctypes.CFUNCTYPE(POINTER)(lambda: ctypes.addressof(_VERSION_TEXT))
    base = _permanent([_address(get_api), _address(get_version)])
    words = (*range(api, api + 8 * _ROOM, 8), base, base + 8, *_fallback_words(), *memory.allocator_functions())
    atexit.register(_disarm, words)
    return Api(base, api, run, (callbacks, missing, beyond, get_api, get_version, engine))


def _fallback_words() -> range:
    first = fallback_table()
    return range(first, first + 8 * len(FALLBACKS), 8)


def _get_api(api: int, version: int) -> int | None:
    return api if 1 <= version <= API_VERSION else None


def _permanent(addresses: list[int]) -> int:
    """Return the address of a copy of `addresses` that is never given back."""
    block = allocate(8 * len(addresses))
    ctypes.memmove(block, (ctypes.c_uint64 * len(addresses))(*addresses), 8 * len(addresses))
    return block


def _address(function: Any) -> int:
    return ctypes.cast(function, POINTER).value or 0


def _disarm(words: Iterable[int]) -> None:
    """Exchange functions that need Python for one that returns 0, a status of success, and needs nothing."""
    idle = idle_function()
    for word in words:
        ctypes.c_uint64.from_address(word).value = idle
