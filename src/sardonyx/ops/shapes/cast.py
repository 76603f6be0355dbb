"""Casts."""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import Array, DataType, bit_width, is_float, is_integer
from sardonyx.ir import Expr
from sardonyx.ops.fact import Fact, ShapeCall, known, shape_function, tensor
from sardonyx.ops.shapes.axes import replace_dim
from sardonyx.ops.views.cast import Cast
from sardonyx.ops.views.element_type import element_type

__all__: list[str] = []


@shape_function("Cast")
def cast(call: ShapeCall, x: Fact) -> Fact:
    """Return the fact of the input in the type `to`; known elements are converted."""
    return _cast(x, Cast.of(call).target)


@shape_function("CastLike")
def cast_like(call: ShapeCall, x: Fact, like: Fact) -> Fact:
    """Give the output the shape of the first input and the type of the second."""
    return _cast(x, like.dtype)


@shape_function("BitCast")
def bit_cast(call: ShapeCall, x: Fact, *, to: int = 0) -> Fact:
    """Reinterpret the bits as another type; the last dimension takes up the difference in width."""
    target = element_type(to, "to")
    if x.shape is None or x.dtype is None:
        return tensor(target)
    before, after = bit_width(x.dtype), bit_width(target)
    if before == after or not x.shape:
        return tensor(target, x.shape)
    return tensor(target, replace_dim(x.shape, len(x.shape) - 1, x.shape[-1] * before // after))


def _cast(x: Fact, target: DataType | None) -> Fact:
    value = None if x.value is None or target is None else _converted(x, x.value, target)
    return tensor(target, x.shape) if value is None else known(target, value)


def _converted(x: Fact, value: Array, target: DataType) -> Array | None:
    if DataType.STRING in (x.dtype, target):
        return value if x.dtype is target else None
    if value.dtype != object:
        return _numeric(value, target)
    if not (is_float(target) or is_integer(target)):
        return None
    elements = [item if isinstance(item, (int, Expr)) and not isinstance(item, bool) else None for item in value.ravel().tolist()]
    converted = np.empty(len(elements), object)
    converted[:] = elements
    return converted.reshape(value.shape)


def _numeric(value: Array, target: DataType) -> Array | None:
    """Return the elements converted; None where a float may not fit an integer, whose result is up to the machine."""
    if is_integer(target) and value.dtype.kind not in "iub" and not np.all(np.abs(value.astype(np.float64)) < 2.0**31):
        return None
    if target not in _PLAIN:
        return None
    with np.errstate(all="ignore"):
        return value.astype(target.numpy)


_PLAIN = {
    DataType.FLOAT,
    DataType.DOUBLE,
    DataType.FLOAT16,
    DataType.INT64,
    DataType.INT32,
    DataType.INT16,
    DataType.INT8,
    DataType.UINT64,
    DataType.UINT32,
    DataType.UINT16,
    DataType.UINT8,
    DataType.BOOL,
}
