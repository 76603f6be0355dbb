"""Operators of StableHLO that the runtimes of TensorFlow Lite have kernels for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.formats.tflite.operator import Operator, imports
from sardonyx.ir import Value

__all__ = ["arithmetic", "pad", "padded"]

_ARITHMETIC = {
    "STABLEHLO_ADD": "Add",
    "STABLEHLO_MAXIMUM": "Max",
    "STABLEHLO_MINIMUM": "Min",
    "STABLEHLO_MULTIPLY": "Mul",
}


@imports(*_ARITHMETIC)
def arithmetic(op: Operator) -> None:
    """Compute arithmetic of two tensors of one shape."""
    op.put(0, op.build.node(_ARITHMETIC[op.code], op.real(0), op.real(1)))


@imports("STABLEHLO_AND")
def logical_and(op: Operator) -> None:
    """Compute the and of truth values, or of integers bit by bit."""
    name = "And" if op.info(0).dtype is DataType.BOOL else "BitwiseAnd"
    op.put_raw(0, op.build.node(name, op.raw(0), op.raw(1)))


@imports("STABLEHLO_SHIFT_LEFT")
def shift_left(op: Operator) -> None:
    """Shift integers to the left; 0 where all bits go."""
    build, dtype = op.build, op.info(0).dtype
    bits = dtype.numpy.itemsize * 8
    shifts = build.cast(op.raw(1), DataType.INT64)
    inside = build.node("Less", shifts, build.constant(np.int64(bits)))
    kept = build.node("Where", inside, shifts, build.constant(np.int64(0)))
    wide = build.cast(build.cast(op.raw(0), DataType.INT64), DataType.UINT64)
    moved = build.node("BitShift", wide, build.cast(kept, DataType.UINT64), direction="LEFT")
    value = build.cast(build.cast(moved, DataType.INT64), dtype)
    op.put_raw(0, build.node("Where", inside, value, build.constant(np.zeros((), dtype.numpy))))


@imports("STABLEHLO_PAD")
def pad(op: Operator) -> None:
    """Put elements of a number around a tensor and between its elements; fewer than none cut it."""
    options, build, info = op.table.union("builtin_options_2"), op.build, op.info(0)
    if options is None or options.name != "StablehloPadOptions" or -1 in info.signature:
        op.unsupported("it needs its options, and sizes that are known when the model is read")
    lows, highs, inner = (options.numbers(name).tolist() for name in ("edge_padding_low", "edge_padding_high", "interior_padding"))
    if not len(lows) == len(highs) == len(inner) == info.rank or min(inner, default=0) < 0:
        op.refuse(f"paddings {lows}, {highs} and {inner} do not go with a tensor of rank {info.rank}")
    op.put_raw(0, padded(op, op.raw(0), info.shape, build.reshape(op.raw(1), ()), (lows, highs, inner)))


def padded(op: Operator, value: Value, shape: Sequence[int], fill: Value, paddings: Sequence[Sequence[int]]) -> Value:
    """Return a tensor with a number put before, behind and between its elements along each axis; fewer than none cut it."""
    build, (lows, highs, inner), sizes = op.build, paddings, list(shape)
    for axis, between in enumerate(inner):
        if between == 0 or sizes[axis] < 2:
            continue
        value = build.reshape(value, [*sizes[: axis + 1], 1, *sizes[axis + 1 :]])
        rank = len(sizes) + 1
        behind = [0] * rank + [between if place == axis + 1 else 0 for place in range(rank)]
        value = build.node("Pad", value, build.ints(*behind), fill)
        length = (sizes[axis] - 1) * (between + 1) + 1
        sizes[axis] *= between + 1
        value = build.node("Slice", build.reshape(value, sizes), build.ints(0), build.ints(length), build.ints(axis))
        sizes[axis] = length
    around = [max(low, 0) for low in lows] + [max(high, 0) for high in highs]
    value = build.node("Pad", value, build.ints(*around), fill)
    starts = [max(-low, 0) for low in lows]
    ends = [max(low, 0) + size + high for size, low, high in zip(sizes, lows, highs, strict=True)]
    return build.node("Slice", value, build.ints(*starts), build.ints(*ends), build.ints(*range(len(sizes))))
