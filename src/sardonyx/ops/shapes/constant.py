"""Constants and what makes them of shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sardonyx.dtypes import DataType, is_float, is_integer
from sardonyx.errors import InvalidGraph
from sardonyx.ir import Dim, SparseTensor, Tensor
from sardonyx.ir.shape import anonymous, ceil_div, maximum
from sardonyx.ops.fact import MAX_VALUE_SIZE, Fact, ShapeCall, known, shape_function, tensor
from sardonyx.ops.shapes.axes import size_of, unknown_shape
from sardonyx.ops.shapes.elements import dims_of, from_dims
from sardonyx.ops.views.element_type import element_type

__all__: list[str] = []


@shape_function("Identity")
def identity(call: ShapeCall, x: Fact) -> Fact:
    """Return the fact of the input, of any type."""
    return x


@shape_function("Constant")
def constant(
    call: ShapeCall,
    *,
    value: Tensor | None = None,
    sparse_value: SparseTensor | None = None,
    value_float: float | None = None,
    value_floats: Sequence[float] | None = None,
    value_int: int | None = None,
    value_ints: Sequence[int] | None = None,
    value_string: str | None = None,
    value_strings: Sequence[str] | None = None,
) -> Fact:
    """Return the output that the one attribute states."""
    if value is not None:
        if value.size > MAX_VALUE_SIZE:
            return tensor(value.dtype, value.shape)
        return known(value.dtype, value.numpy())
    if sparse_value is not None:
        return tensor(sparse_value.values.dtype, sparse_value.shape)
    alternatives = (
        (DataType.FLOAT, value_float if value_floats is None else value_floats),
        (DataType.INT64, value_int if value_ints is None else value_ints),
        (DataType.STRING, value_string if value_strings is None else value_strings),
    )
    for dtype, item in alternatives:
        if item is not None:
            return known(dtype, np.array(item, dtype.numpy))
    raise InvalidGraph("no attribute gives the value; give one of value, value_int, value_ints, value_float … to the Constant")


@shape_function("Shape")
def shape_of(call: ShapeCall, x: Fact, *, start: int = 0, end: int | None = None) -> Fact:
    """Return the dimensions from `start` to `end`, clamped to the rank."""
    if x.shape is None:
        return tensor(DataType.INT64, (anonymous(),))
    return known(DataType.INT64, from_dims(x.shape[start:end]))


@shape_function("Size")
def size(call: ShapeCall, x: Fact) -> Fact:
    """Return the product of the dimensions, a scalar."""
    if x.shape is None:
        return tensor(DataType.INT64, ())
    return known(DataType.INT64, from_dims([size_of(x.shape)]).reshape(()))


@shape_function("ConstantOfShape")
def constant_of_shape(call: ShapeCall, shape: Fact, *, value: Tensor | None = None) -> Fact:
    """Take the shape from the input and the element from the attribute, 0.0 by default."""
    dtype = DataType.FLOAT if value is None else value.dtype
    if value is not None and value.size != 1:
        raise InvalidGraph(f"attribute 'value' has {value.size} elements, expected one")
    dims = dims_of(shape)
    if dims is None:
        rank = shape.shape[0] if shape.shape else None
        return tensor(dtype, unknown_shape(rank) if isinstance(rank, int) else None)
    found = tuple(anonymous() if dim is None else dim for dim in dims)
    if any(isinstance(dim, int) and dim < 0 for dim in found):
        raise InvalidGraph(f"the shape [{', '.join(map(str, found))}] has a negative dimension")
    sizes = [dim for dim in found if isinstance(dim, int)]
    if len(sizes) < len(found) or math.prod(sizes) > MAX_VALUE_SIZE:
        return tensor(dtype, found)
    element = np.zeros((), dtype.numpy) if value is None else value.numpy().reshape(-1)[:1]
    return known(dtype, np.broadcast_to(element, sizes) if len(sizes) else element.reshape(()))


@shape_function("EyeLike")
def eye_like(call: ShapeCall, x: Fact, *, dtype: int | None = None) -> Fact:
    """Give the output the input's shape, of the type `dtype` or else the input's."""
    return tensor(x.dtype if dtype is None else element_type(dtype, "dtype"), x.shape)


@shape_function("Range")
def range_(call: ShapeCall, start: Fact, limit: Fact, delta: Fact) -> Fact:
    """Return a vector of max(ceil((limit - start) / delta), 0) elements."""
    return range_fact(start, limit, delta)


def range_fact(start: Fact, limit: Fact, delta: Fact) -> Fact:
    """Return what is known of Range."""
    dtype = start.dtype if start.dtype is not None else limit.dtype if limit.dtype is not None else delta.dtype
    constants = [fact.constant for fact in (start, limit, delta)]
    if all(item is not None for item in constants):
        first, last, step = (item.reshape(-1)[0].item() for item in constants if item is not None)
        if step == 0:
            raise InvalidGraph("delta is 0, expected a step that leads from start to limit")
        is_exact = isinstance(first, int) and isinstance(last, int) and isinstance(step, int)
        count = max(-((first - last) // step) if is_exact else math.ceil((last - first) / step), 0)
        if count > MAX_VALUE_SIZE or dtype is None or not is_integer(dtype):
            return tensor(dtype, (count,))
        return known(dtype, np.array([first + place * step for place in range(count)], dtype.numpy))
    return tensor(dtype, (_range_count(start, limit, delta, dtype),))


def _range_count(start: Fact, limit: Fact, delta: Fact, dtype: DataType | None) -> Dim:
    ends = [dims_of(fact) for fact in (start, limit, delta)]
    if dtype is None or is_float(dtype) or None in ends:
        return anonymous()
    first, last, step = (None if end is None else end[0] for end in ends)
    if first is None or last is None or not isinstance(step, int) or step == 0:
        return anonymous()
    extent = last - first if step > 0 else first - last
    return maximum(ceil_div(extent, abs(step)), 0)
