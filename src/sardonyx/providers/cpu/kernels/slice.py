"""Transpose, Concat, Split, Slice, Expand: copies of regions, or views where the elements lie densely already."""

from __future__ import annotations

from sardonyx.ir import Dim, Expr, Node, Shape, Value
from sardonyx.ir.shape import product
from sardonyx.providers.cpu.expressions import element_type
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.kernels.elementwise import can_broadcast
from sardonyx.providers.cpu.lowering import Lowering, lowers
from sardonyx.providers.cpu.steps import Buffer
from sardonyx.providers.cpu.strided import Region, copy_region, dense_strides


def _check_types(node: Node) -> str | None:
    for value in node.outputs:
        if element_type(value.dtype) is None:
            return f"elements of type {value.dtype}"
    return None


def _given(value: Value | None) -> Value:
    if value is None:
        raise ValueError("the check lets no node without this input through")
    return value


def _shape(value: Value | None) -> Shape:
    shape = _given(value).shape
    if shape is None:
        raise ValueError("the check lets only values of known rank through")
    return shape


@lowers("Transpose", check=_check_types)
def transpose(low: Lowering, group: Group) -> None:
    """Copy in the order of the result; a permutation that moves only dimensions of size 1 is a view."""
    node = group.anchor
    source = low.of(node.inputs[0])
    permutation = node.get("perm") or tuple(reversed(range(len(source.shape))))
    if [axis for axis in permutation if source.shape[axis] != 1] == sorted(axis for axis in permutation if source.shape[axis] != 1):
        low.view(node.output, source)
        return
    result = low.result(node.output)
    strides, targets = dense_strides(source.shape), dense_strides(result.shape)
    region = [Region(source.shape[axis], strides[axis], target) for axis, target in zip(permutation, targets, strict=True)]
    copy_region(low, "Transpose", source, result, region)


def _check_concat(node: Node) -> str | None:
    if any(value is None for value in node.inputs):
        return "an input is left out"
    return _check_types(node)


@lowers("Concat", check=_check_concat)
def concat(low: Lowering, group: Group) -> None:
    """Copy each input to its place in the result."""
    node = group.anchor
    result = low.result(node.output)
    axis = node.get("axis") % len(result.shape)
    inner = product(result.shape[axis + 1 :])
    offset: Dim = 0
    for value in node.inputs:
        part = low.of(value)
        length = part.shape[axis] * inner
        place = Buffer(result.dtype, part.shape, base=result, offset=offset)
        region = [Region(product(part.shape[:axis]), length, result.shape[axis] * inner), Region(length, 1, 1)]
        copy_region(low, "Concat", part, place, region)
        offset = offset + length


def _check_split(node: Node) -> str | None:
    data = node.inputs[0]
    if data is None or data.shape is None:
        return "its shape is not known"
    axis = node.get("axis", 0) % max(len(data.shape), 1)
    pieces = [value.shape[axis] for value in node.outputs if value.shape is not None]
    total: Dim = 0
    for size in pieces:
        total = total + size
    if total != data.shape[axis]:
        return "the sizes of its parts are not known"
    return _check_types(node)


@lowers("Split", check=_check_split)
def split(low: Lowering, group: Group) -> None:
    """Copy each part, or let it lie where it is if nothing lies between its elements."""
    node = group.anchor
    data = low.of(node.inputs[0])
    axis = node.get("axis", 0) % len(data.shape)
    inner = product(data.shape[axis + 1 :])
    offset: Dim = 0
    for value in node.outputs:
        length = _shape(value)[axis] * inner
        _take(low, "Split", data, value, axis, offset, length, data.shape[axis] * inner)
        offset = offset + length


def _take(low: Lowering, name: str, data: Buffer, value: Value, axis: int, offset: Dim, length: Dim, row: Dim) -> None:
    """Make `value` of the elements [offset, offset + length) of each row of `data`, which has `row` elements."""
    outer = product(data.shape[:axis])
    if outer == 1:
        low.view(value, data, offset)
        return
    place = Buffer(data.dtype, data.shape, data.constant, data, offset)
    copy_region(low, name, place, low.result(value), [Region(outer, row, length), Region(length, 1, 1)])


