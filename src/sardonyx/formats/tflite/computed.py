"""Nodes for operators whose axes, orders or amounts only the run shows, where ONNX has them as attributes or not at all.

Ranks are known. Axes are moved to the end and back by orders that are computed; an order that is computed gathers elements by their
places in memory.
"""

from __future__ import annotations

import itertools

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.formats.tflite.builder import GraphBuilder
from sardonyx.ir import Value

__all__ = ["dilated", "from_last", "mirrored", "replaced", "to_batch", "to_last", "to_space", "transposed"]


def _number(build: GraphBuilder, number: int) -> Value:
    return build.constant(np.int64(number))


def _at(build: GraphBuilder, numbers: Value, place: int) -> Value:
    """Return one of a list of numbers as a scalar."""
    return build.node("Gather", numbers, _number(build, place))


def _range(build: GraphBuilder, begin: Value, end: Value) -> Value:
    return build.node("Range", begin, end, _number(build, 1))


def _positive(build: GraphBuilder, axes: Value, rank: int) -> Value:
    """Return axes counted from the first one."""
    return build.node("Where", build.node("Less", axes, build.ints(0)), build.node("Add", axes, build.ints(rank)), axes)


def transposed(build: GraphBuilder, value: Value, order: Value, rank: int) -> Value:
    """Return a tensor with its axes in another order.

    Args:
        build: the graph.
        value: the tensor.
        order: int64[rank], of which axes below 0 count from the last one.
        rank: how many axes there are.
    """
    if not rank:
        return value
    order, sizes = _positive(build, order, rank), build.node("Shape", value)
    behind = [build.node("Slice", sizes, build.ints(axis + 1), build.ints(rank)) for axis in range(rank)]
    strides = build.node("Concat", *(build.node("ReduceProd", numbers, build.ints(0)) for numbers in behind), axis=0)
    counts, steps = (build.node("Gather", numbers, order) for numbers in (sizes, strides))
    places: Value | None = None
    for axis in range(rank):
        along = build.node("Mul", _range(build, _number(build, 0), _at(build, counts, axis)), _at(build, steps, axis))
        along = build.reshape(along, (-1, *[1] * (rank - 1 - axis)))
        places = along if places is None else build.node("Add", places, along)
    return build.node("Gather", build.reshape(value, (-1,)), places)


def to_last(build: GraphBuilder, value: Value, axis: Value, rank: int) -> Value:
    """Return a tensor with one axis, an int64[1], behind all others."""
    axis = _positive(build, axis, rank)
    others = build.ints(*range(rank - 1))
    is_behind = build.cast(build.node("GreaterOrEqual", others, axis), DataType.INT64)
    return transposed(build, value, build.node("Concat", build.node("Add", others, is_behind), axis, axis=0), rank)


def from_last(build: GraphBuilder, value: Value, axis: Value, rank: int) -> Value:
    """Return a tensor with its last axis in the place `axis`, an int64[1]: what `to_last` began with."""
    axis = _positive(build, axis, rank)
    places = build.ints(*range(rank))
    is_behind = build.cast(build.node("Greater", places, axis), DataType.INT64)
    order = build.node("Where", build.node("Equal", places, axis), build.ints(rank - 1), build.node("Sub", places, is_behind))
    return transposed(build, value, order, rank)


def mirrored(build: GraphBuilder, value: Value, pads: Value, rank: int) -> Value:
    """Return a tensor with its mirror image around it, borders included; `pads` is int64[rank, 2]: before and behind each axis."""
    for axis in range(rank):
        around = _at(build, pads, axis)
        before, behind = _at(build, around, 0), _at(build, around, 1)
        size = _at(build, build.node("Shape", value), axis)
        places = _range(build, build.node("Neg", before), build.node("Add", size, behind))
        ahead = build.node("Sub", _number(build, -1), places)
        back = build.node("Add", build.node("Add", size, size), ahead)
        places = build.node("Where", build.node("GreaterOrEqual", places, size), back, build.node("Max", places, ahead))
        value = build.node("Gather", value, places, axis=axis)
    return value


