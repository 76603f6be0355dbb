"""Operators that cut tensors apart and join them: copies of regions, or no copy where elements lie densely already."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from sardonyx.codegen.emit.types import Type
from sardonyx.codegen.kernels.pad import MODES, PadDim, PadParams, write_pad
from sardonyx.codegen.kernels.triangle import write_triangle
from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Dim, Node, Shape, Value
from sardonyx.ir.shape import maximum, minimum, product
from sardonyx.ops.schema import place_of
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.lowering import Lowering, lowers
from sardonyx.providers.cpu.operands import axis_of, check_moved, constant_of, given, ints_of, shape_of
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer, Step
from sardonyx.providers.cpu.strided import TASK_ELEMENTS, Region, copy_region, dense_strides, moved_type


def _moved(node: Node) -> Type:
    kind = moved_type(node.output.dtype)
    if kind is None:
        raise TypeError("the check lets only types that kernels move through")
    return kind


def _check_concat(node: Node) -> str | None:
    if any(value is None for value in node.inputs):
        return "an input is left out"
    return check_moved(node)


@lowers("Concat", check=_check_concat)
def concat(low: Lowering, group: Group) -> None:
    """Copy each input to its place in the result; one that steps of this partition make is made there, if they can."""
    node = group.anchor
    result = low.result(node.output)
    axis = axis_of(node, 1, len(result.shape))
    inner = product(result.shape[axis + 1 :])
    offset: Dim = 0
    for value in node.inputs:
        part = low.of(value)
        length = part.shape[axis] * inner
        outer = product(part.shape[:axis])
        pairs = zip(_without(part.shape, axis), _without(result.shape, axis), strict=True)
        unequal = [(have, want) for have, want in pairs if have != want]
        if outer == 1 and not unequal and _is_made_here(low, part):
            part.base, part.offset = result, offset
        elif axis == len(result.shape) - 1 and not unequal and _may_be_pitched(low, value, part):
            part.base, part.offset, part.pitch = result, offset, result.shape[-1]
        else:
            place = Buffer(result.dtype, part.shape, base=result, offset=offset)
            source, strides = _origin(low, value)
            region = [Region(*dim) for dim in zip(part.shape, strides, dense_strides(result.shape), strict=True)]
            copy_region(low, "Concat", source, place, region, node)
        if unequal:
            low.steps[-1] = _checked(low.steps[-1], unequal, place_of(node))
        offset = offset + length


def _without(shape: Shape, axis: int) -> Shape:
    return shape[:axis] + shape[axis + 1 :]


def _checked(step: Step, unequal: Sequence[tuple[Dim, Dim]], where: str) -> Step:
    """The step, which asks when sizes are known whether dimensions are equal that need not be."""

    def plan(sizes: Sizes) -> tuple[Sequence[int], int]:
        for size, wanted in ((sizes(left), sizes(right)) for left, right in unequal):
            if size != wanted:
                raise InvalidArgument(
                    f"{where}: an input has a dimension of {size} where another has {wanted}; "
                    "all but the axis that they are joined along must agree"
                )
        return step.plan(sizes)

    return dataclasses.replace(step, plan=plan)


def _is_made_here(low: Lowering, buffer: Buffer) -> bool:
    """Whether steps of this partition write the buffer, which has memory of its own so far."""
    return buffer.base is None and any(step.buffers[place].root is buffer for step in low.steps for place in step.writes)


def _may_be_pitched(low: Lowering, value: Value | None, part: Buffer) -> bool:
    """Whether the rows of the buffer may lie apart: those who write it can do that, and only the one who asks reads it."""
    writers = [step for step in low.steps if any(step.buffers[place] is part for place in step.writes)]
    users = {step for step in low.steps if any(buffer.root is part for buffer in step.buffers)}
    return (
        part.base is None
        and given(value).use_count == 1
        and bool(writers)
        and users == set(writers)
        and all(step.pitched and step.buffers[step.writes[0]] is part for step in writers)
    )


def _origin(low: Lowering, value: Value | None) -> tuple[Buffer, list[Dim]]:
    """Where elements lie, and their strides: what Split or Slice takes for this reader alone is read where it was."""
    part = low.of(value)
    producer = given(value).producer
    if producer is None or producer.domain or given(value).use_count != 1 or not _is_made_here(low, part):
        return part, dense_strides(part.shape)
    if producer.op_type == "Split":
        data = low.of(producer.inputs[0])
        before = [shape_of(other) for other in producer.outputs[: given(value).index]]
        axis = axis_of(producer, 0, len(data.shape))
        return _part_of(data, {axis: (_total(before, axis), 1)})
    if producer.op_type == "Slice":
        return _part_of(low.of(producer.inputs[0]), _known_slices(producer))
    return part, dense_strides(part.shape)


def _total(shapes: Sequence[Shape], axis: int) -> Dim:
    total: Dim = 0
    for shape in shapes:
        total = total + shape[axis]
    return total


def _part_of(data: Buffer, found: Mapping[int, tuple[Dim, int]]) -> tuple[Buffer, list[Dim]]:
    """The elements of `data` from the first ones on, axis by axis, and the strides of the part."""
    strides = dense_strides(data.shape)
    offset: Dim = 0
    for axis, (first, step) in found.items():
        offset = offset + first * strides[axis]
        strides[axis] = strides[axis] * step
    return Buffer(data.dtype, data.shape, data.constant, data, offset), strides


def _check_split(node: Node) -> str | None:
    data = node.inputs[0]
    if data is None or data.shape is None:
        return "its shape is not known"
    axis = axis_of(node, 0, len(data.shape))
    if _total([shape_of(value) for value in node.outputs], axis) != data.shape[axis]:
        return "the sizes of its parts are not known"
    return check_moved(node)


@lowers("Split", check=_check_split)
def split(low: Lowering, group: Group) -> None:
    """Copy each part, or let it lie where it is if nothing lies between its elements."""
    node = group.anchor
    data = low.of(node.inputs[0])
    axis = axis_of(node, 0, len(data.shape))
    inner = product(data.shape[axis + 1 :])
    offset: Dim = 0
    for value in node.outputs:
        length = shape_of(value)[axis] * inner
        _take(low, data, value, axis, offset, length, data.shape[axis] * inner)
        offset = offset + length


def _take(low: Lowering, data: Buffer, value: Value, axis: int, offset: Dim, length: Dim, row: Dim) -> None:
    """Make `value` of the elements [offset, offset + length) of each row of `data`, which has `row` elements."""
    outer = product(data.shape[:axis])
    if outer == 1:
        low.view(value, data, offset)
        return
    place = Buffer(data.dtype, data.shape, data.constant, data, offset)
    copy_region(low, "Split", place, low.result(value), [Region(outer, row, length), Region(length, 1, 1)], value.producer)


def _slices_of(node: Node) -> Mapping[int, tuple[Dim, int]] | str:
    """Axis -> (first element, step), or why it is not known; the shape of the output says how many there are."""
    data = node.inputs[0]
    if data is None or data.shape is None:
        return "its shape is not known"
    if any(value is not None and value.constant is None for value in (node.input(1), node.input(3), node.input(4))):
        return "starts, axes or steps are computed"
    starts, axes = ints_of(node, 1, "starts"), ints_of(node, 3, "axes")
    given_steps = constant_of(node.input(4))
    if starts is None:
        return "it has no starts"
    ends = ints_of(node, 2, "ends") or [_FAR] * len(starts)
    steps = [1] * len(starts) if given_steps is None else [int(step) for step in given_steps.ravel()]
    places = list(range(len(starts))) if axes is None else [axis % len(data.shape) for axis in axes]
    if not len(starts) == len(steps) == len(set(places)) == len(places) or 0 in steps or len(ends) != len(starts):
        return "its starts, ends, axes and steps do not fit"
    found: dict[int, tuple[Dim, int]] = {}
    for place, start, end, step in zip(places, starts, ends, steps, strict=True):
        if step < 0 and end >= _FAR:
            return "a negative step to an end that is computed or far"
        first = _first(data.shape[place], start, step)
        if first is None:
            return "a negative step from a place that is outside the axis, or depends on its size"
        found[place] = first, step
    return found


_FAR = 2**31 - 1
"""An end from which on engines differ in what it means to a negative step."""


def _first(size: Dim, start: int, step: int) -> Dim | None:
    """The first element taken from an axis of `size`, inside it if any element is taken; None where that cannot be told."""
    if step > 0:
        return minimum(start, size) if start >= 0 else maximum(size + start, 0)
    if not isinstance(size, int):
        return size - 1 if start == -1 else None
    if start < -size:
        return None
    return max(min(start + size if start < 0 else start, size - 1), 0)


def _check_slice(node: Node) -> str | None:
    found = _slices_of(node)
    return found if isinstance(found, str) else check_moved(node)


@lowers("Slice", check=_check_slice)
def slice_(low: Lowering, group: Group) -> None:
    """Copy the part, or let it lie where it is if its elements are dense there."""
    node = group.anchor
    data, found, taken = low.of(node.inputs[0]), _known_slices(node), shape_of(node.output)
    part, strides = _part_of(data, found)
    shape, moves = data.shape, [step != 1 for _, step in found.values()]
    cut = [axis for axis in range(len(shape)) if taken[axis] != shape[axis]]
    if not any(moves) and (not cut or product(shape[: cut[-1]]) == 1 or product(taken[: cut[-1]]) == 1):
        low.view(node.output, data, part.offset)
        return
    region = [Region(*dim) for dim in zip(taken, strides, dense_strides(taken), strict=True)]
    copy_region(low, "Slice", part, low.result(node.output), region, node)


def _known_slices(node: Node) -> Mapping[int, tuple[Dim, int]]:
    found = _slices_of(node)
    if isinstance(found, str):
        raise TypeError(found)
    return found


def _pads_of(node: Node) -> list[tuple[int, int]] | None:
    """For each axis how much it grows before and after; None where that is computed or does not fit."""
    rank = len(shape_of(node.inputs[0]))
    pads, axes = ints_of(node, 1, "pads"), ints_of(node, 3, "axes")
    if pads is None or (axes is None and node.input(3) is not None):
        return None
    places = list(range(rank)) if axes is None else [axis % max(rank, 1) for axis in axes]
    if len(pads) != 2 * len(places) or len(set(places)) < len(places):
        return None
    found = [(0, 0)] * rank
    for number, place in enumerate(places):
        found[place] = pads[number], pads[number + len(places)]
    return found


def _check_pad(node: Node) -> str | None:
    reason = check_moved(node)
    if reason is not None:
        return reason
    pads = _pads_of(node)
    if pads is None or node.version < 2:
        return "its pads or axes are computed"
    if node.get("mode", "constant") not in MODES:
        return f"mode {node.get('mode')}"
    number = node.input(2)
    if number is not None and (number.shape is None or product(number.shape) != 1 or number.dtype is not node.output.dtype):
        return "its constant is not one element of its type"
    crops = [dim for dim, pair in zip(shape_of(node.inputs[0]), pads, strict=True) if min(pair) < 0]
    return None if all(isinstance(dim, int) for dim in crops) else "it crops an axis whose size is not known"


@lowers("Pad", check=_check_pad)
def pad(low: Lowering, group: Group) -> None:
    """Write rows of the result: what lies before, the source, and what lies behind."""
    node = group.anchor
    pads, mode, kind = _pads_of(node), node.get("mode", "constant"), _moved(node)
    if pads is None:
        raise TypeError("the check lets only constant pads through")
    data, result, number = low.of(node.inputs[0]), low.result(node.output), node.input(2)
    value = low.constant(np.full(1, node.get("value", 0.0)).astype(data.dtype.numpy)) if number is None else low.of(number)
    symbol = low.kernel(f"pad_{kind.size_bytes}_{mode}_{low.target.isa}", lambda module, name: write_pad(module, name, kind, mode))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        dims = [PadDim.of(sizes(dim), *pair) for dim, pair in zip(data.shape, pads, strict=True)]
        if mode != "constant" and any(dim.out and not dim.length for dim in dims):
            raise InvalidArgument(f"Pad: in mode {mode!r} nothing is left to repeat of an axis of {sizes.shape(data.shape)}")
        if tuple(dim.out for dim in dims) != sizes.shape(result.shape):
            raise InvalidArgument(f"Pad: pads {pads} do not make {sizes.shape(result.shape)} of {sizes.shape(data.shape)}")
        params = PadParams.over(dims, mode, TASK_ELEMENTS)
        return params.words(), params.tasks()

    low.step(group, symbol, [data, value, result], writes=[2], plan=plan)


def _check_trilu(node: Node) -> str | None:
    data, k = node.inputs[0], node.input(1)
    if data is None or data.shape is None or len(data.shape) < 2:
        return "its input is no matrix"
    if k is not None and (k.dtype is not DataType.INT64 or product(k.shape or ()) != 1):
        return "its diagonal is not one int64"
    return check_moved(node)


@lowers("Trilu", check=_check_trilu)
def trilu(low: Lowering, group: Group) -> None:
    """Copy one part of each row and clear the other."""
    node = group.anchor
    data, kind, upper = low.of(node.inputs[0]), _moved(node), bool(node.get("upper", 1))
    result, k = low.result(node.output), node.input(1)
    diagonal = low.constant(np.zeros(1, np.int64)) if k is None else low.of(k)
    symbol = f"triangle_{kind.size_bytes}_{'upper' if upper else 'lower'}_{low.target.isa}"
    low.kernel(symbol, lambda module, name: write_triangle(module, name, kind, upper=upper))
    *batch, height, width = data.shape

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        rows, columns = sizes.product((*batch, height)), sizes(width)
        block = max(TASK_ELEMENTS // max(columns, 1), 1)
        return [rows, sizes(height), columns, block], -(-rows // block)

    low.step(group, symbol, [data, diagonal, result], writes=[2], plan=plan, in_place=[0])
