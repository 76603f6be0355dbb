"""Whether two computations of the same values agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sardonyx.dtypes import Array, OnnxValue
from sardonyx.forks import without_fork

__all__ = ["MOVING", "difference"]

MOVING = frozenset(
    [
        "Compress",
        "Concat",
        "ConcatFromSequence",
        "Constant",
        "ConstantOfShape",
        "DepthToSpace",
        "Dropout",
        "Expand",
        "Flatten",
        "Gather",
        "GatherElements",
        "GatherND",
        "Identity",
        "Pad",
        "Reshape",
        "ReverseSequence",
        "Shape",
        "Size",
        "Slice",
        "SpaceToDepth",
        "Split",
        "Squeeze",
        "Tile",
        "Transpose",
        "Trilu",
        "Unsqueeze",
        "Where",
    ]
)
"""Operators that move elements and compute none: what is made of these alone is equal bit by bit, or wrong."""


def difference(old: Sequence[OnnxValue], new: Sequence[OnnxValue], tolerance: float, *, integer_steps: int = 0) -> str | None:
    """Return how `new` differs from `old`; None where it does not. Values are Any by their ONNX type.

    Args:
        old: the outputs of the one computation.
        new: those of the other.
        tolerance: for float32: by how much a number may differ, relative to itself or to the largest of its tensor. Half types
            are given as much more as they are coarser, and double as much less, but a thousandth at least. 0 wants equality.
        integer_steps: by how much an integer may differ.
    """
    if len(old) != len(new):
        return f"gives {len(new)} outputs for {len(old)}"
    for index, (one, other) in enumerate(zip(old, new, strict=True)):
        found = _difference(one, other, tolerance, integer_steps)
        if found is not None:
            return f"{found} in output {index}" if len(old) > 1 else found
    return None


def _difference(one: OnnxValue, other: OnnxValue, tolerance: float, steps: int) -> str | None:
    if not isinstance(one, np.ndarray) or not isinstance(other, np.ndarray):
        return _nested(one, other, tolerance, steps)
    if one.dtype != other.dtype or one.shape != other.shape:
        return f"gives {other.dtype}{list(other.shape)} for {one.dtype}{list(one.shape)}"
    if one.dtype == object or one.dtype.kind in "bSU":
        return None if np.array_equal(one, other) else "gives other elements"
    if one.dtype.kind in "iu":
        apart = np.abs(one.astype(np.int64) - other.astype(np.int64)).max(initial=0)
        return None if apart <= steps else f"gives integers that are up to {apart} apart, {steps} allowed"
    return _float_difference(one, other, tolerance)


def _nested(one: OnnxValue, other: OnnxValue, tolerance: float, steps: int) -> str | None:
    if isinstance(one, list) and isinstance(other, list):
        return difference(one, other, tolerance, integer_steps=steps)
    return None if type(one) is type(other) and (one is other or one == other) else f"gives {other!r:.80} for {one!r:.80}"


def _float_difference(one: Array, other: Array, tolerance: float) -> str | None:
    kind = np.complex128 if one.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        left, right = one.astype(kind), other.astype(kind)
        same = (left == right) | (np.isnan(left) & np.isnan(right))
        if same.all():
            return None
        finite = np.isfinite(left) & np.isfinite(right)
        if not (same | finite).all():
            return "gives infinite or undefined numbers where the other does not"
        largest = np.abs(left[finite]).max(initial=0)
        apart = np.abs(left - right)[finite].max(initial=0)
    allowed = tolerance * _coarseness(one.dtype) * largest
    return None if apart <= allowed else f"gives numbers up to {apart:.3g} apart, {allowed:.3g} allowed, of up to {largest:.3g}"


def _coarseness(dtype: np.dtype[Any]) -> float:
    """Return how many times as far apart as those of float32 the numbers of a type are."""
    if dtype.kind == "f":
        return max(float(np.finfo(dtype).eps) / float(np.finfo(np.float32).eps), 1e-3)
    if dtype.kind == "c":
        return 1.0
    with without_fork():
        from ml_dtypes import finfo  # on first use, as in dtypes

    return float(finfo(dtype).eps) / float(np.finfo(np.float32).eps)
