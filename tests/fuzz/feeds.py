"""Changes of what is fed: sizes, elements, strides and types that a user may give, or should not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from fuzz.draw import Draw
from fuzz.model import HOSTILE

__all__ = ["mutate_feeds"]

_FLOATS = (np.nan, np.inf, -np.inf, 1e30, -1e30, 1e-45, -0.0, 100.0, 0.5)
_TYPES = ("float32", "int64", "float64", "int32", "uint8", "bool", "float16", ">f4", "U3", "object", "complex64", "datetime64[s]")


def mutate_feeds(draw: Draw, feeds: dict[str, Any]) -> None:
    """Change one input of a feed, or the feed itself."""
    if not feeds:
        return
    name = draw.pick(sorted(feeds))
    if draw.chance(12):
        _change_names(draw, feeds, name)
    elif isinstance(feeds[name], np.ndarray):
        feeds[name] = draw.pick(_WAYS)(draw, feeds[name])
    elif isinstance(feeds[name], list) and feeds[name]:
        items = list(feeds[name])
        items = items[:-1] if draw.chance(2) else [*items, items[0]]
        feeds[name] = items


def _change_names(draw: Draw, feeds: dict[str, Any], name: str) -> None:
    way = draw.below(3)
    if way == 0:
        del feeds[name]
    elif way == 1:
        feeds[f"{name}x"] = feeds[name]
    else:
        feeds[name] = draw.pick((None, 1, "text", [[1, 2], [3]], {"a": 1}, b"bytes"))


def _resize(draw: Draw, array: Any) -> Any:
    if not array.ndim:
        return np.resize(array, draw.pick(((1,), (0,), (2, 2))))
    shape = list(array.shape)
    axis = draw.below(array.ndim)
    shape[axis] = draw.pick((0, 1, shape[axis] + 1, max(shape[axis] - 1, 0), 2 * shape[axis], 33))
    return np.resize(array, shape) if array.size and np.prod(shape) else np.zeros(shape, array.dtype)


def _reshape(draw: Draw, array: Any) -> Any:
    way = draw.below(4)
    if way == 0:
        return array[None]
    if way == 1:
        return array.reshape(-1)
    return np.moveaxis(array, 0, -1) if way == 2 and array.ndim else array.reshape(*array.shape, 1)


def _change_elements(draw: Draw, array: Any) -> Any:
    array = np.array(array)
    if not array.size or array.dtype.kind not in "iufb":
        return array
    with np.errstate(all="ignore"):
        if array.dtype.kind == "f":
            number = np.array(draw.pick(_FLOATS)).astype(array.dtype)
        else:
            number = np.array(draw.pick((0, 1, -1, 2, *HOSTILE)), np.int64).astype(array.dtype)
    if draw.chance(6):
        array[...] = number if array.dtype.kind != "f" else draw.pick((0.0, 0.5, -0.0, 100.0))
    else:
        array.reshape(-1)[draw.below(array.size)] = number
    return array


def _change_strides(draw: Draw, array: Any) -> Any:
    """The same elements elsewhere in memory."""
    way = draw.below(6)
    if way == 0:
        return np.array(array.T, order="C").T
    if way == 1:
        doubled = np.repeat(array, 2, axis=-1) if array.ndim else array
        return doubled[..., ::2] if array.ndim else doubled
    if way == 2:
        return np.flip(np.ascontiguousarray(np.flip(array)))
    if way == 3 and array.size and array.ndim:
        return np.broadcast_to(array[:1], array.shape)
    if way == 4 and array.dtype.kind in "iuf":
        raw = np.zeros(array.nbytes + 1, np.uint8)
        moved = raw[1:].view(array.dtype).reshape(array.shape) if array.size else array.copy()
        moved[...] = array
        return moved
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def _change_type(draw: Draw, array: Any) -> Any:
    way = draw.below(3)
    if way == 0:
        return array.tolist()
    if way == 1:
        return array.astype(array.dtype.newbyteorder())
    try:
        with np.errstate(all="ignore"):
            return array.astype(draw.pick(_TYPES))
    except (TypeError, ValueError):
        return array


_WAYS: Sequence[Callable[[Draw, Any], Any]] = (_change_elements, _resize, _change_strides, _change_elements, _reshape, _change_type)
