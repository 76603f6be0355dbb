"""Operators that change shapes and orders, repeat elements, and make constants."""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.formats.tflite.computed import transposed
from sardonyx.formats.tflite.operator import Operator, imports
from sardonyx.ir import Value

__all__ = ["reshape", "transpose"]


@imports("RESHAPE")
def reshape(op: Operator) -> None:
    """Give the elements another shape, from the second input or the options, of which one size may be -1."""
    if op.has(1):
        given = op.maybe_constant(1)
        shape = op.shape(1)
    else:
        given = op.options("ReshapeOptions").numbers("new_shape")
        shape = op.build.ints(*given.tolist())
    if given is not None and given.reshape(-1).tolist() == [0] and np.size(given) == 1 and op.output(0).rank == 0:
        shape = op.build.ints()
    has_zero = given is not None and 0 in given and op.output(0).rank > 0
    op.through(lambda value: op.build.node("Reshape", value, shape, allowzero=1 if has_zero else None), 1)


@imports("SQUEEZE")
def squeeze(op: Operator) -> None:
    """Drop axes of size 1: those of the options, or all."""
    axes = op.options("SqueezeOptions").numbers("squeeze_dims").tolist()
    op.through(lambda value: op.build.node("Squeeze", value, op.build.ints(*axes) if axes else None), 1)


@imports("EXPAND_DIMS")
def expand_dims(op: Operator) -> None:
    """Insert an axis of size 1, whose place counts in the result."""
    axis = op.axes(1)
    op.through(lambda value: op.build.node("Unsqueeze", value, axis), 1)


@imports("TRANSPOSE")
def transpose(op: Operator) -> None:
    """Reorder the axes."""
    given = op.maybe_constant(1)
    if given is None:
        op.through(lambda value: transposed(op.build, value, op.shape(1), op.rank(0)), 1)
        return
    order = given.reshape(-1).tolist()
    rank = len(order)
    if sorted(axis % max(rank, 1) for axis in order) != list(range(rank)) or any(not -rank <= axis < rank for axis in order):
        op.refuse(f"{order} is no order of {rank} axes")
    op.through(lambda value: op.build.transpose(value, [axis % rank for axis in order]), 1)


@imports("SHAPE")
def shape(op: Operator) -> None:
    """Compute the sizes of a tensor."""
    value = op.build.node("Shape", op.raw(0))
    op.put_raw(0, value if op.output(0).dtype is DataType.INT64 else op.build.cast(value, op.output(0).dtype))


@imports("RANK")
def rank(op: Operator) -> None:
    """Compute how many dimensions a tensor has."""
    value = op.build.node("Size", op.build.node("Shape", op.raw(0)))
    op.put_raw(0, op.build.cast(value, op.output(0).dtype))


@imports("BROADCAST_TO")
def broadcast_to(op: Operator) -> None:
    """Repeat axes of size 1 until a tensor has a shape."""
    op.through(lambda value: op.build.node("Expand", value, op.shape(1)), 1)


@imports("BROADCAST_ARGS")
def broadcast_args(op: Operator) -> None:
    """Compute the shape to which tensors of two shapes are broadcast."""
    zero = op.build.constant(np.zeros((1,), np.float32))
    left, right = (op.build.node("Expand", zero, op.shape(index)) for index in (0, 1))
    value = op.build.node("Shape", op.build.node("Add", left, right))
    count = max(op.info(0).shape[0] if op.rank(0) else 0, op.info(1).shape[0] if op.rank(1) else 0)
    if count == 0:
        value = op.build.node("Slice", value, op.build.ints(0), op.build.ints(0))
    op.put_raw(0, op.build.cast(value, op.output(0).dtype))


@imports("TILE")
def tile(op: Operator) -> None:
    """Repeat a tensor along each axis."""
    op.through(lambda value: op.build.node("Tile", value, op.shape(1)), 1)


@imports("PACK")
def pack(op: Operator) -> None:
    """Put tensors of one shape beside one another along a new axis."""
    axis = op.options("PackOptions").integer("axis")

    def stack(*values: Value) -> Value:
        return op.build.node("Concat", *(op.build.node("Unsqueeze", value, op.build.ints(axis)) for value in values), axis=axis)

    op.through(stack, len(op.inputs))


@imports("UNPACK")
def unpack(op: Operator) -> None:
    """Cut a tensor into one for each index of an axis, which goes."""
    axis, rank = op.options("UnpackOptions").integer("axis"), op.rank(0)
    if not -rank <= axis < rank or not op.outputs:
        op.refuse(f"axis {axis} is none of a tensor of rank {rank}")
    value = op.raw(0)
    parts = op.build.nodes("Split", value, outputs=len(op.outputs), axis=axis, num_outputs=len(op.outputs))
    for index, part in enumerate(parts):
        op.put_raw(index, op.build.node("Squeeze", part, op.build.ints(axis)))


@imports("SPACE_TO_DEPTH", "DEPTH_TO_SPACE")
def blocks(op: Operator) -> None:
    """Move blocks of pixels into channels, or back; a block's pixels lie row by row, each with all its channels."""
    name = "SpaceToDepth" if op.code == "SPACE_TO_DEPTH" else "DepthToSpace"
    size = op.options(f"{name}Options").integer("block_size")
    if size < 1 or op.rank(0) != 4:
        op.refuse(f"a block of {size} pixels does not go with a tensor of rank {op.rank(0)}")
    op.put_raw(0, op.build.last(op.build.node(name, op.build.first(op.raw(0), 4), blocksize=size), 4))


@imports("FILL")
def fill(op: Operator) -> None:
    """Make a tensor of a shape, all elements of which are one number."""
    value = op.build.reshape(op.raw(1), ())
    op.put_raw(0, op.build.node("Expand", value, op.shape(0)))


@imports("ZEROS_LIKE")
def zeros_like(op: Operator) -> None:
    """Make a tensor of zeros of the same shape."""
    zero = op.build.constant(np.zeros((), op.output(0).dtype.numpy))
    op.put_raw(0, op.build.node("Expand", zero, op.build.node("Shape", op.raw(0))))


@imports("RANGE")
def range_(op: Operator) -> None:
    """Count from the first input to the second, which is not reached, by the third."""
    op.put_raw(0, op.build.node("Range", *(op.build.reshape(op.raw(index), ()) for index in range(3))))
