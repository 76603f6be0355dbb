"""Leave to use AMX: the tiles' 8 KiB of state belong to a process on Linux once it has asked for them.

    arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA)

What is granted holds for all threads and for children that are forked, and cannot be given back. It is refused by systems that know
no AMX, by filters of system calls, and where a thread has a stack for signals that is too small: tiles are then not there.

Source: the Linux kernel's documentation, "Using XSTATE features in user space applications".
"""

from __future__ import annotations

import ctypes
import functools
import platform
import sys

__all__ = ["tiles_are_permitted"]

_SYS_ARCH_PRCTL = 158
_REQUEST = 0x1023
_TILE_DATA = 18


@functools.cache
def tiles_are_permitted() -> bool:
    """Ask the system for the tile registers, and return whether it granted them; False on other systems than Linux on x86-64."""
    if sys.platform != "linux" or platform.machine() != "x86_64" or sys.maxsize < 1 << 32:
        return False
    syscall = ctypes.CDLL(None).syscall
    syscall.restype = ctypes.c_long
    return bool(syscall(ctypes.c_long(_SYS_ARCH_PRCTL), ctypes.c_long(_REQUEST), ctypes.c_long(_TILE_DATA)) == 0)
