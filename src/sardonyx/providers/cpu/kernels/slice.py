"""Operators that cut tensors apart and join them: copies of regions, or no copy where elements lie densely already."""

from __future__ import annotations

from collections.abc import Mapping

from sardonyx.ir import Dim, Node, Value
from sardonyx.ir.shape import maximum, minimum, product
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.lowering import Lowering, lowers
from sardonyx.providers.cpu.operands import axis_of, check_moved, constant_of, ints_of, shape_of
from sardonyx.providers.cpu.steps import Buffer
from sardonyx.providers.cpu.strided import Region, copy_region, dense_strides


def _check_concat(node: Node) -> str | None:
    if any(value is None for value in node.inputs):
        return "an input is left out"
    return check_moved(node)


@lowers("Concat", check=_check_concat)
def concat(low: Lowering, group: Group) -> None:
    """Copy each input to its place in the result; one that steps of this partition make is made there, if it is dense there."""
    node = group.anchor
    result = low.result(node.output)
    axis = axis_of(node, 1, len(result.shape))
    inner = product(result.shape[axis + 1 :])
    offset: Dim = 0
    for value in node.inputs:
        part = low.of(value)
        length = part.shape[axis] * inner
        outer = product(part.shape[:axis])
        if outer == 1 and _is_made_here(low, part):
            part.base, part.offset = result, offset
        else:
            place = Buffer(result.dtype, part.shape, base=result, offset=offset)
            copy_region(low, "Concat", part, place, [Region(outer, length, result.shape[axis] * inner), Region(length, 1, 1)])
        offset = offset + length


def _is_made_here(low: Lowering, buffer: Buffer) -> bool:
    """Whether steps of this partition write the buffer, which has memory of its own so far."""
    return buffer.base is None and any(step.buffers[place].root is buffer for step in low.steps for place in step.writes)


def _check_split(node: Node) -> str | None:
    data = node.inputs[0]
    if data is None or data.shape is None:
        return "its shape is not known"
    axis = axis_of(node, 0, len(data.shape))
    total: Dim = 0
    for value in node.outputs:
        total = total + shape_of(value)[axis]
    if total != data.shape[axis]:
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
    copy_region(low, "Split", place, low.result(value), [Region(outer, row, length), Region(length, 1, 1)])


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
    steps = [1] * len(starts) if given_steps is None else [int(step) for step in given_steps.ravel()]
    places = list(range(len(starts))) if axes is None else [axis % len(data.shape) for axis in axes]
    if not len(starts) == len(steps) == len(places) or 0 in steps:
        return "its starts, axes and steps do not fit"
    found: dict[int, tuple[Dim, int]] = {}
    for place, start, step in zip(places, starts, steps, strict=True):
        first = _first(data.shape[place], start, step)
        if first is None:
            return "a negative step on an axis whose size is not known"
        found[place] = first, step
    return found


def _first(size: Dim, start: int, step: int) -> Dim | None:
    """The first element taken from an axis of `size`, inside it if any element is taken; None where symbols cannot tell."""
    if step > 0:
        return minimum(start, size) if start >= 0 else maximum(size + start, 0)
    if not isinstance(size, int):
        return size - 1 if start == -1 else None
    return max(min(start + size if start < 0 else start, size - 1), 0)


def _check_slice(node: Node) -> str | None:
    found = _slices_of(node)
    return found if isinstance(found, str) else check_moved(node)


@lowers("Slice", check=_check_slice)
def slice_(low: Lowering, group: Group) -> None:
    """Copy the part, or let it lie where it is if its elements are dense there."""
    node = group.anchor
    data, found = low.of(node.inputs[0]), _slices_of(node)
    if isinstance(found, str):
        raise TypeError(found)
    shape, strides, taken = data.shape, dense_strides(data.shape), shape_of(node.output)
    offset: Dim = 0
    for axis, (first, _) in found.items():
        offset = offset + first * strides[axis]
    steps = [found[axis][1] if axis in found else 1 for axis in range(len(shape))]
    cut = [axis for axis in range(len(shape)) if taken[axis] != shape[axis] or steps[axis] != 1]
    if all(step == 1 for step in steps) and (not cut or product(shape[: cut[-1]]) == 1 or product(taken[: cut[-1]]) == 1):
        low.view(node.output, data, offset)
        return
    place = Buffer(data.dtype, shape, data.constant, data, offset)
    sources = [stride * step for stride, step in zip(strides, steps, strict=True)]
    region = [Region(*dim) for dim in zip(taken, sources, dense_strides(taken), strict=True)]
    copy_region(low, "Slice", place, low.result(node.output), region)
