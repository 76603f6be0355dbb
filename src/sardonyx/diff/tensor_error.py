"""By how much two tensors differ: absolute, relative and in units in the last place, and where most."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from sardonyx.dtypes import Array, DataType, OnnxValue, is_float

__all__ = ["TensorError", "measure", "measure_all"]

_ULP_DTYPES = {2: np.int16, 4: np.int32, 8: np.int64}


@dataclasses.dataclass(frozen=True, slots=True)
class TensorError:
    """How one value of b differs from that of a."""

    name: str
    """The value."""
    type: str
    """Its type in a: an element type, or what else it is."""
    shape: tuple[int, ...]
    """Its dimensions in a."""
    max_abs: float = 0.0
    """The largest difference of two finite numbers; of truth values and text, 1 where any differs."""
    max_rel: float = 0.0
    """The largest difference of two finite numbers, relative to the larger of them."""
    max_ulp: int | None = None
    """The largest difference in units in the last place of the type; None for what is no floating-point number."""
    mean_abs: float = 0.0
    """The mean of the differences of finite numbers."""
    scale: float = 0.0
    """The largest finite magnitude in a."""
    unequal: int = 0
    """How many elements are not equal; NaN is equal to NaN."""
    elements: int = 0
    """How many there are."""
    not_finite: int = 0
    """How many of them are NaN or infinite in a."""
    at: tuple[int, ...] = ()
    """The index of the largest difference."""
    a: Any = None
    """The element of a there."""
    b: Any = None
    """The element of b there."""
    problem: str = ""
    """What cannot be expressed as a number: another type or shape, NaN or infinities in one of them only."""
    limit: float = 0.0
    """The largest difference that is accepted."""
    agrees: bool = True
    """Whether the difference is accepted."""


def measure_all(name: str, a: OnnxValue, b: OnnxValue) -> list[TensorError]:
    """Return the errors of all tensors in a value, which may be a sequence or a map; names of parts get an index."""
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)) and len(a) == len(b):
        return [
            item
            for index, (one, other) in enumerate(zip(a, b, strict=True))
            for item in measure_all(f"{name}[{index}]", one, other)
        ]
    if isinstance(a, Mapping) and isinstance(b, Mapping) and a.keys() == b.keys():
        return [item for key in a for item in measure_all(f"{name}[{key!r}]", *_as_arrays(a[key], b[key]))]
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return [measure(name, a, b)]
    is_same = a is None and b is None
    problem = "" if is_same else f"a is {_kind(a)}, b is {_kind(b)}"
    return [TensorError(name, type(a).__name__, (), problem=problem, unequal=int(not is_same), elements=1)]


def _as_arrays(a: OnnxValue, b: OnnxValue) -> tuple[Array, Array]:
    """Return the values of a map as arrays; Python's floats are float32 where both are numbers of that type."""
    one, other = np.asarray(a), np.asarray(b)
    pair = one, other
    if any(item.dtype != np.float64 or not np.array_equal(item.astype(np.float32), item, equal_nan=True) for item in pair):
        return pair
    return one.astype(np.float32), other.astype(np.float32)


def measure(name: str, a: Array, b: Array) -> TensorError:
    """Return the error of one tensor, against no limit yet."""
    dtype = DataType.from_numpy(a.dtype)
    found = TensorError(name, str(dtype), a.shape, elements=a.size)
    if a.dtype != b.dtype or a.shape != b.shape:
        problem = f"a is {_kind(a)}, b is {_kind(b)}"
        return dataclasses.replace(found, problem=problem, unequal=max(a.size, b.size, 1))
    if a.size == 0:
        return found
    if dtype is DataType.STRING or dtype is DataType.BOOL:
        return _texts(found, a, b)
    if not is_float(dtype) and a.dtype.kind != "c":
        return _integers(found, a, b)
    return _floats(found, a, b, dtype)


