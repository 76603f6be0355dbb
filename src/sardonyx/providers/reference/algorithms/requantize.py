"""Steps that the quantizing operators share: subtracting zero points, and rounding scaled values to a narrow type."""

from __future__ import annotations

import functools

import numpy as np

from sardonyx.dtypes import Array, DataType, bit_width, is_integer, is_signed
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.cast_float import convert_narrow
from sardonyx.providers.reference.algorithms.precision import quiet

__all__ = ["center", "integer_limits", "requantize", "round_to"]


def center(x: Array, zero_point: Array | None, name: str, axis: int | None) -> Array:
    """Subtract zero_point from x, both of 8 bits, into int16; it is a scalar or, where `axis` is given, one per index.

    Raises:
        InvalidArgument: a zero point called `name` of another length.
    """
    if zero_point is None:
        return x.astype(np.int16)
    if zero_point.size == 1:
        return np.asarray(x.astype(np.int16) - zero_point.astype(np.int16).reshape(()))
    if axis is None or zero_point.shape != (x.shape[axis],):
        expected = "a scalar" if axis is None else f"a scalar or ({x.shape[axis]},)"
        raise InvalidArgument(f"{name} has shape {zero_point.shape} for a tensor of shape {x.shape}, expected {expected}")
    shape = [1] * x.ndim
    shape[axis] = -1
    return np.asarray(x.astype(np.int16) - zero_point.astype(np.int16).reshape(shape))


@quiet
def requantize(total: Array, a_scale: Array, b_scale: Array, y_scale: Array, y_zero_point: Array) -> Array:
    """Scale int32 or float32 sums by a_scale * b_scale / y_scale in float32 and round them to y_zero_point's type."""
    if y_scale.size != 1 or y_zero_point.size != 1:
        raise InvalidArgument(
            f"y_scale has shape {y_scale.shape} and y_zero_point has shape {y_zero_point.shape}, expected scalars"
        )
    factor = a_scale.astype(np.float32) * b_scale.astype(np.float32) / y_scale.astype(np.float32).reshape(())
    y = total.astype(np.float32)
    y *= factor
    return round_to(y, y_zero_point.reshape(()), y_zero_point.dtype, saturate=True)


def round_to(y: Array, zero_point: Array | None, dtype: np.dtype[np.generic], *, saturate: bool) -> Array:
    """Round the float32 array y, overwritten, to `dtype` after adding zero_point, which broadcasts with it.

    Integers round to nearest, ties to even, before the zero point is added, and saturate; floats round once, after it, and
    saturate if asked to. NaN becomes the smallest integer.
    """
    kind = DataType.from_numpy(dtype)
    if not is_integer(kind):
        if zero_point is not None:
            y += zero_point.astype(y.dtype)
        return convert_narrow(y, kind, saturate=saturate, round_mode="up")
    low, high = integer_limits(dtype)
    np.rint(y, out=y)
    if zero_point is not None:
        y += zero_point.astype(y.dtype)
    np.clip(y, low, high, out=y)
    missing = np.isnan(y)
    if missing.any():
        y[missing] = low
    if dtype.kind in "iu":
        return y.astype(dtype)
    return y.astype(np.int8 if low < 0 else np.uint8).astype(dtype)


@functools.cache
def integer_limits(dtype: np.dtype[np.generic]) -> tuple[int, int]:
    """Return the smallest and largest number of an integer type, sub-byte types included."""
    kind = DataType.from_numpy(dtype)
    if not is_integer(kind):
        raise InvalidArgument(f"numbers of type {kind}; expected integers")
    bits = bit_width(kind)
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if is_signed(kind) else (0, (1 << bits) - 1)
