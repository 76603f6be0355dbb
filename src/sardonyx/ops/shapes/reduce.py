"""Reductions along axes, and running sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.ir import Dim
from sardonyx.ir.shape import maximum, minimum
from sardonyx.ops.fact import Fact, ShapeCall, known, shape_function, tensor
from sardonyx.ops.shapes.axes import replace_dim, unknown_shape
from sardonyx.ops.shapes.elements import from_dims
from sardonyx.ops.views.inputs import COMPUTED, elements
from sardonyx.ops.views.reduce import REDUCTIONS, ArgExtreme, Cumulative, Reduce

__all__: list[str] = []

_KEEPS_ELEMENTS = ("ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum")
"""What is the identity over no axes."""


@shape_function(*REDUCTIONS)
def reduce(call: ShapeCall, x: Fact, axes: Fact | None = None) -> Fact:
    """Drop, or reduce to 1, the axes that the attribute or the second input names, or all."""
    view = Reduce.of(call, elements(x, axes))
    if view.axes is COMPUTED:
        return tensor(x.dtype, unknown_shape(len(x.shape)) if view.keeps_axes and x.shape is not None else None)
    if not view.axes and view.keeps_all:
        return x if call.op_type in _KEEPS_ELEMENTS else tensor(x.dtype, x.shape)
    places = None if x.shape is None else view.places(len(x.shape))
    return tensor(x.dtype) if places is None else _reduce(call.op_type, x, places, view.keeps_axes)


def _reduce(op_type: str, x: Fact, places: Sequence[int], keepdims: bool) -> Fact:
    shape = x.shape or ()
    function = _VALUES.get(op_type)
    if (
        function is not None
        and len(shape) == 1
        and list(places) == [0]
        and x.value is not None
        and x.dtype in (DataType.INT64, DataType.INT32)
    ):
        total = function(x.value.tolist())
        if total is not None:
            return known(x.dtype, from_dims([total], x.dtype).reshape((1,) if keepdims else ()))
    if keepdims:
        return tensor(x.dtype, tuple([1 if axis in places else dim for axis, dim in enumerate(shape)]))
    return tensor(x.dtype, tuple([dim for axis, dim in enumerate(shape) if axis not in places]))


def _folder(function: Callable[[Any, Any], Dim], start: int | None) -> Callable[[list[object]], Dim | None]:
    """Return a fold over elements that gives None where one is unknown, or where there is none to begin with."""

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
def arg(call: ShapeCall, x: Fact) -> Fact:
    """Drop the axis or reduce it to 1; the output is int64."""
    view = ArgExtreme.of(call)
    if x.shape is None:
        return tensor(DataType.INT64)
    place = view.place(len(x.shape))
    return tensor(DataType.INT64, replace_dim(x.shape, place, 1) if view.keeps_axis else x.shape[:place] + x.shape[place + 1 :])


@shape_function("CumProd", "CumSum")
def cumulative(call: ShapeCall, x: Fact, axis: Fact) -> Fact:
    """Give the output the shape and type of the input."""
    is_plain = Cumulative.of(call) == Cumulative(is_exclusive=False, is_reversed=False)
    if call.op_type == "CumSum" and is_plain and x.constant is not None and x.constant.ndim == 1:
        return known(x.dtype, np.cumsum(x.constant, dtype=x.constant.dtype))
    return tensor(x.dtype, x.shape)
