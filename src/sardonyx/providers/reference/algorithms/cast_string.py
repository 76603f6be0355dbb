"""Numbers from strings and strings from numbers, as ONNX Cast-9 describes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sardonyx.cancellation import checked
from sardonyx.dtypes import Array, DataType, is_float
from sardonyx.errors import InvalidArgument

__all__ = ["parse_strings", "print_numbers"]


def parse_strings(texts: Array, wanted: DataType) -> Array:
    """Return the numbers that `texts` spell: float64 for a floating-point type, else int64 or uint64, of the same shape.

    Plain and scientific notation, and INF, +INF, -INF and NaN in any case. A fraction is cut off for an integer; one that
    does not fit 64 bits keeps the low ones.
    """
    if is_float(wanted):
        return _each(texts, _parse_float, np.float64)
    if wanted is DataType.BOOL:
        return _each(texts, lambda text: _parse_int(text) != 0, np.bool_)
    mask = (1 << 64) - 1
    bits = _each(texts, lambda text: _parse_int(text) & mask, np.uint64)
    return bits if wanted is DataType.UINT64 else bits.astype(np.int64)


def _each(texts: Array, parse: Callable[[str], object], dtype: type[np.generic]) -> Array:
    return np.fromiter((parse(text) for text in checked(texts.flat)), dtype, texts.size).reshape(texts.shape)


def _parse_float(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise InvalidArgument(f"cannot cast {text!r} to a number; expected a text such as '1.5', '1e-5' or 'INF'") from error


def _parse_int(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        number = _parse_float(text)
    if not np.isfinite(number):
        raise InvalidArgument(f"cannot cast {text!r} to an integer; expected a finite number")
    return int(number)


def print_numbers(x: Array, dtype: np.dtype[np.generic]) -> Array:
    """Return the elements of `x` as strings.

    Floats with the fewest digits that tell apart the values of `dtype`, where they came from.

    Types that NumPy lacks get the digits of float32. Plain notation without an exponent (314.15926), no decimal point for
    whole numbers, INF, -INF and NaN by these names, booleans as 1 and 0.
    """
    if x.dtype.kind == "f":
        texts = [_print_float(value) for value in checked(x.astype(_printable(dtype)).flat)]
    else:
        texts = [str(int(value)) for value in checked(x.flat)]
    result = np.empty(len(texts), object)
    result[:] = texts
    return result.reshape(x.shape)


def _printable(dtype: np.dtype[np.generic]) -> np.dtype[np.generic]:
    """Return the type of NumPy's own whose shortest digits serve `dtype`."""
    return dtype if dtype in (np.float16, np.float32, np.float64) else np.dtype(np.float32)


def _print_float(value: Any) -> str:
    if np.isnan(value):
        return "NaN"
    if np.isinf(value):
        return "INF" if value > 0 else "-INF"
    return np.format_float_positional(value, unique=True, trim="-")
