"""Operators of sardonyx.tflite on numbers: angles, bits, complex numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from sardonyx.dtypes import Array, DataType
from sardonyx.errors import InvalidArgument
from sardonyx.ops.schemas_tflite import DOMAIN
from sardonyx.providers.reference.registry import Call, kernel

__all__ = [
    "atan2",
    "bitcast",
    "complex_abs",
    "complex_add",
    "complex_cast",
    "complex_imag",
    "complex_mul",
    "complex_real",
    "complex_sub",
    "rfft_2d",
]

_MOST_LENGTH = 1 << 20


@kernel("Atan2", domain=DOMAIN)
def atan2(call: Call, y: Array, x: Array) -> Array:
    """Compute the angle of the point (x, y), broadcast. Source: TensorFlow Lite ATAN2."""
    if y.dtype.kind != "f" or x.dtype != y.dtype:
        raise InvalidArgument(f"y is {y.dtype} and x {x.dtype}; expected floats of one type")
    return np.arctan2(y, x)


@kernel("Bitcast", domain=DOMAIN)
def bitcast(call: Call, x: Array, *, to: int) -> Array:
    """Read the bits of x as another type: a last axis comes, or goes, where elements become smaller, or larger.

    Source: TensorFlow Lite BITCAST.
    """
    target = _type_of(to)
    data = np.ascontiguousarray(x).reshape(x.shape)
    if target.itemsize == x.dtype.itemsize:
        return data.view(target)
    if target.itemsize < x.dtype.itemsize:
        return data.reshape(-1).view(target).reshape(*x.shape, x.dtype.itemsize // target.itemsize)
    if not x.shape or x.shape[-1] * x.dtype.itemsize != target.itemsize:
        raise InvalidArgument(f"x has shape {x.shape} of {x.dtype}; its last axis must fill one {target}")
    return data.reshape(-1).view(target).reshape(x.shape[:-1])


@kernel("ComplexAbs", domain=DOMAIN)
def complex_abs(call: Call, x: Array) -> Array:
    """Compute the absolute values of complex numbers. Source: TensorFlow Lite COMPLEX_ABS."""
    return np.abs(x)


@kernel("ComplexReal", domain=DOMAIN)
def complex_real(call: Call, x: Array) -> Array:
    """Return the real parts of complex numbers. Source: TensorFlow Lite REAL."""
    return np.ascontiguousarray(x.real)


@kernel("ComplexImag", domain=DOMAIN)
def complex_imag(call: Call, x: Array) -> Array:
    """Return the imaginary parts of complex numbers. Source: TensorFlow Lite IMAG."""
    return np.ascontiguousarray(x.imag)


@kernel("ComplexCast", domain=DOMAIN)
def complex_cast(call: Call, x: Array, *, to: int) -> Array:
    """Convert to or from complex numbers; the imaginary part goes. Source: TensorFlow Lite CAST."""
    target = _type_of(to)
    return (x.real if x.dtype.kind == "c" and target.kind != "c" else x).astype(target)


def _type_of(to: int) -> np.dtype[Any]:
    """Return the type that a number of the standard stands for; raises InvalidArgument for none that NumPy's elements have."""
    try:
        return DataType(to).numpy
    except (KeyError, ValueError) as error:
        raise InvalidArgument(f"to is {to}, which is the number of no element type") from error


@kernel("ComplexAdd", domain=DOMAIN)
def complex_add(call: Call, a: Array, b: Array) -> Array:
    """Add complex numbers, broadcast. Source: TensorFlow Lite ADD."""
    return np.add(a, b)


@kernel("ComplexSub", domain=DOMAIN)
def complex_sub(call: Call, a: Array, b: Array) -> Array:
    """Subtract complex numbers, broadcast. Source: TensorFlow Lite SUB."""
    return np.subtract(a, b)


@kernel("ComplexMul", domain=DOMAIN)
def complex_mul(call: Call, a: Array, b: Array) -> Array:
    """Multiply complex numbers, broadcast. Source: TensorFlow Lite MUL."""
    return np.multiply(a, b)


@kernel("Rfft2d", domain=DOMAIN)
def rfft_2d(call: Call, x: Array, lengths: Array) -> Array:
    """Compute the Fourier transform of real images (…, H, W), cut or padded with zeros to two lengths, in the last two axes.

    Source: TensorFlow Lite RFFT2D, which gives the half spectrum (…, lengths[0], lengths[1] // 2 + 1) in complex64.
    """
    if lengths.size != 2 or lengths.dtype.kind not in "iu" or x.dtype.kind != "f":
        raise InvalidArgument(
            f"lengths are {lengths.dtype}{list(lengths.shape)} for x of {x.dtype}; expected two integers, and floats"
        )
    height, width = (int(length) for length in lengths.reshape(-1))
    if not (1 <= height <= _MOST_LENGTH and 1 <= width <= _MOST_LENGTH) or x.ndim < 2:
        raise InvalidArgument(
            f"lengths are {height} and {width} for x of shape {x.shape}; expected 1 to {_MOST_LENGTH} and two axes"
        )
    return np.fft.rfft2(x, (height, width)).astype(np.complex64)
