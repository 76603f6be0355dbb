"""Whether the process has memory at an address that a user gives, as far as the system tells without a fault."""

from __future__ import annotations

import ctypes
import errno
import functools
import mmap
import os

from sardonyx.errors import InvalidArgument

__all__ = ["require_memory"]

_MS_ASYNC = 1
"""Of <sys/mman.h>: nothing is written at once; on Linux and macOS."""
_BEYOND = 1 << 63
"""No system gives a process memory from this address on."""


class _Range(ctypes.Structure):
    """`struct iovec` of <sys/uio.h>."""

    _fields_ = (("start", ctypes.c_void_p), ("size_bytes", ctypes.c_size_t))


def require_memory(start: int, size_bytes: int, *, writes: bool) -> None:
    """Raise InvalidArgument where a range of one byte and more is no memory of the process, or cannot be read, or not be written.

    All pages are looked for; whether they may be read or written is asked of the first and the last byte, on Linux. Where the
    system has no such questions, as Windows, the range passes.

    Args:
        start: the address of the first byte.
        size_bytes: how many there are.
        writes: whether they are written; else they are read.
    """
    what = f"buffer_ptr is the address of {size_bytes} bytes"
    if start <= 0 or start + size_bytes > _BEYOND:
        raise InvalidArgument(f"{what}, got {start:#x}, where no memory can be")
    if os.name != "posix":
        return
    library = _library()
    skipped = start % mmap.PAGESIZE
    if library.msync(start - skipped, size_bytes + skipped, _MS_ASYNC) and ctypes.get_errno() == errno.ENOMEM:
        raise InvalidArgument(f"{what}, but the process has no memory from {start:#x} to {start + size_bytes:#x}")
    if not all(_is_open(library, address, writes) for address in {start, start + size_bytes - 1}):
        raise InvalidArgument(f"{what} at {start:#x}, which cannot be {'written' if writes else 'read'}")


@functools.cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(None, use_errno=True)
    library.msync.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    if hasattr(library, "process_vm_readv"):
        ranges, count = ctypes.POINTER(_Range), ctypes.c_ulong
        library.process_vm_readv.argtypes = (ctypes.c_int, ranges, count, ranges, count, count)
        library.process_vm_readv.restype = ctypes.c_ssize_t
    return library


def _is_open(library: ctypes.CDLL, address: int, writes: bool) -> bool:
    """Return whether a byte can be read, and written where `writes`; True where the system does not say.

    The system copies it: onto itself where it is to be written.
    """
    if not hasattr(library, "process_vm_readv"):
        return True
    own = ctypes.create_string_buffer(1)
    source = _Range(address, 1)
    target = _Range(address if writes else ctypes.addressof(own), 1)
    copied = library.process_vm_readv(os.getpid(), ctypes.byref(target), 1, ctypes.byref(source), 1, 0)
    return bool(copied == 1 or ctypes.get_errno() != errno.EFAULT)