def _texts(found: TensorError, a: Array, b: Array) -> TensorError:
    differs = np.asarray(a != b, dtype=np.float64)
    return _located(found, differs, a, b, int(differs.sum()))


def _integers(found: TensorError, a: Array, b: Array) -> TensorError:
    one, other = (item.astype(np.float64) for item in (a, b))
    differences = np.abs(one - other)
    unequal = int((a != b).sum())
    found = dataclasses.replace(found, scale=float(np.abs(one).max()), max_rel=_relative(differences, one, other))
    return _located(found, differences, a, b, unequal)


def _floats(found: TensorError, a: Array, b: Array, dtype: DataType) -> TensorError:
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    one, other = a.astype(wide), b.astype(wide)
    both = np.isfinite(one) & np.isfinite(other)
    with np.errstate(all="ignore"):
        differences = np.where(both, np.abs(one - other), 0.0)
        same = (one == other) | (np.isnan(one) & np.isnan(other))
    odd = ~both & ~same
    problem = ""
    if odd.any():
        place = tuple(int(item) for item in np.argwhere(odd)[0])
        pair = f"a {one[place]}, b {other[place]}"
        problem = f"{int(odd.sum())} elements are NaN or infinite in one of them only, first at {list(place)}: {pair}"
    scale = float(np.abs(one[np.isfinite(one)]).max(initial=0.0))
    found = dataclasses.replace(
        found,
        scale=scale,
        problem=problem,
        not_finite=int((~np.isfinite(one)).sum()),
        max_ulp=_ulps(a, b, both, dtype),
        max_rel=_relative(differences, one, other, both),
    )
    return _located(found, differences, a, b, int((~same).sum()))


def _located(found: TensorError, differences: Array, a: Array, b: Array, unequal: int) -> TensorError:
    place = tuple(int(item) for item in np.unravel_index(int(np.argmax(differences)), differences.shape))
    return dataclasses.replace(
        found,
        max_abs=float(differences[place]),
        mean_abs=float(differences.mean()),
        at=place,
        a=_plain(a[place]),
        b=_plain(b[place]),
        unequal=unequal,
    )


def _relative(differences: Array, one: Array, other: Array, both: Array | None = None) -> float:
    larger = np.maximum(np.abs(one), np.abs(other))
    with np.errstate(all="ignore"):
        ratios = np.where((larger > 0) & (True if both is None else both), differences / larger, 0.0)
    return float(ratios.max(initial=0.0))


def _ulps(a: Array, b: Array, both: Array, dtype: DataType) -> int | None:
    """Return the largest distance of two finite numbers, counted in numbers of their type between them."""
    whole = _ULP_DTYPES.get(a.dtype.itemsize)
    if whole is None or a.dtype.kind == "c" or not both.any():
        return None if whole is None or a.dtype.kind == "c" else 0
    one, other = (_ordered(item.reshape(-1)[both.reshape(-1)].view(whole)) for item in (a, b))
    if a.dtype.itemsize < 8:
        return int(np.abs(one - other).max())
    worst = int(np.argmax(np.abs(one.astype(np.float64) - other.astype(np.float64))))
    return abs(int(one[worst]) - int(other[worst]))


def _ordered(bits: Array) -> Array:
    """Return integers that are ordered as the floating-point numbers whose bits these are; zeros of both signs are one."""
    wide = bits.astype(np.int64)
    lowest = int(np.iinfo(bits.dtype).min)
    return np.where(wide < 0, lowest - wide, wide)


def _plain(item: Any) -> Any:
    """Return an element as a Python object, for reports."""
    if isinstance(item, (bool, np.bool_)):
        return bool(item)
    if isinstance(item, np.integer):
        return int(item)
    if isinstance(item, str) or np.iscomplexobj(item):
        return str(item)
    value = float(item)
    return value if math.isfinite(value) else str(value)


def _kind(value: OnnxValue) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    return f"a {type(value).__name__} of {len(value)}" if isinstance(value, (list, tuple, dict)) else type(value).__name__
