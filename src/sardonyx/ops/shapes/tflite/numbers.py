"""Operators of sardonyx.tflite on numbers: angles, bits, complex numbers."""

from __future__ import annotations

from sardonyx.dtypes import DataType, bit_width
from sardonyx.ir.shape import anonymous
from sardonyx.ops.fact import Fact, ShapeCall, shape_function, tensor
from sardonyx.ops.schemas_tflite import DOMAIN
from sardonyx.ops.shapes.broadcast import broadcast

__all__: list[str] = []

_PARTS = {DataType.COMPLEX64: DataType.FLOAT, DataType.COMPLEX128: DataType.DOUBLE}


@shape_function("Atan2", domain=DOMAIN)
@shape_function("ComplexAdd", domain=DOMAIN)
@shape_function("ComplexMul", domain=DOMAIN)
@shape_function("ComplexSub", domain=DOMAIN)
def broadcast_two(call: ShapeCall, left: Fact, right: Fact) -> Fact:
    """Infer the shape to which both are broadcast."""
    return tensor(left.dtype, broadcast((left.shape, right.shape)))


@shape_function("ComplexAbs", domain=DOMAIN)
@shape_function("ComplexImag", domain=DOMAIN)
@shape_function("ComplexReal", domain=DOMAIN)
def part(call: ShapeCall, x: Fact) -> Fact:
    """Infer real numbers of the same shape."""
    return tensor(None if x.dtype is None else _PARTS.get(x.dtype, x.dtype), x.shape)


@shape_function("ComplexCast", domain=DOMAIN)
def complex_cast(call: ShapeCall, x: Fact, *, to: int) -> Fact:
    """Infer another type."""
    return tensor(DataType(to), x.shape)


@shape_function("Bitcast", domain=DOMAIN)
def bitcast(call: ShapeCall, x: Fact, *, to: int) -> Fact:
    """Infer another type, with one axis more or less where the elements become smaller or larger."""
    target = DataType(to)
    if x.dtype is None or x.shape is None:
        return tensor(target)
    before, after = bit_width(x.dtype), bit_width(target)
    if after < before:
        return tensor(target, (*x.shape, before // after))
    return tensor(target, x.shape[:-1] if after > before else x.shape)


@shape_function("Rfft2d", domain=DOMAIN)
def rfft_2d(call: ShapeCall, x: Fact, lengths: Fact) -> Fact:
    """Infer (…, H, W) -> (…, lengths[0], lengths[1] // 2 + 1)."""
    if x.shape is None or len(x.shape) < 2:
        return tensor(DataType.COMPLEX64)
    sizes = (anonymous(), anonymous())
    if lengths.value is not None and all(isinstance(size, int) for size in lengths.value.reshape(-1).tolist()):
        height, width = lengths.value.reshape(-1).tolist()
        return tensor(DataType.COMPLEX64, (*x.shape[:-2], height, width // 2 + 1))
    return tensor(DataType.COMPLEX64, (*x.shape[:-2], *sizes))
