"""Reductions along axes, and running sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.ir import Dim
from sardonyx.ir.shape import maximum, minimum
from sardonyx.ops.fact import Fact, ShapeCall, known, shape_function, tensor
from sardonyx.ops.shapes.axes import normalize_axes, normalize_axis, replace_dim, unknown_shape
from sardonyx.ops.shapes.elements import from_dims, ints_of

__all__: list[str] = []

_WITH_AXES_INPUT_SINCE_18 = (
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSumSquare",
)


@shape_function("ReduceSum", since=13)
@shape_function(*_WITH_AXES_INPUT_SINCE_18, since=18)
def reduce(call: ShapeCall, x: Fact, axes: Fact | None = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Fact:
    """The axes that the second input names, or all, are dropped or become 1."""
    places = () if axes is None else ints_of(axes)
    if places is None:
        return tensor(x.dtype, unknown_shape(len(x.shape)) if keepdims and x.shape is not None else None)
    if not places and noop_with_empty_axes:
        return (
            x if call.op_type in ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceMean") else tensor(x.dtype, x.shape)
        )
    return _reduce(call.op_type, x, places, keepdims)


@shape_function("ReduceSum", *_WITH_AXES_INPUT_SINCE_18)
def reduce_with_attribute(call: ShapeCall, x: Fact, *, axes: Sequence[int] = (), keepdims: int = 1) -> Fact:
    """The same, with the axes as an attribute."""
    return _reduce(call.op_type, x, axes, keepdims)


def _reduce(op_type: str, x: Fact, axes: Sequence[int], keepdims: int) -> Fact:
    if x.shape is None:
        return tensor(x.dtype)
    rank = len(x.shape)
    places = set(normalize_axes(axes, rank)) if axes else set(range(rank))
    function = _VALUES.get(op_type)
    if function is not None and rank == 1 and places == {0} and x.value is not None and x.dtype in (DataType.INT64, DataType.INT32):
        total = function(x.value.tolist())
        if total is not None:
            return known(x.dtype, from_dims([total], x.dtype).reshape((1,) if keepdims else ()))
    if keepdims:
        return tensor(x.dtype, tuple([1 if axis in places else dim for axis, dim in enumerate(x.shape)]))
    return tensor(x.dtype, tuple([dim for axis, dim in enumerate(x.shape) if axis not in places]))


def _folder(function: Callable[[Any, Any], Dim], start: int | None) -> Callable[[list[Any]], Dim | None]:
    """A fold over elements that gives None where one is unknown, or where there is none to begin with."""

    def fold(elements: list[Any]) -> Dim | None:
        if None in elements or (not elements and start is None):
            return None
        result = elements[0] if start is None else start
        for item in elements[1 if start is None else 0 :]:
            result = function(result, item)
        return result

    return fold


_VALUES = {
    "ReduceMax": _folder(maximum, None),
    "ReduceMin": _folder(minimum, None),
    "ReduceProd": _folder(lambda left, right: left * right, 1),
    "ReduceSum": _folder(lambda left, right: left + right, 0),
}


@shape_function("ArgMax", "ArgMin")
def arg(call: ShapeCall, x: Fact, *, axis: int = 0, keepdims: int = 1) -> Fact:
    """The axis is dropped or becomes 1; the output is int64."""
    if x.shape is None:
        return tensor(DataType.INT64)
    place = normalize_axis(axis, len(x.shape))
    return tensor(DataType.INT64, replace_dim(x.shape, place, 1) if keepdims else x.shape[:place] + x.shape[place + 1 :])


@shape_function("CumProd", "CumSum")
def cumulative(call: ShapeCall, x: Fact, axis: Fact, *, exclusive: int = 0, reverse: int = 0) -> Fact:
    """The output is as the input."""
    if call.op_type == "CumSum" and x.constant is not None and x.constant.ndim == 1 and not exclusive and not reverse:
        return known(x.dtype, np.cumsum(x.constant, dtype=x.constant.dtype))
    return tensor(x.dtype, x.shape)
