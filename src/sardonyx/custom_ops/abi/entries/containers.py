"""Sequences and maps that a library makes, takes apart, and hands to operators of the runtime."""

from __future__ import annotations

import ctypes

import numpy as np

from sardonyx.custom_ops.abi.entries.memory import check_allocator
from sardonyx.custom_ops.abi.entry import INT32, POINTER, SIZE, Entry, entry
from sardonyx.custom_ops.abi.strings import write_int32, write_pointer, write_size
from sardonyx.custom_ops.abi.values import HostValue, find_value, make_container, make_value
from sardonyx.dtypes import Array, OnnxValue
from sardonyx.errors import InvalidArgument

__all__ = ["ENTRIES"]

ENTRIES: list[Entry] = []

_TENSOR, _SEQUENCE, _MAP = 1, 2, 3
"""Numbers of ONNXType."""
_KEYS, _VALUES = 0, 1
"""The parts of a map."""


def _kind_of(content: OnnxValue) -> int:
    return _SEQUENCE if isinstance(content, list) else _MAP if isinstance(content, dict) else _TENSOR


@entry(ENTRIES, "GetValueType", POINTER, POINTER)
def _get_value_type(value: int | None, out: int | None) -> None:
    write_int32(out, _kind_of(find_value(value).content))


@entry(ENTRIES, "IsTensor", POINTER, POINTER)
def _is_tensor(value: int | None, out: int | None) -> None:
    write_int32(out, int(_kind_of(find_value(value).content) == _TENSOR))


@entry(ENTRIES, "GetValueCount", POINTER, POINTER)
def _get_value_count(value: int | None, out: int | None) -> None:
    content = find_value(value).content
    if not isinstance(content, (list, dict)):
        raise InvalidArgument("the library asks how many values a tensor holds; expected a sequence or a map")
    write_size(out, len(content) if isinstance(content, list) else 2)


@entry(ENTRIES, "GetValue", POINTER, INT32, POINTER, POINTER)
def _get_value(value: int | None, index: int, allocator: int | None, out: int | None) -> None:
    check_allocator(allocator)
    content = find_value(value).content
    if isinstance(content, list):
        if not 0 <= index < len(content):
            raise InvalidArgument(f"the library asks for value {index} of a sequence of {len(content)}")
        write_pointer(out, _made(content[index]).address)
    elif isinstance(content, dict):
        if index not in (_KEYS, _VALUES):
            raise InvalidArgument(f"the library asks for part {index} of a map; 0 are its keys, 1 its values")
        write_pointer(out, _made(_column(list(content) if index == _KEYS else list(content.values()))).address)
    else:
        raise InvalidArgument("the library asks for a value inside a tensor; expected a sequence or a map")


@entry(ENTRIES, "CreateValue", POINTER, SIZE, INT32, POINTER)
def _create_value(values: int | None, count: int, kind: int, out: int | None) -> None:
    if not count or not values:
        raise InvalidArgument("the library makes a sequence or a map of no values; expected one at least")
    parts = [find_value(address).content for address in (ctypes.c_uint64 * count).from_address(values)]
    if kind == _SEQUENCE:
        write_pointer(out, _made(_sequence(parts)).address)
    elif kind == _MAP:
        write_pointer(out, _made(_map(parts)).address)
    else:
        raise InvalidArgument(f"the library makes a value of the ONNXType {kind}; expected 2, a sequence, or 3, a map")


def _sequence(parts: list[OnnxValue]) -> OnnxValue:
    kinds = {str(part.dtype) if isinstance(part, np.ndarray) else type(part).__name__ for part in parts}
    if len(kinds) > 1 or any(isinstance(part, list) for part in parts):
        raise InvalidArgument(f"the library makes a sequence of {', '.join(sorted(kinds))}; expected tensors of one type, or maps")
    return [part.copy() if isinstance(part, np.ndarray) else part for part in parts]


def _map(parts: list[OnnxValue]) -> OnnxValue:
    keys, values = (*parts, None, None)[:2]
    if len(parts) != 2 or not isinstance(keys, np.ndarray) or not isinstance(values, np.ndarray):
        raise InvalidArgument(f"the library makes a map of {len(parts)} values; expected a tensor of keys and one of values")
    if keys.ndim != 1 or keys.shape != values.shape or keys.dtype not in (np.dtype(np.int64), np.dtype(object)):
        raise InvalidArgument(
            f"the library makes a map of keys {keys.dtype}{list(keys.shape)} and values {list(values.shape)}; expected as many of "
            "each, in one dimension, and keys of int64 or strings"
        )
    return dict(zip(keys.tolist(), values.tolist() if values.dtype == object else list(values), strict=True))


def _column(items: list[object]) -> Array:
    """Return the keys or values of a map as a tensor."""
    if any(isinstance(item, str) for item in items):
        return np.array(items, object)
    if items and not all(isinstance(item, (int, float, np.generic)) for item in items):
        raise InvalidArgument("the library asks for the values of a map that are no numbers or strings")
    return np.asarray(items) if items else np.zeros(0, np.int64)


def _made(content: OnnxValue) -> HostValue:
    return make_value(content.copy()) if isinstance(content, np.ndarray) else make_container(content)
