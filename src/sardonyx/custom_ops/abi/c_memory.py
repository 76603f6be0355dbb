"""Memory of the C library, which outlives Python, and what is left in the place of functions when Python is gone."""

from __future__ import annotations

import ctypes
import functools
import sys

from sardonyx.errors import RuntimeException

__all__ = ["FALLBACK_COUNT", "allocate", "fallback_table", "free", "idle_function"]

POINTER, SIZE = ctypes.c_void_p, ctypes.c_size_t
FALLBACK_COUNT = 8
"""How many functions the table of fallbacks has room for."""


@functools.cache
def _c_library() -> ctypes.CDLL:
    library = ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None)
    library.malloc.restype, library.malloc.argtypes = POINTER, (SIZE,)
    library.free.restype, library.free.argtypes = None, (POINTER,)
    return library


def idle_function() -> int:
    """Return the address of a function of the C library that does nothing to speak of, whatever it is given, and returns 0."""
    name = "_fcloseall" if sys.platform == "win32" else "sched_yield"
    return ctypes.cast(getattr(_c_library(), name), POINTER).value or 0


def allocate(size_bytes: int) -> int:
    """Return the address of new memory; raises RuntimeException where there is none."""
    address = _c_library().malloc(max(size_bytes, 1))
    if not address:
        raise RuntimeException(f"there is no memory for the {size_bytes} bytes that the library asks for")
    return int(address)


def free(address: int | None) -> None:
    """Give back what `allocate` returned; NULL is passed over."""
    _c_library().free(address)


@functools.cache
def fallback_table() -> int:
    """Return the address of the functions in Python that native ones call; `table` fills it in."""
    address = allocate(8 * FALLBACK_COUNT)
    ctypes.memset(address, 0, 8 * FALLBACK_COUNT)
    return address
