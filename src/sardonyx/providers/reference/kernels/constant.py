"""Operators that make tensors from attributes and shapes, and Identity."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sardonyx.cancellation import check_cancelled
from sardonyx.dtypes import Array, OnnxValue
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.dimensions import as_ints, check_output_size
from sardonyx.providers.reference.algorithms.element_types import element_type
from sardonyx.providers.reference.algorithms.precision import compute_type, quiet, require_same_type
from sardonyx.providers.reference.registry import Call, kernel

__all__ = ["constant", "constant_of_shape", "eye_like", "identity", "range_of", "shape_of", "size_of"]


@kernel("Constant")
def constant(
    _node: Call,
    *,
    value: Array | None = None,
    sparse_value: Array | None = None,
    value_float: float | None = None,
    value_floats: tuple[float, ...] | None = None,
    value_int: int | None = None,
    value_ints: tuple[int, ...] | None = None,
    value_string: str | None = None,
    value_strings: tuple[str, ...] | None = None,
) -> Array:
    """Return the one attribute given: a tensor as it is, numbers and strings as 0-d or 1-D arrays. ONNX Constant-1 to -25."""
    candidates: dict[str, tuple[object, Any]] = {
        "value": (value, None),
        "sparse_value": (sparse_value, None),
        "value_float": (value_float, np.float32),
        "value_floats": (value_floats, np.float32),
        "value_int": (value_int, np.int64),
        "value_ints": (value_ints, np.int64),
        "value_string": (value_string, object),
        "value_strings": (value_strings, object),
    }
    given = {name: pair for name, pair in candidates.items() if pair[0] is not None}
    if len(given) != 1:
        raise InvalidArgument(f"attributes {sorted(given)} are given; expected exactly one of {list(candidates)}")
    ((found, dtype),) = given.values()
    return np.asarray(found, dtype)


@kernel("ConstantOfShape")
def constant_of_shape(_node: Call, shape: Array, *, value: Array | None = None) -> Array:
    """Fill a tensor of `shape` (1-D int64) with the one element of `value`, float32 0 by default. ONNX ConstantOfShape-9 to -25."""
    sizes = as_ints(shape, "the shape")
    if any(length < 0 for length in sizes):
        raise InvalidArgument(f"the shape {list(sizes)} has a negative size; expected sizes of 0 or more")
    fill = np.zeros(1, np.float32) if value is None else value.reshape(-1)
    if fill.size != 1:
        raise InvalidArgument(f"value has {fill.size} elements; expected one")
    check_output_size(sizes, fill.itemsize)
    return np.full(sizes, fill[0], fill.dtype)


@kernel("EyeLike")
def eye_like(_node: Call, x: Array, *, dtype: int | None = None, k: int = 0) -> Array:
    """Return a matrix of the shape of x with ones on diagonal k; type `dtype`, or that of x. ONNX EyeLike-9, EyeLike-22."""
    if x.ndim != 2:
        raise InvalidArgument(f"the input has shape {x.shape}; expected a matrix")
    rows, columns = x.shape
    k = max(-rows, min(columns, k))
    return np.eye(rows, columns, k, dtype=x.dtype if dtype is None else element_type(dtype, "dtype").numpy)


@kernel("Identity")
def identity(_node: Call, x: OnnxValue) -> OnnxValue:
    """Return the input itself: a tensor, a sequence or an optional. ONNX Identity-1 to Identity-25."""
    return x


@kernel("Range")
@quiet
def range_of(_node: Call, start: Array, limit: Array, delta: Array, *, stash_type: int = 1) -> Array:
    """Return start + i delta for i from 0 up to, not including, limit; three scalars of one type. ONNX Range-11, Range-27.

    Narrow floats are computed in float32 (`stash_type` 1, the only one that differs).
    """
    require_same_type(start, limit, delta)
    if not start.size == limit.size == delta.size == 1:
        raise InvalidArgument(f"start, limit, delta have shapes {start.shape}, {limit.shape}, {delta.shape}; expected scalars")
    first, end, step = (bound.reshape(-1)[0].item() for bound in (start, limit, delta))
    count = _range_length(first, end, step)
    check_output_size((count,), 8)
    wide = compute_type(start.dtype) if stash_type == 1 else start.dtype
    values = np.empty(count, start.dtype)
    for begin in range(0, count, _PART_ELEMENTS):
        check_cancelled()
        index = np.arange(begin, min(begin + _PART_ELEMENTS, count)).astype(wide, copy=False)
        values[begin : begin + len(index)] = index * wide.type(step) + wide.type(first)
    return values


_PART_ELEMENTS = 1 << 20
"""How many elements of a range are made between two checks of whether the run is to end."""


def _range_length(first: float, end: float, step: float) -> int:
    """Return max(0, ceil((end - first) / step)), exactly for integers."""
    if step == 0:
        raise InvalidArgument("delta is 0; expected another number")
    if isinstance(first, int):
        return max(0, -int((first - end) // step))
    length = (end - first) / step
    if math.isnan(length) or math.isinf(length):
        raise InvalidArgument(f"the range from {first} to {end} by {step} has no finite length; expected finite numbers")
    return max(0, math.ceil(length))


@kernel("Shape")
def shape_of(_node: Call, x: Array, *, start: int = 0, end: int | None = None) -> Array:
    """Return the sizes of axes `start` up to `end`, as a slice of Python takes them; 1-D int64. ONNX Shape-1, Shape-15."""
    return np.array(x.shape[start:end], np.int64)


@kernel("Size")
def size_of(_node: Call, x: Array) -> Array:
    """Return the number of elements; 0-d int64. ONNX Size-1 to Size-25."""
    return np.array(x.size, np.int64)
