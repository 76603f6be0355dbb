"""The size of a core's second-level cache, by which the work of kernels is cut.

    Linux, /sys/devices/system/cpu/cpu0/cache/index<n>/    level "2", type "Unified", size "2048K"

It decides how fast kernels are, never what they compute: sums are cut by fixed lengths. No code is made of it, so that objects on
disk are the same whatever it is.
"""

from __future__ import annotations

import contextlib
import os
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
    caches = f"{root}/sys/devices/system/cpu/cpu0/cache"
    with contextlib.suppress(OSError):
        for folder in sorted(os.listdir(caches)):
            with contextlib.suppress(OSError, ValueError, KeyError):
                if _text(f"{caches}/{folder}/level") == "2" and _text(f"{caches}/{folder}/type") in ("Unified", "Data"):
                    return min(max(_bytes(_text(f"{caches}/{folder}/size")), _FEWEST_BYTES), _MOST_BYTES)
    return USUAL_BYTES


def _text(path: str) -> str:
    # the first session of each process reads these: paths of pathlib and a decoder of text take longer than the files
    with open(path, "rb", buffering=0) as file:
        return file.read(64).decode("latin-1").strip()


def _bytes(text: str) -> int:
    """Return what a size such as "2048K" says; raises ValueError or KeyError for anything else, and for no bytes at all."""
    number = int(text[:-1]) * _UNITS[text[-1:]]
    if number <= 0:
        raise ValueError(f"a cache of {text}")
    return number
