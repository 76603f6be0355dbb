"""Functions about the whole process, with onnxruntime's names."""

from __future__ import annotations

import operator
import platform
from typing import SupportsIndex

from sardonyx.errors import Fail, InvalidArgument
from sardonyx.forks import new_lock
from sardonyx.version import ONNXRUNTIME_API, __version__

__all__ = [
    "disable_telemetry_events",
    "enable_telemetry_events",
    "get_build_info",
    "get_device",
    "get_version_string",
    "global_thread_count",
    "has_collective_ops",
    "preload_dlls",
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
    return f"sardonyx {__version__}, API of onnxruntime {ONNXRUNTIME_API}, Python {platform.python_version()}, {platform.machine()}"


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
    """Set how many threads sessions use that have `use_per_session_threads` off; 0 leaves a number open.

    Raises:
        InvalidArgument: a number is negative.
        Fail: such a session was made before.
    """
    sizes = {"intra_op": operator.index(intra_op_num_threads), "inter_op": operator.index(inter_op_num_threads)}
    if min(sizes.values()) < 0:
        raise InvalidArgument(f"numbers of threads are at least 0, got {sizes}")
    with _LOCK:
        if _SIZES.get("in_use"):
            raise Fail("Global thread pools have already been created, cannot replace them")
        _SIZES.update(sizes)


def global_thread_count(kind: str) -> int:
    """Return how many threads `set_global_thread_pool_sizes` gave, 0 where it left that open; from then on they cannot change.

    Args:
        kind: "intra_op" or "inter_op".
    """
    with _LOCK:
        _SIZES["in_use"] = 1
        return _SIZES.get(kind, 0)
