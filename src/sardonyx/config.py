"""Every environment variable that sardonyx reads, and the limits that guard against hostile files.

No other module reads `os.environ`. Variables are read when asked for, so a test may set one.

`session/settings/variables.py` lists them. Limits are read once, when the package is imported.
"""

from __future__ import annotations

import contextlib
import os
import warnings
from typing import TYPE_CHECKING, Any

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.forks import without_fork

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = [
    "DEFAULT_CACHE_BYTES",
    "LIMITS",
    "Limits",
    "cache_dir",
    "cache_limit_bytes",
    "compiles_inline",
    "environment_with",
    "environment_with_cache",
    "float32_precision",
    "guards_memory",
    "isa",
    "keeps_decisions",
    "maps_weights",
    "num_threads",
    "reads_options_of_models",
    "runs_natively",
    "settings_in_force",
    "trace_file",
]


_MOST_BYTES = 64 << 30
DEFAULT_CACHE_BYTES = 1 << 30
"""The size limit of the object cache where `SARDONYX_CACHE_BYTES` sets none."""
_DEFAULT_ITERATIONS = 10_000_000
_MOST_DIGITS = 18
_PRECISIONS = ("highest", "high", "medium")


def _variable(name: str) -> str | None:
    """Return a variable; None where it is not set, which `os.environ.get` finds out by an exception."""
    environ = os.environ
    raw = getattr(environ, "_data", None)
    return environ.get(name) if raw is None or environ.encodekey(name) in raw else None


def _positive(name: str) -> int | None:
    """Return a variable as a positive number; None where it is not set or 0, and, with a warning, where it is no number."""
    text = _variable(name) or ""
    if text and not _is_number(text):
        message = f"the environment variable {name} must be a number of at least 1, got {text!r:.40}, which has no effect"
        warnings.warn(message, UserWarning, stacklevel=3)
    return int(text) or None if _is_number(text) else None


def _is_number(text: str) -> bool:
    """Return whether a text is a number of 0 and more that a word holds."""
    return text.isdecimal() and len(text) <= _MOST_DIGITS


