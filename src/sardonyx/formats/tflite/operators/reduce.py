"""Reductions along axes, places of extremes, and running sums."""

from __future__ import annotations

from sardonyx.dtypes import DataType
from sardonyx.formats.tflite.computed import to_last
from sardonyx.formats.tflite.operator import Operator, imports

__all__ = ["arg_extreme", "cumsum", "reduce"]

_REDUCTIONS = {
    "MEAN": "ReduceMean",
    "SUM": "ReduceSum",
    "REDUCE_MAX": "ReduceMax",
    "REDUCE_MIN": "ReduceMin",
    "REDUCE_PROD": "ReduceProd",
}

_NARROW = (DataType.INT8, DataType.UINT8, DataType.INT16)
"""Integers whose sums and products, where they have no scale, are cut to their own bits."""


@imports(*_REDUCTIONS)
def reduce(op: Operator) -> None:
    """Reduce axes to one element each, which stays as a dimension where `keep_dims` says so."""
    keeps = int(op.options("ReducerOptions").flag("keep_dims"))
    axes, name = op.axes(1), _REDUCTIONS[op.code]
    if op.code in ("REDUCE_MAX", "REDUCE_MIN") and op.info(0).same_scale(op.output(0)):
        value = op.raw(0)
        wide = op.info(0).dtype is DataType.INT16
        value = op.build.cast(value, DataType.INT32) if wide else value
        value = op.build.node(name, value, axes, keepdims=keeps, noop_with_empty_axes=1)
        op.put_raw(0, op.build.cast(value, DataType.INT16) if wide else value)
        return
    if op.code in ("SUM", "REDUCE_PROD") and op.info(0).dtype in _NARROW and not op.is_real():
        value = op.build.node(name, op.build.cast(op.raw(0), DataType.INT32), axes, keepdims=keeps, noop_with_empty_axes=1)
        op.put_raw(0, op.build.cast(value, op.info(0).dtype))
        return
    if op.is_real() or op.code != "MEAN":
        op.put(0, op.build.node(name, op.real(0), axes, keepdims=keeps, noop_with_empty_axes=1))
        return
    wide_value = op.build.cast(op.raw(0), DataType.DOUBLE)
    mean = op.build.node(name, wide_value, axes, keepdims=keeps, noop_with_empty_axes=1)
    op.put_raw(0, op.build.cast(mean, op.output(0).dtype))


@imports("REDUCE_ALL", "REDUCE_ANY")
def reduce_logical(op: Operator) -> None:
    """Reduce axes of truth values to whether all, or any, are true."""
    keeps = int(op.options("ReducerOptions").flag("keep_dims"))
    name = "ReduceMin" if op.code == "REDUCE_ALL" else "ReduceMax"
    value = op.build.node(name, op.build.cast(op.raw(0), DataType.INT32), op.axes(1), keepdims=keeps, noop_with_empty_axes=1)
    op.put_raw(0, op.build.cast(value, DataType.BOOL))


@imports("ARG_MAX", "ARG_MIN")
def arg_extreme(op: Operator) -> None:
    """Compute the place of the greatest or the least element along an axis, the first where there are several."""
    value, rank, axis = op.raw(0), op.rank(0), -1
    if op.maybe_constant(1) is None:
        value = to_last(op.build, value, op.shape(1), rank)
    else:
        axis = op.number(1)
    if not -rank <= axis < rank:
        op.refuse(f"axis {axis} is none of a tensor of rank {rank}")
    if op.info(0).dtype in (DataType.BOOL, DataType.INT16):
        value = op.build.cast(value, DataType.INT32)
    name = "ArgMax" if op.code == "ARG_MAX" else "ArgMin"
    value = op.build.node(name, value, axis=axis, keepdims=0)
    op.put_raw(0, value if op.output(0).dtype is DataType.INT64 else op.build.cast(value, op.output(0).dtype))


@imports("CUMSUM")
def cumsum(op: Operator) -> None:
    """Compute running sums along an axis."""
    options = op.options("CumsumOptions")
    axis = op.build.reshape(op.raw(1), ())
    value = op.build.node("CumSum", op.raw(0), axis, exclusive=int(options.flag("exclusive")), reverse=int(options.flag("reverse")))
    op.put_raw(0, value)
