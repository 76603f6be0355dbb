"""The size of a core's second-level cache, by which the work of kernels is cut.

    Linux, /sys/devices/system/cpu/cpu0/cache/index<n>/    level "2", type "Unified", size "2048K"

It decides how fast kernels are, never what they compute: sums are cut by fixed lengths. No code is made of it, so that objects on
disk are the same whatever it is.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

__all__ = ["USUAL_BYTES", "second_level_bytes"]

USUAL_BYTES = 1 << 20
"""Taken where the system does not say."""

_FEWEST_BYTES, _MOST_BYTES = 1 << 18, 1 << 22
"""Smaller caches are taken for this one, since blocks cannot be much smaller; larger ones are shared by several cores."""

_UNITS = {"K": 1 << 10, "M": 1 << 20}


def second_level_bytes(root: Path = Path("/")) -> int:
    """Return how many bytes the second-level cache of the first core holds, within limits that blocks are made for.

    Args:
        root: the folder that files are read under.
    """
    for folder in sorted((root / "sys/devices/system/cpu/cpu0/cache").glob("index*")):
        with contextlib.suppress(OSError, ValueError, KeyError):
            if _text(folder / "level") == "2" and _text(folder / "type") in ("Unified", "Data"):
                return min(max(_bytes(_text(folder / "size")), _FEWEST_BYTES), _MOST_BYTES)
    return USUAL_BYTES


def _text(path: Path) -> str:
    return path.read_text(encoding="ascii").strip()


def _bytes(text: str) -> int:
    """Return what a size such as "2048K" says; raises ValueError or KeyError for anything else, and for no bytes at all."""
    number = int(text[:-1]) * _UNITS[text[-1:]]
    if number <= 0:
        raise ValueError(f"a cache of {text}")
    return number
