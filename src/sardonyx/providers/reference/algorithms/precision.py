"""The precision that kernels compute in: types narrower than float32 are widened to it, and rounded once at the end."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from sardonyx.dtypes import Array, DataType, is_float
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.half import from_half

__all__ = ["compute_type", "quiet", "require_floats", "require_same_type", "widen"]

quiet = np.errstate(all="ignore")
"""Decorator: overflow, division by zero and NaN follow IEEE 754 in silence."""


@functools.cache
def compute_type(dtype: np.dtype[np.generic]) -> np.dtype[Any]:
    """Return float32 for the narrower floating-point types; any other type itself."""
    if dtype == np.float64 or not is_float(DataType.from_numpy(dtype)):
        return dtype
    return np.dtype(np.float32)


def widen(x: Array) -> Array:
    """Return `x` in its compute type; `x` itself where that is its type."""
    return from_half(x) if x.dtype == np.float16 else x.astype(compute_type(x.dtype), copy=False)


def require_floats(*arrays: Array | None) -> None:
    """Raise InvalidArgument unless all arrays that are given hold floating-point numbers."""
    kinds = [DataType.from_numpy(array.dtype) for array in arrays if array is not None]
    if not all(map(is_float, kinds)):
        raise InvalidArgument(f"the inputs have types {', '.join(map(str, kinds))}; expected floating-point numbers; insert a Cast")


def require_same_type(*arrays: Array) -> None:
    """Raise InvalidArgument unless all arrays have one type."""
    first = arrays[0].dtype
    if any(array.dtype != first for array in arrays):
        found = ", ".join(str(DataType.from_numpy(array.dtype)) for array in arrays)
        raise InvalidArgument(f"the inputs have types {found}; expected one type for all; insert a Cast")
