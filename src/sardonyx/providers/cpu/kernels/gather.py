"""Operators that read from, or write to, places which another tensor names; every index is checked before it is used."""

from __future__ import annotations

from sardonyx.codegen.emit.types import BOOL, Type
from sardonyx.codegen.kernels.gather import GatherElementsParams, GatherParams, write_gather, write_gather_elements
from sardonyx.codegen.kernels.one_hot import write_one_hot
from sardonyx.codegen.kernels.scatter import REDUCTIONS, write_scatter, write_scatter_elements
from sardonyx.dtypes import DataType
from sardonyx.ir import Dim, Node, Value
from sardonyx.ir.shape import product
from sardonyx.providers.cpu.expressions import element_type
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.lowering import Lowering, lowers
from sardonyx.providers.cpu.operands import axis_of, check_moved, constant_of, given, shape_of
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import STATUS, Buffer, Plan
from sardonyx.providers.cpu.strided import Region, copy_region, dense_strides, moved_type

TASK_ELEMENTS = 1 << 14
"""Elements of one task."""


def _check_indices(value: Value | None) -> str | None:
    if value is None or value.shape is None:
        return "its indices are left out"
    return None if value.dtype in (DataType.INT32, DataType.INT64) else f"indices of type {value.dtype}"


def _moved(dtype: DataType) -> Type:
    kind = moved_type(dtype)
    if kind is None:
        raise TypeError("the check lets only types that kernels move through")
    return kind


def _index_type(buffer: Buffer) -> Type:
    kind = element_type(buffer.dtype)
    if kind is None:
        raise TypeError("the check lets only int32 and int64 indices through")
    return kind


def _check_gather(node: Node) -> str | None:
    data = node.inputs[0]
    if data is None or not data.shape:
        return "the data is a scalar"
    return _check_indices(node.inputs[1]) or check_moved(node)


@lowers("Gather", check=_check_gather)
def gather(low: Lowering, group: Group) -> None:
    """Copy row after row; one constant index is a slice."""
    node = group.anchor
    data = low.of(node.inputs[0])
    axis = axis_of(node, 0, len(data.shape))
    place = _constant_place(node, data.shape[axis])
    if place is not None:
        _take_place(low, node, data, axis, place)
        return
    inner = product(data.shape[axis + 1 :])
    count, reach = product(shape_of(node.inputs[1])), data.shape[axis] * inner
    _gather_tuples(low, node, product(data.shape[:axis]), count, inner, (reach, 0), [(data.shape[axis], inner)])


def _constant_place(node: Node, size: Dim) -> int | None:
    """The place that a constant index names, where there is one index and it lies inside the axis for all sizes."""
    indices = constant_of(node.inputs[1])
    if indices is None or indices.size != 1 or not isinstance(size, int):
        return None
    index = int(indices.ravel()[0])
    return index % size if -size <= index < size else None


def _take_place(low: Lowering, node: Node, data: Buffer, axis: int, place: int) -> None:
    outer, inner = product(data.shape[:axis]), product(data.shape[axis + 1 :])
    if outer == 1:
        low.view(node.output, data, inner * place)
        return
    source = Buffer(data.dtype, data.shape, data.constant, data, inner * place)
    region = [Region(outer, data.shape[axis] * inner, inner), Region(inner, 1, 1)]
    copy_region(low, "Gather", source, low.result(node.output), region, node)


