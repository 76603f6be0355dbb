"""Every environment variable that sardonyx reads, and the limits that guard against hostile files.

No other module reads `os.environ`. Variables are read when asked for, so a test may set one.

    SARDONYX_ISA           a lower instruction set than the machine's: portable, avx2, avx512, amx, neon
    SARDONYX_NUM_THREADS   threads of the process-wide pool, where the session options leave the number open
    SARDONYX_CACHE_DIR     folder of the object cache; empty switches the cache off
    SARDONYX_CACHE_BYTES   its size limit in bytes (default 1 GiB)
    SARDONYX_COMPILE       `inline` runs LLVM in this process, not in one of its own
    SARDONYX_GUARD         `1` runs compiled kernels in memory where leaving a buffer stops the process (slow, for finding defects)
    SARDONYX_MAP_WEIGHTS   1 maps model files, which then must not be written to while a session of theirs lives
    SARDONYX_TRACE         a file that trace events are appended to as JSON lines

The limits are read once, when the package is imported:

    SARDONYX_MAX_TENSOR_BYTES  largest tensor that a node may make (default: half of the machine's memory, at most 64 GiB)
    SARDONYX_MAX_ITERATIONS    most iterations of a Loop (default 10 million)
"""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

__all__ = [
    "LIMITS",
    "Limits",
    "cache_dir",
    "cache_limit_bytes",
    "compiles_inline",
    "guards_memory",
    "isa",
    "maps_weights",
    "num_threads",
    "trace_file",
]


_MOST_BYTES = 64 << 30


def _number(name: str, default: int) -> int:
    text = os.environ.get(name, "")
    return int(text) if text.isdigit() and int(text) > 0 else default


def _half_of_memory() -> int:
    try:
        return min(_MOST_BYTES, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2)
    except (AttributeError, OSError, ValueError):
        return _MOST_BYTES


def _tensor_bytes() -> int:
    return _number("SARDONYX_MAX_TENSOR_BYTES", _half_of_memory())


def _iterations() -> int:
    return _number("SARDONYX_MAX_ITERATIONS", 10_000_000)


@dataclasses.dataclass(frozen=True, slots=True)
class Limits:
    """What a small file may ask for at most."""

    tensor_bytes: int = dataclasses.field(default_factory=_tensor_bytes)
    """Largest tensor that a node may ask to make, and most bytes that the iterations of a loop may collect; also the largest
    initializer."""
    iterations: int = dataclasses.field(default_factory=_iterations)
    """Most iterations of a Loop."""
    function_depth: int = 64
    """Deepest nesting of function calls and subgraphs."""
    nodes: int = 2_000_000
    """Most nodes after functions are inlined."""
    fold_bytes: int = 16 << 20
    """Largest constant that folding may create."""
    fold_growth_bytes: int = 4 << 20
    """By how many bytes folding may make one model larger; conversions of weights to wider types do not count."""
    fold_seconds: float = 2.0
    """How long the folding of one model may evaluate nodes."""
    rank: int = 64
    """Most dimensions of a tensor, as in NumPy."""


LIMITS = Limits()
"""The limits in force."""


def isa() -> str | None:
    """The instruction set that `SARDONYX_ISA` forces, or None."""
    return os.environ.get("SARDONYX_ISA") or None


def num_threads() -> int | None:
    """`SARDONYX_NUM_THREADS` as a positive number, or None where unset or no number."""
    text = os.environ.get("SARDONYX_NUM_THREADS", "")
    return int(text) if text.isdigit() and int(text) > 0 else None


def cache_dir() -> Path | None:
    """Return the folder of the object cache, or None where `SARDONYX_CACHE_DIR` is set and empty, or the user has no home.

    A relative XDG_CACHE_HOME is left out, as its specification wants.
    """
    text = os.environ.get("SARDONYX_CACHE_DIR")
    if text is not None:
        return Path(text) if text else None
    base = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(base):
        return Path(base) / "sardonyx"
    try:
        return Path.home() / ".cache" / "sardonyx"
    except RuntimeError:
        return None


def cache_limit_bytes() -> int:
    """The size limit of the object cache in bytes."""
    text = os.environ.get("SARDONYX_CACHE_BYTES", "")
    return int(text) if text.isdigit() else 1 << 30


def compiles_inline() -> bool:
    """Whether `SARDONYX_COMPILE` asks for LLVM in this process."""
    return os.environ.get("SARDONYX_COMPILE") == "inline"


def guards_memory() -> bool:
    """Whether `SARDONYX_GUARD` asks for unmapped pages around what compiled kernels work on."""
    return os.environ.get("SARDONYX_GUARD") == "1"


def maps_weights() -> bool:
    """Whether `SARDONYX_MAP_WEIGHTS` asks to map model files, not to read them."""
    return os.environ.get("SARDONYX_MAP_WEIGHTS") == "1"


def trace_file() -> Path | None:
    """The file that trace events go to, or None."""
    text = os.environ.get("SARDONYX_TRACE")
    return Path(text) if text else None
