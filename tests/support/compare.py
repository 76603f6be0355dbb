"""Compare what an engine gives with what a case expects: types and shapes exactly, numbers by class of type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sardonyx.dtypes import Array, DataType, is_float

__all__ = ["difference"]

_TWO_UNITS = {DataType.BFLOAT16: 2**-6, DataType.FLOAT16: 2**-9}
"""Two units in the last place, relative, as onnx's own runner allows for bfloat16: what cases expect is rounded step by step."""


def difference(expected: Any, found: Any, rtol: float, atol: float) -> str | None:
    """In which way `found` is not `expected`, with the greatest difference; None where it is.

    Tensors, lists (sequences), dicts (maps) and None (an empty optional); Any as all of these come here. Floating-point numbers may
    differ by `atol` plus `rtol` times the expected, those of 16 bits by two units in the last place too; NaN is NaN; all else must
    be equal.
    """
    if isinstance(expected, (list, tuple)):
        return _lists_differ(expected, found, rtol, atol)
    if isinstance(expected, Mapping):
        return _maps_differ(expected, found, rtol, atol)
    if expected is None or found is None:
        return None if expected is None and found is None else f"expected {_kind(expected)}, found {_kind(found)}"
    if not isinstance(expected, np.ndarray):
        expected = np.asarray(expected)
    if not isinstance(found, np.ndarray):
        return f"expected {_kind(expected)}, found {_kind(found)}"
    return _arrays_differ(expected, found, rtol, atol)


def _lists_differ(expected: Any, found: Any, rtol: float, atol: float) -> str | None:
    if not isinstance(found, list) or len(found) != len(expected):
        return f"expected a list of {len(expected)}, found {_kind(found)}"
    for index, (item, other) in enumerate(zip(expected, found, strict=True)):
        text = difference(item, other, rtol, atol)
        if text is not None:
            return f"[{index}] {text}"
    return None


def _maps_differ(expected: Mapping[Any, Any], found: Any, rtol: float, atol: float) -> str | None:
    if not isinstance(found, Mapping) or sorted(found) != sorted(expected):
        return f"expected a map of {sorted(expected)}, found {_kind(found)}"
    for key, item in expected.items():
        text = difference(np.asarray(item), np.asarray(found[key]), rtol, atol)
        if text is not None:
            return f"[{key!r}] {text}"
    return None


def _arrays_differ(expected: Array, found: Array, rtol: float, atol: float) -> str | None:
    if (expected.dtype, expected.shape) != (found.dtype, found.shape):
        return f"expected {_kind(expected)}, found {_kind(found)}"
    if expected.size == 0:
        return None
    dtype = DataType.from_numpy(expected.dtype)
    if dtype in (DataType.COMPLEX64, DataType.COMPLEX128):
        return _numbers_differ(expected, found, rtol, atol)
    if is_float(dtype):
        wide = np.float64 if dtype is DataType.DOUBLE else np.float32
        return _numbers_differ(expected.astype(wide), found.astype(wide), max(rtol, _TWO_UNITS.get(dtype, 0.0)), atol)
    wrong = np.asarray(expected != found)
    return f"{wrong.sum()} of {wrong.size} elements differ, {_first(expected, found, wrong)}" if wrong.any() else None


def _numbers_differ(expected: Array, found: Array, rtol: float, atol: float) -> str | None:
    with np.errstate(all="ignore"):
        wrong = ~np.isclose(found, expected, rtol=rtol, atol=atol, equal_nan=True)
        if not wrong.any():
            return None
        greatest = np.nanmax(np.abs(np.where(wrong, found - expected, 0)))
    return f"{wrong.sum()} of {wrong.size} elements differ, by at most {greatest:.3g}, {_first(expected, found, wrong)}"


def _first(expected: Array, found: Array, wrong: Array) -> str:
    place = tuple(map(int, np.argwhere(wrong)[0]))
    return f"first at {list(place)}: expected {expected[place]!r}, found {found[place]!r}"


def _kind(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    return f"{type(value).__name__} of {len(value)}" if isinstance(value, (list, dict)) else f"{value!r:.60}"