def dilated(build: GraphBuilder, value: Value, steps: Value, fill: Value, rank: int) -> Value:
    """Return a tensor whose elements lie `steps`, int64[rank], apart along each axis, with `fill`, a scalar, between them."""
    for axis in range(rank):
        step, size = _at(build, steps, axis), _at(build, build.node("Shape", value), axis)
        last = build.node("Mul", build.node("Sub", size, _number(build, 1)), step)
        length = build.node("Max", build.node("Add", last, _number(build, 1)), _number(build, 0))
        places = _range(build, _number(build, 0), length)
        is_element = build.node("Equal", build.node("Mod", places, step), _number(build, 0))
        sources = build.node("Where", is_element, build.node("Div", places, step), size)
        behind = [0] * rank + [int(place == axis) for place in range(rank)]
        value = build.node("Gather", build.node("Pad", value, build.ints(*behind), fill), sources, axis=axis)
    return value


def replaced(build: GraphBuilder, value: Value, part: Value, start: Value) -> Value:
    """Return a tensor a part of which is another one, of the same rank: from `start` on, moved such that all of it is within.

    A part that is larger does not go with the tensor, which is an error of the run.
    """
    sizes, inner = build.node("Shape", value), build.node("Shape", part)
    room = build.node("Sub", sizes, inner)
    none = build.ints(0)
    before = build.node("Max", build.node("Min", start, room), none)
    around = build.node("Concat", before, build.node("Max", build.node("Sub", room, before), none), axis=0)
    everywhere = build.node("Expand", build.constant(np.array([1], np.int8)), inner)
    is_part = build.cast(build.node("Pad", everywhere, around), DataType.BOOL)
    return build.node("Where", is_part, build.node("Pad", part, around), value)


def to_batch(build: GraphBuilder, value: Value, blocks: Value, pads: Value, fill: Value, rank: int, count: int) -> Value:
    """Return a tensor, padded with `fill` along the axes behind the first one, blocks of which are moved into the first one.

    Args:
        build: the graph.
        value: the tensor.
        blocks: int64[count].
        pads: int64[count, 2], before and behind each axis.
        fill: a scalar.
        rank: of the tensor.
        count: how many axes are cut.
    """
    none = build.ints(*[0] * (rank - count - 1))
    around = [part for side in (0, 1) for part in (build.ints(0), _side(build, pads, side), none)]
    value = build.node("Pad", value, build.node("Concat", *around, axis=0), fill)
    batch, sizes, rest = _sizes(build, value, count, rank)
    cells = build.node("Div", sizes, blocks)
    pairs = build.node("Concat", *(build.node("Unsqueeze", numbers, build.ints(1)) for numbers in (cells, blocks)), axis=1)
    value = _reshaped(build, value, batch, build.reshape(pairs, (-1,)), rest)
    order = [*range(2, 2 * count + 1, 2), 0, *range(1, 2 * count, 2), *range(2 * count + 1, rank + count)]
    return _reshaped(build, build.transpose(value, order), build.node("Mul", batch, _product(build, blocks)), cells, rest)


def to_space(build: GraphBuilder, value: Value, blocks: Value, crops: Value, rank: int, count: int) -> Value:
    """Return a tensor, blocks of whose first axis are moved into those behind it, which are cropped; arguments as in `to_batch`."""
    batch, sizes, rest = _sizes(build, value, count, rank)
    batch, made = build.node("Div", batch, _product(build, blocks)), build.node("Mul", sizes, blocks)
    order = [count, *(place for axis in range(count) for place in (count + 1 + axis, axis)), *range(2 * count + 1, rank + count)]
    value = build.transpose(_reshaped(build, value, blocks, batch, sizes, rest), order)
    ends = build.node("Sub", made, _side(build, crops, 1))
    return build.node(
        "Slice", _reshaped(build, value, batch, made, rest), _side(build, crops, 0), ends, build.ints(*range(1, count + 1))
    )


def _side(build: GraphBuilder, pads: Value, side: int) -> Value:
    return build.node("Gather", pads, _number(build, side), axis=1)


def _product(build: GraphBuilder, numbers: Value) -> Value:
    return build.node("ReduceProd", numbers, build.ints(0))


def _sizes(build: GraphBuilder, value: Value, count: int, rank: int) -> tuple[Value, Value, Value]:
    """Return the size of the first axis, those of `count` axes behind it, and the rest, as lists."""
    sizes, ends = build.node("Shape", value), (0, 1, count + 1, rank)
    batch, cut, rest = (build.node("Slice", sizes, build.ints(a), build.ints(b)) for a, b in itertools.pairwise(ends))
    return batch, cut, rest


def _reshaped(build: GraphBuilder, value: Value, *sizes: Value) -> Value:
    return build.node("Reshape", value, build.node("Concat", *sizes, axis=0), allowzero=1)
