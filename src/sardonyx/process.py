"""Functions about the whole process, with onnxruntime's names."""

from __future__ import annotations

import ctypes
import mmap
import operator
import platform
import sys
from typing import SupportsIndex

from sardonyx.errors import Fail
from sardonyx.forks import new_lock, without_fork
from sardonyx.version import ONNXRUNTIME_API, __version__

__all__ = [
    "check_own_threads",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "get_build_info",
    "get_device",
    "get_version_string",
    "global_thread_counts",
    "has_collective_ops",
    "preload_dlls",
    "release_free_memory",
    "resident_bytes",
    "set_global_thread_pool_sizes",
]

_LOCK = new_lock()
_SIZES: dict[str, int] = {}


def get_device() -> str:
    """Return the kind of device that the build is for, as onnxruntime names it: "CPU"."""
    return "CPU"


def get_version_string() -> str:
    """Return the version of onnxruntime's API that this is, and after a plus sign the version of sardonyx."""
    return f"{ONNXRUNTIME_API}+sardonyx.{__version__}"


def get_build_info() -> str:
    """Return how the package was built, in one line."""
    runs_on = f"Python {platform.python_version()}, {platform.machine()}"
    return f"sardonyx Build Info: sardonyx {__version__}, API of onnxruntime {ONNXRUNTIME_API}, {runs_on}"


def has_collective_ops() -> bool:
    """Return False: there are no operators that work across machines."""
    return False


def enable_telemetry_events() -> None:
    """Accept the call: sardonyx sends nothing to anybody, and cannot be made to."""


def disable_telemetry_events() -> None:
    """Accept the call: sardonyx sends nothing to anybody."""


def preload_dlls(cuda: bool = True, cudnn: bool = True, msvc: bool = True, directory: str | None = None) -> None:
    """Accept the call: there are no libraries of CUDA, cuDNN or MSVC that this build could need."""


def set_global_thread_pool_sizes(intra_op_num_threads: SupportsIndex = 0, inter_op_num_threads: SupportsIndex = 0) -> None:
    """Set how many threads sessions use; 0 leaves a number open, as does one below it.

    As in onnxruntime, sessions that are made from then on must have `use_per_session_threads` off.

    Raises:
        Fail: it was called before, or a session with `use_per_session_threads` off was made.
    """
    sizes = {"intra_op": max(operator.index(intra_op_num_threads), 0), "inter_op": max(operator.index(inter_op_num_threads), 0)}
    with _LOCK:
        if _SIZES.get("in_use"):
            raise Fail("Global thread pools have already been created, cannot replace them")
        _SIZES.update(sizes, in_use=1)


def global_thread_counts() -> tuple[int, int]:
    """Return what `set_global_thread_pool_sizes` gave, threads of a step and of a run, 0 for what it left open.

    From then on they cannot change.
    """
    with _LOCK:
        _SIZES["in_use"] = 1
        return _SIZES.get("intra_op", 0), _SIZES.get("inter_op", 0)


def check_own_threads() -> None:
    """Raise Fail where `set_global_thread_pool_sizes` was called, and a session asks for threads of its own."""
    with _LOCK:
        if "intra_op" in _SIZES:
            raise Fail(
                "use_per_session_threads must be false when using a global thread pool: set_global_thread_pool_sizes was called"
            )


def resident_bytes() -> int:
    """Return how much of the process is in memory, 0 where the system does not say; outside Linux the most that it was so far."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * mmap.PAGESIZE
    except OSError:
        pass
    try:
        with without_fork():
            import resource
    except ImportError:  # on Windows
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def release_free_memory() -> None:
    """Have the C library give back what it keeps of freed memory, where it can: glibc."""
    release = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if release is not None:
        release(ctypes.c_size_t(0))