def _half_of_memory() -> int:
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        memory = 2 * _MOST_BYTES
    return min(_MOST_BYTES, min(memory, *_cgroup_limits("/proc/self/cgroup", "/sys/fs/cgroup")) // 2)


def _cgroup_limits(membership: str, root: str) -> list[int]:
    """Return the bytes of memory that Linux allows the process's control groups, those above them too, of version 1 and 2.

    Args:
        membership: the file that lists the process's groups, as `hierarchy:controllers:path`.
        root: where the groups are mounted; in a container it is often the process's group itself.
    """
    found: list[int] = [2 * _MOST_BYTES]
    try:
        lines = _text_of(membership).splitlines()
    except (OSError, ValueError):
        return found
    for line in lines:
        _, controllers, path = (line.split(":", 2) + ["", ""])[:3]
        if controllers and "memory" not in controllers.split(","):
            continue
        base, name = (os.path.join(root, "memory"), "memory.limit_in_bytes") if controllers else (root, "memory.max")
        folder = os.path.join(base, path.strip("/")).rstrip("/")
        while len(folder) >= len(base):
            with contextlib.suppress(OSError, ValueError):
                found.append(int(_text_of(os.path.join(folder, name))))
            folder = os.path.dirname(folder)
    return found


def _text_of(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def _tensor_bytes() -> int:
    return _positive("SARDONYX_MAX_TENSOR_BYTES") or _half_of_memory()


def _iterations() -> int:
    return _positive("SARDONYX_MAX_ITERATIONS") or _DEFAULT_ITERATIONS


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
    function_growth: int = 100
    """How many times the nodes of a file, functions counted once, its nodes may be after functions are inlined."""
    function_nodes: int = 100_000
    """Nodes after functions are inlined that are allowed however few the file has."""
    fold_bytes: int = 16 << 20
    """Largest constant that folding may create from smaller ones, or copy."""
    fold_in_place_bytes: int = 1 << 30
    """Largest constant that folding may compute from what takes as many bytes."""
    fold_growth_bytes: int = 4 << 20
    """By how many bytes folding may make one model larger; conversions of weights to wider types do not count."""
    fold_seconds: float = 10.0
    """Processor time for which the folding of one model may evaluate nodes; what it leaves takes as long in each run."""
    rank: int = 64
    """Most dimensions of a tensor, as in NumPy."""


LIMITS = Limits()
"""The limits in force."""


def isa() -> str | None:
    """Return the instruction set that `SARDONYX_ISA` forces, or None."""
    return _variable("SARDONYX_ISA") or None


def float32_precision() -> str:
    """Return `SARDONYX_FLOAT32_PRECISION`, or "" where it is not set or, with a warning, none of the words."""
    text = _variable("SARDONYX_FLOAT32_PRECISION") or ""
    if text and text not in _PRECISIONS:
        names = ", ".join(_PRECISIONS)
        message = f"the environment variable SARDONYX_FLOAT32_PRECISION must be one of {names}, got {text!r}, which has no effect"
        warnings.warn(message, UserWarning, stacklevel=2)
        return ""
    return text


def num_threads() -> int | None:
    """Return `SARDONYX_NUM_THREADS` as a positive number, or None where unset or no number."""
    return _positive("SARDONYX_NUM_THREADS")


def cache_dir() -> Path | None:
    """Return the folder of the object cache, or None where `SARDONYX_CACHE_DIR` is set and empty, or the user has no home.

    A relative XDG_CACHE_HOME is left out, as its specification wants, and so is a relative home.
    """
    with without_fork():
        from pathlib import Path  # a fifth of what is not NumPy's of `import sardonyx`

    text = _variable("SARDONYX_CACHE_DIR")
    if text is not None:
        return Path(text) if text else None
    base = _variable("XDG_CACHE_HOME") or ""
    if os.path.isabs(base):
        return Path(base) / "sardonyx"
    home = os.path.expanduser("~")
    return Path(home, ".cache", "sardonyx") if os.path.isabs(home) else None


def cache_limit_bytes() -> int:
    """Return the size limit of the object cache in bytes."""
    text = _variable("SARDONYX_CACHE_BYTES") or ""
    return int(text) if _is_number(text) else DEFAULT_CACHE_BYTES


def compiles_inline() -> bool:
    """Return whether `SARDONYX_COMPILE` asks for LLVM in this process."""
    text = _variable("SARDONYX_COMPILE") or ""
    if text not in ("", "inline"):
        message = f"the environment variable SARDONYX_COMPILE is inline or empty, got {text!r}, which has no effect"
        warnings.warn(message, UserWarning, stacklevel=2)
    return text == "inline"


def runs_natively() -> bool:
    """Return whether sessions may be run by machine code from the call on, which `SARDONYX_NATIVE_RUN=0` forbids."""
    return _variable("SARDONYX_NATIVE_RUN") != "0"


def keeps_decisions() -> bool:
    """Return whether what is decided of models is kept on disk, which `SARDONYX_KEEP_DECISIONS=0` forbids."""
    return _variable("SARDONYX_KEEP_DECISIONS") != "0"


def guards_memory() -> bool:
    """Return whether `SARDONYX_GUARD` asks for unmapped pages around what compiled kernels work on."""
    return _variable("SARDONYX_GUARD") == "1"


def maps_weights() -> bool:
    """Return whether `SARDONYX_MAP_WEIGHTS` asks to map model files, not to read them."""
    return _variable("SARDONYX_MAP_WEIGHTS") == "1"


def reads_options_of_models() -> bool:
    """Return whether onnxruntime's `ORT_LOAD_CONFIG_FROM_MODEL` has sessions take the options that models bring."""
    return _variable("ORT_LOAD_CONFIG_FROM_MODEL") == "1"


def trace_file() -> Path | None:
    """Return the file that trace events go to, or None."""
    text = _variable("SARDONYX_TRACE")
    if not text:
        return None
    with without_fork():
        from pathlib import Path  # as for `cache_dir`

    return Path(text)


def environment_with(folder: Path) -> dict[str, str]:
    """Return this process's environment for a child that finds Python's modules in `folder` before others."""
    paths = [str(folder), *filter(None, [_variable("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def environment_with_cache(folder: Path) -> dict[str, str]:
    """Return this process's environment for a child that keeps compiled objects in `folder`."""
    return {**os.environ, "SARDONYX_CACHE_DIR": str(folder)}


def settings_in_force() -> dict[str, str]:
    """Return the variables of this package that are set, and those by which other packages of the process choose their threads."""
    global _LATEST
    raw: Any = getattr(os.environ, "_data", os.environ)  # what Python keeps, where it shows that: this decodes no name
    if raw != _LATEST[0]:
        others = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_CORETYPE")
        names = sorted([name for name in os.environ if name.startswith("SARDONYX_") or name in others])
        _LATEST = dict(raw), {name: os.environ[name] for name in names}
    return _LATEST[1].copy()


_LATEST: tuple[Mapping[object, object], dict[str, str]] = {}, {}
"""All variables when they were looked through last, and those in force."""