def _slice_of(node: Node) -> dict[int, tuple[int, int]] | str:
    """Axis -> (start, step) as far as constants say, or why it is not known."""
    data = node.inputs[0]
    if data is None or data.shape is None:
        return "its shape is not known"
    if node.version < 10:
        return "Slice before version 10"
    given = [node.input(index) for index in (1, 3, 4)]
    if any(value is not None and value.constant is None for value in given):
        return "starts, axes or steps are computed"
    starts, axes, steps = ([] if value is None or value.constant is None else value.constant.numpy().ravel().tolist() for value in given)
    places = [axis % len(data.shape) for axis in axes] or range(len(starts))
    return dict(zip(places, zip(starts, steps or [1] * len(starts), strict=True), strict=True))


def _check_slice(node: Node) -> str | None:
    found = _slice_of(node)
    if isinstance(found, str):
        return found
    shape, result = _shape(node.inputs[0]), _shape(node.output)
    for axis, (start, step) in found.items():
        whole = isinstance(shape[axis], int)
        if step < 1 or (not whole and (start < 0 or step != 1)):
            return "a negative step, or a start that depends on sizes"
        if not whole and start and _may_begin_behind(shape[axis], result[axis], start):
            return "whether it begins inside the axis depends on sizes"
    return _check_types(node)


def _may_begin_behind(size: Dim, taken: Dim, start: int) -> bool:
    return isinstance(taken, Expr) and size - taken != start


@lowers("Slice", check=_check_slice)
def slice_(low: Lowering, group: Group) -> None:
    """Copy the part, or let it lie where it is if its elements are dense there."""
    node = group.anchor
    data, found = low.of(node.inputs[0]), _slice_of(node)
    if isinstance(found, str):
        raise TypeError(found)
    shape, strides, result_shape = data.shape, dense_strides(data.shape), _shape(node.output)
    offset: Dim = 0
    for axis, (start, _) in found.items():
        offset = offset + _first(shape[axis], start) * strides[axis]
    steps = [found.get(axis, (0, 1))[1] for axis in range(len(shape))]
    cut = [axis for axis in range(len(shape)) if result_shape[axis] != shape[axis] or steps[axis] != 1]
    if all(step == 1 for step in steps) and (not cut or product(shape[: cut[-1]]) == 1 or product(result_shape[: cut[-1]]) == 1):
        low.view(node.output, data, offset)
        return
    place = Buffer(data.dtype, shape, data.constant, data, offset)
    result = low.result(node.output)
    targets = dense_strides(result_shape)
    region = [Region(size, stride * step, target) for size, stride, step, target in zip(result_shape, strides, steps, targets, strict=True)]
    copy_region(low, "Slice", place, result, region)


def _first(size: Dim, start: int) -> int:
    if not isinstance(size, int):
        return start
    return min(max(start + size if start < 0 else start, 0), size)


def _check_expand(node: Node) -> str | None:
    data = node.inputs[0]
    if data is None or not can_broadcast(node.output.shape, data.shape):
        return "how it is broadcast depends on sizes"
    if any(isinstance(dim, Expr) and dim != wide for dim, wide in zip(reversed(data.shape or ()), reversed(node.output.shape or ()), strict=False)):
        return "how it is broadcast depends on sizes"
    return _check_types(node)


@lowers("Expand", check=_check_expand)
def expand(low: Lowering, group: Group) -> None:
    """Repeat along the dimensions that are 1; without any it is a view."""
    node = group.anchor
    source, shape = low.of(node.inputs[0]), _shape(node.output)
    if product(source.shape) == product(shape):
        low.view(node.output, source)
        return
    padded = (1,) * (len(shape) - len(source.shape)) + tuple(source.shape)
    strides, targets = dense_strides(padded), dense_strides(shape)
    region = [
        Region(size, 0 if own == 1 else stride, target)
        for size, own, stride, target in zip(shape, padded, strides, targets, strict=True)
    ]
    copy_region(low, "Expand", source, low.result(node.output), region)