def _gather_tuples(
    low: Lowering, node: Node, batch: Dim, count: Dim, inner: Dim, strides: tuple[Dim, Dim], axes: list[tuple[Dim, Dim]]
) -> None:
    """Add the step that gathers; as GatherParams, but for symbols."""
    data, indices, result = low.of(node.inputs[0]), low.of(node.inputs[1]), low.result(node.output)
    element, index, depth, single = _moved(data.dtype), _index_type(indices), len(axes), inner == 1
    symbol = f"gather_{element.size_bytes}_{indices.dtype}_{depth}{'_single' if single else ''}_{low.target.isa}"
    low.kernel(symbol, lambda module, name: write_gather(module, name, element, index, depth, single=single))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        row = sizes(inner)
        params = GatherParams(
            batch=sizes(batch),
            count=sizes(count),
            inner=row,
            data_stride=sizes(strides[0]),
            index_stride=sizes(strides[1]),
            axes=tuple((sizes(size), sizes(stride)) for size, stride in axes),
            block=max(1, TASK_ELEMENTS // max(row, 1)),
        )
        return params.words(), params.tasks()

    low.step(Group(node, []), symbol, [data, indices, result, STATUS], writes=[2], plan=plan)


def _check_gather_nd(node: Node) -> str | None:
    data, indices = node.inputs[0], node.inputs[1]
    if data is None or data.shape is None or indices is None or not indices.shape:
        return "its shapes are not known"
    depth, batch = indices.shape[-1], node.get("batch_dims", 0)
    if not isinstance(depth, int) or depth == 0 or batch + depth > len(data.shape) or not 0 <= batch < len(indices.shape):
        return "its indices do not fit the data"
    if data.shape[:batch] != indices.shape[:batch]:
        return "that data and indices have the same batches depends on sizes"
    return _check_indices(indices) or check_moved(node)


@lowers("GatherND", check=_check_gather_nd)
def gather_nd(low: Lowering, group: Group) -> None:
    """Copy what each tuple names."""
    node = group.anchor
    shape, indices, batch = shape_of(node.inputs[0]), shape_of(node.inputs[1]), group.anchor.get("batch_dims", 0)
    depth = indices[-1]
    if not isinstance(depth, int):
        raise TypeError("the check lets only tuples of a known length through")
    strides = dense_strides(shape)
    axes = [(shape[axis], strides[axis]) for axis in range(batch, batch + depth)]
    count = product(indices[batch:-1])
    reach = product(shape[batch:]), count
    _gather_tuples(low, node, product(shape[:batch]), count, product(shape[batch + depth :]), reach, axes)


def _check_elements(node: Node) -> str | None:
    """Off the axis the indices may be shorter than the data, not longer."""
    data, indices = node.inputs[0], node.inputs[1]
    if data is None or not data.shape or indices is None or indices.shape is None or len(data.shape) != len(indices.shape):
        return "its shapes do not fit"
    if not -len(data.shape) <= node.get("axis", 0) < len(data.shape):
        return f"axis={node.get('axis')} for {len(data.shape)} dimensions"
    axis = axis_of(node, 0, len(data.shape))
    pairs = [pair for place, pair in enumerate(zip(indices.shape, data.shape, strict=True)) if place != axis]
    if any(have != most and not (isinstance(have, int) and isinstance(most, int) and have <= most) for have, most in pairs):
        return "that the indices are no longer than the data depends on sizes"
    return _check_indices(indices) or check_moved(node)


@lowers("GatherElements", check=_check_elements)
def gather_elements(low: Lowering, group: Group) -> None:
    """Copy element by element, row after row of the indices."""
    node = group.anchor
    data, indices, result = low.of(node.inputs[0]), low.of(node.inputs[1]), low.result(node.output)
    element, index, axis = _moved(data.dtype), _index_type(indices), axis_of(node, 0, len(data.shape))
    symbol = f"gather_elements_{element.size_bytes}_{indices.dtype}_{low.target.isa}"
    low.kernel(symbol, lambda module, name: write_gather_elements(module, name, element, index))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        params = GatherElementsParams.along(axis, sizes.shape(data.shape), sizes.shape(indices.shape), TASK_ELEMENTS)
        return params.words(), params.tasks()

    low.step(group, symbol, [data, indices, result, STATUS], writes=[2], plan=plan)


def _check_updates(node: Node) -> str | None:
    updates, reduction = node.input(2), node.get("reduction", "none")
    if updates is None or updates.shape is None or reduction not in REDUCTIONS:
        return "its updates are left out, or its reduction is not known"
    if reduction != "none":
        kind = element_type(updates.dtype)
        if kind is None or kind == BOOL or (kind.is_narrow):
            return f"{reduction} of elements of type {updates.dtype}"
    return check_moved(node)


def _check_scatter_nd(node: Node) -> str | None:
    data, indices, updates = node.inputs[0], node.inputs[1], node.input(2)
    if data is None or data.shape is None or indices is None or not indices.shape or updates is None:
        return "its shapes are not known"
    depth = indices.shape[-1]
    if not isinstance(depth, int) or not 0 < depth <= len(data.shape):
        return "its indices do not fit the data"
    if updates.shape != indices.shape[:-1] + data.shape[depth:]:
        return "that the updates fit the indices depends on sizes"
    return _check_indices(indices) or _check_updates(node)


@lowers("ScatterND", check=_check_scatter_nd)
def scatter_nd(low: Lowering, group: Group) -> None:
    """Copy the data and write the updates over it."""
    node = group.anchor
    shape, tuples, depth = shape_of(node.inputs[0]), shape_of(node.inputs[1])[:-1], shape_of(node.inputs[1])[-1]
    if not isinstance(depth, int):
        raise TypeError("the check lets only tuples of a known length through")
    element, index, reduction = _updated_type(node), _index_type(low.of(node.inputs[1])), node.get("reduction", "none")
    axes, inner, count = list(zip(shape, dense_strides(shape), strict=True))[:depth], product(shape[depth:]), product(tuples)
    symbol = f"scatter_{_update_key(node)}_{depth}_{low.target.isa}"
    low.kernel(symbol, lambda module, name: write_scatter(module, name, element, index, depth, reduction))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        return [sizes(count), sizes(inner), *(sizes(word) for axis in axes for word in axis)], 1

    _scatter(low, group, symbol, plan)


def _check_scatter_elements(node: Node) -> str | None:
    updates = node.input(2)
    if updates is None or node.inputs[1] is None or updates.shape != node.inputs[1].shape:
        return "that the updates fit the indices depends on sizes"
    return _check_elements(node) or _check_updates(node)


@lowers("Scatter", "ScatterElements", check=_check_scatter_elements)
def scatter_elements(low: Lowering, group: Group) -> None:
    """Copy the data and write the updates over it, one by one."""
    node = group.anchor
    data, indices = shape_of(node.inputs[0]), low.of(node.inputs[1])
    element, index, reduction = _updated_type(node), _index_type(indices), node.get("reduction", "none")
    axis = axis_of(node, 0, len(data))
    symbol = f"scatter_elements_{_update_key(node)}_{low.target.isa}"
    low.kernel(symbol, lambda module, name: write_scatter_elements(module, name, element, index, reduction))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        params = GatherElementsParams.along(axis, sizes.shape(data), sizes.shape(indices.shape), TASK_ELEMENTS)
        return params.words(), 1

    _scatter(low, group, symbol, plan)


def _updated_type(node: Node) -> Type:
    """The type that updates are combined in; an integer of their size where they are only moved."""
    dtype = given(node.inputs[0]).dtype
    kind = moved_type(dtype) if node.get("reduction", "none") == "none" else element_type(dtype)
    if kind is None:
        raise TypeError("the check lets only types that kernels know through")
    return kind


def _update_key(node: Node) -> str:
    """What the kernel's code depends on besides the depth of tuples."""
    kind, reduction = _updated_type(node), node.get("reduction", "none")
    return f"{kind.kind.value}{kind.size_bytes}_{given(node.inputs[1]).dtype}_{reduction}"


def _scatter(low: Lowering, group: Group, symbol: str, plan: Plan) -> None:
    """Add the steps that copy the data and write the updates."""
    node = group.anchor
    data, indices, updates = low.of(node.inputs[0]), low.of(node.inputs[1]), low.of(node.inputs[2])
    result = low.result(node.output)
    copy_region(low, node.op_type, data, result, [Region(product(data.shape), 1, 1)])
    low.step(group, symbol, [indices, updates, result, STATUS], writes=[2], plan=plan)


def _check_one_hot(node: Node) -> str | None:
    values = node.input(2)
    if values is None or values.shape != (2,):
        return "its two values are left out"
    return _check_indices(node.inputs[0]) or check_moved(node)


@lowers("OneHot", check=_check_one_hot)
def one_hot(low: Lowering, group: Group) -> None:
    """Fill with the one value, then put the other where indices say."""
    node = group.anchor
    indices, values, result = low.of(node.inputs[0]), low.of(node.inputs[2]), low.result(node.output)
    element, index, wraps = _moved(values.dtype), _index_type(indices), node.version >= 11
    axis = axis_of(node, -1, len(result.shape))
    symbol = f"one_hot_{element.size_bytes}_{indices.dtype}{'_wraps' if wraps else ''}_{low.target.isa}"
    low.kernel(symbol, lambda module, name: write_one_hot(module, name, element, index, wraps=wraps))
    outer, inner = product(indices.shape[:axis]), product(indices.shape[axis:])

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        return [sizes(result.shape[axis]), sizes(inner)], sizes(outer)

    low.step(group, symbol, [indices, values, result], writes=[2], plan=plan)
