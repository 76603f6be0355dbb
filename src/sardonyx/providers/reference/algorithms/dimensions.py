"""Axes, shapes and counts as operators receive them: checked once, here, with messages that name the values."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

from sardonyx.config import LIMITS
from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument

__all__ = [
    "as_float",
    "as_int",
    "as_ints",
    "check_broadcast_size",
    "check_output_size",
    "normalize_axes",
    "normalize_axis",
    "normalize_position",
]


def normalize_axis(axis: int, rank: int, name: str = "axis") -> int:
    """Return the axis counted from the front; raises InvalidArgument outside [-rank, rank)."""
    if not -rank <= axis < rank:
        raise InvalidArgument(
            f"{name}={axis} is outside [{-rank}, {rank - 1}] for a tensor of rank {rank}; name an axis that it has"
        )
    return axis + rank if axis < 0 else axis


def normalize_position(position: int, length: int, name: str = "position") -> int:
    """Return the position counted from the front; raises InvalidArgument outside [-length, length)."""
    if not -length <= position < length:
        raise InvalidArgument(f"{name}={position} is outside [{-length}, {length - 1}]; there are {length} entries")
    return position + length if position < 0 else position


def normalize_axes(axes: Iterable[int], rank: int, name: str = "axes") -> tuple[int, ...]:
    """Return the axes counted from the front, in their order; raises InvalidArgument for one out of range or named twice."""
    result = tuple(normalize_axis(axis, rank, name) for axis in axes)
    if len(set(result)) != len(result):
        raise InvalidArgument(f"{name}={list(result)} names an axis twice; name each axis once")
    return result


def as_ints(values: Array, name: str) -> tuple[int, ...]:
    """Return the elements of a 1-D (or 0-D) integer tensor as Python integers; raises InvalidArgument for another."""
    if values.size and values.dtype.kind not in "iu":
        raise InvalidArgument(f"{name} has elements of type {values.dtype.name}; expected integers")
    if values.ndim > 1:
        raise InvalidArgument(f"{name} has shape {values.shape}; expected a 1-D tensor of integers")
    return tuple(values.reshape(-1).tolist())


def as_int(value: Array, name: str) -> int:
    """Return the one element of a tensor, as a Python integer."""
    if value.size != 1:
        raise InvalidArgument(f"{name} has shape {value.shape}; expected a tensor of exactly one element")
    return int(value.reshape(-1)[0])


def as_float(value: Array, name: str) -> float:
    """Return the one element of a tensor, as a Python float."""
    if value.size != 1:
        raise InvalidArgument(f"{name} has shape {value.shape}; expected a tensor of exactly one element")
    return float(value.reshape(-1)[0])


def check_broadcast_size(*arrays: Array) -> None:
    """Raise InvalidArgument where what the arrays broadcast to is beyond `LIMITS.tensor_bytes`; shapes that do not fit pass."""
    widest = max(array.itemsize for array in arrays)
    if math.prod(array.size for array in arrays) * widest <= LIMITS.tensor_bytes:
        return
    sizes = itertools.zip_longest(*(reversed(array.shape) for array in arrays), fillvalue=1)
    check_output_size(tuple(max(column) if min(column) else 0 for column in sizes)[::-1], widest)


def check_output_size(shape: Sequence[int], item_bytes: int) -> None:
    """Raise InvalidArgument for a shape beyond `LIMITS.tensor_bytes` or `LIMITS.rank`, before anything is allocated for it."""
    if len(shape) > LIMITS.rank:
        raise InvalidArgument(
            f"the output would have {len(shape)} dimensions; at most {LIMITS.rank} are possible: check the ranks of the inputs"
        )
    size_bytes = math.prod(shape) * item_bytes
    if not size_bytes and math.prod(max(size, 1) for size in shape) * item_bytes >> 63:
        raise InvalidArgument(
            f"the output would have shape {tuple(shape)}, whose strides no array can have: check the inputs that set it"
        )
    if size_bytes > LIMITS.tensor_bytes:
        raise InvalidArgument(
            f"the output would have shape {tuple(shape)}, that is {size_bytes} bytes; "
            f"at most {LIMITS.tensor_bytes} are allowed: check the inputs that set the shape, or raise "
            "SARDONYX_MAX_TENSOR_BYTES"
        )
