"""Operators that cut tensors apart and join them: copies of regions, or no copy where elements lie densely already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import Type
from sardonyx.codegen.kernels.pad import PadDim, PadParams, write_pad
from sardonyx.codegen.kernels.triangle import write_triangle
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array, DataType
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Dim, Expr, Node, Shape, Value
from sardonyx.ir.shape import at_most, maximum, minimum, product
from sardonyx.ops.infer import infer_node
from sardonyx.ops.schema import place_of
from sardonyx.ops.views.inputs import COMPUTED, Computed, constants
from sardonyx.ops.views.slice import Concat, Pad, Slice, Split
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import given, moved_as, open_or_wrong, shape_of
from sardonyx.providers.cpu.size_claims import Elements, symbols_of
from sardonyx.providers.cpu.size_values import size_facts
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer, KernelLaunch
from sardonyx.providers.cpu.strided import TASK_ELEMENTS, StridedDim, copy_region, dense_strides

__all__ = ["SplitSpec"]


@dataclasses.dataclass(frozen=True, slots=True)
class ConcatSpec:
    """Inputs joined along an axis."""

    axis: int
    """The axis."""


def claim_concat(node: Node) -> ConcatSpec | str:
    """Return the axis that a Concat joins along, or why it cannot be compiled."""
    missing = next((index for index, value in enumerate(node.inputs) if value is None), None)
    if missing is not None:
        return f"input {missing} is left out"
    rank, view = len(shape_of(node.output)), Concat.of(node)
    if not rank or any(len(shape_of(value)) != rank for value in node.inputs):
        return f"its inputs do not all have {rank} dimensions" if rank else "its output is a scalar"
    kinds = [moved_as(node, index) for index in range(len(node.inputs))]
    problem = next((kind for kind in kinds if isinstance(kind, str)), None)
    return problem or ConcatSpec(view.place(rank))


@lowers("Concat", claim=claim_concat)
def concat(low: Lowering, group: Group, spec: ConcatSpec) -> None:
    """Copy each input to its place in the result; one that steps of this partition make is made there, if they can."""
    node, axis = group.node, spec.axis
    result = low.result(node.output)
    inner = product(result.shape[axis + 1 :])
    offset: Dim = 0
    for value in node.inputs:
        part = low.of(value)
        length = part.shape[axis] * inner
        outer = product(part.shape[:axis])
        pairs = zip(_without(part.shape, axis), _without(result.shape, axis), strict=True)
        unequal = [(have, want) for have, want in pairs if have != want]
        if outer == 1 and not unequal and low.is_written(part):
            low.place(part, result, offset)
        elif axis == len(result.shape) - 1 and not unequal and _may_be_pitched(low, value, part):
            low.place(part, result, offset, result.shape[-1])
        else:
            place = Buffer(result.dtype, part.shape, base=result, offset=offset)
            source, strides = _origin(low, value)
            region = [StridedDim(*dim) for dim in zip(part.shape, strides, dense_strides(result.shape), strict=True)]
            copy_region(low, "Concat", source, place, region, node)
        if unequal:
            low.steps[-1] = _checked(low.steps[-1], unequal, place_of(node))
        offset = offset + length


def _without(shape: Shape, axis: int) -> Shape:
    return shape[:axis] + shape[axis + 1 :]


def _checked(step: KernelLaunch, unequal: Sequence[tuple[Dim, Dim]], where: str) -> KernelLaunch:
    """Return the step, which asks when sizes are known whether dimensions are equal that need not be."""

    def plan(sizes: Sizes) -> tuple[Sequence[int], int]:
        for size, wanted in ((sizes(left), sizes(right)) for left, right in unequal):
            if size != wanted:
                raise InvalidArgument(
                    f"{where}: an input has a dimension of {size} where another has {wanted}; "
                    "all but the axis that they are joined along must agree"
                )
        return step.plan(sizes)

    return dataclasses.replace(step, plan=plan)


def _may_be_pitched(low: Lowering, value: Value | None, part: Buffer) -> bool:
    """Return whether the rows of the buffer may lie apart: those who write it can do that, and only the one who asks reads it."""
    users = low.users_of(part)
    return (
        part.base is None
        and given(value).use_count == 1
        and bool(users)
        and all(step.pitched and step.buffers[step.writes[0]] is part for step in users or ())
    )


def _origin(low: Lowering, value: Value | None) -> tuple[Buffer, list[Dim]]:
    """Return where elements lie, and their strides: what Split or Slice takes for this reader alone is read where it was."""
    part, value = low.of(value), given(value)
    producer = value.producer
    if producer is None or value.use_count != 1 or not low.is_written(part):
        return part, dense_strides(part.shape)
    spec = low.specs.get(producer)
    if isinstance(spec, SplitSpec):
        return _part_of(low.of(producer.inputs[0]), {spec.axis: (_total(spec.lengths[: value.index]), 1)})
    if isinstance(spec, SliceSpec):
        return _part_of(low.of(producer.inputs[0]), spec.taken)
    return part, dense_strides(part.shape)


def _total(lengths: Sequence[Dim]) -> Dim:
    total: Dim = 0
    for length in lengths:
        total = total + length
    return total


def _part_of(data: Buffer, found: Mapping[int, tuple[Dim, int]]) -> tuple[Buffer, list[Dim]]:
    """Return the elements of `data` from the first ones on, axis by axis, and the strides of the part."""
    strides = dense_strides(data.shape)
    offset: Dim = 0
    for axis, (first, step) in found.items():
        offset = offset + first * strides[axis]
        strides[axis] = strides[axis] * step
    return Buffer(data.dtype, data.shape, data.constant, data, offset), strides


@dataclasses.dataclass(frozen=True, slots=True)
class SplitSpec:
    """An axis cut into parts."""

    axis: int
    """The axis."""
    lengths: tuple[Dim, ...]
    """How long each part is."""


def claim_split(node: Node) -> SplitSpec | str:
    """Return the parts that a Split makes, or why it cannot be compiled."""
    shape, view, kind = shape_of(node.inputs[0]), Split.of(node, constants(node)), moved_as(node)
    if isinstance(kind, str):
        return kind
    if not shape or any(len(shape_of(value)) != len(shape) for value in node.outputs):
        return f"its parts do not all have {len(shape)} dimensions" if shape else "its input is a scalar"
    axis = view.place(len(shape))
    lengths = tuple(shape_of(value)[axis] for value in node.outputs)
    if view.sizes is None and view.is_even and any(length != lengths[0] for length in lengths):
        return f"that an axis of {shape[axis]} splits into {len(lengths)} equal parts {open_or_wrong(shape)}"
    if _total(lengths) != shape[axis]:
        return f"that parts of {list(lengths)} make up an axis of {shape[axis]} {open_or_wrong(lengths, shape)}"
    return SplitSpec(axis, lengths)


@lowers("Split", claim=claim_split)
def split(low: Lowering, group: Group, spec: SplitSpec) -> None:
    """Copy each part, or let it lie where it is if nothing lies between its elements."""
    data, axis = low.of(group.node.inputs[0]), spec.axis
    inner = product(data.shape[axis + 1 :])
    offset: Dim = 0
    for value, part in zip(group.node.outputs, spec.lengths, strict=True):
        length = part * inner
        _take(low, data, value, axis, offset, length, data.shape[axis] * inner)
        offset = offset + length


def _take(low: Lowering, data: Buffer, value: Value, axis: int, offset: Dim, length: Dim, row: Dim) -> None:
    """Make `value` of the elements [offset, offset + length) of each row of `data`, which has `row` elements."""
    outer = product(data.shape[:axis])
    if outer == 1:
        low.view(value, data, offset)
        return
    place = Buffer(data.dtype, data.shape, data.constant, data, offset)
    copy_region(low, "Split", place, low.result(value), [StridedDim(outer, row, length), StridedDim(length, 1, 1)], value.producer)


@dataclasses.dataclass(frozen=True, slots=True)
class SliceSpec:
    """A part of a tensor; the shape of the output says how many elements are taken."""

    taken: Mapping[int, tuple[Dim, int]]
    """Axis -> the first element, and the step from one to the next."""

    @property
    def symbols(self) -> list[str]:
        """The sizes that decide where it begins."""
        return symbols_of([tuple(first for first, _ in self.taken.values())])


def claim_slice(node: Node) -> SliceSpec | str:
    """Return the part that a Slice takes, or why it cannot be compiled."""
    shape, kind = shape_of(node.inputs[0]), moved_as(node)
    if isinstance(kind, str):
        return kind
    view = Slice.of(node, constants(node))
    starts: Sequence[Dim] | Literal[Computed.COMPUTED] | None = view.starts
    starts = _starts_of_sizes(node) if starts is COMPUTED else starts
    places = view.places(len(shape))
    if starts is COMPUTED or places is None or view.steps is COMPUTED:
        fields = (("starts", view.starts), ("axes", view.axes), ("steps", view.steps))
        return f"its {' and '.join(name for name, given in fields if given is COMPUTED)} are computed"
    if starts is None:
        return "it has no starts"
    ends = (_FAR,) * len(starts) if view.ends is None or view.ends is COMPUTED else view.ends
    steps = view.steps or (1,) * len(starts)
    if not len(starts) == len(ends) == len(steps) == len(places) or 0 in steps:
        return f"starts {list(starts)}, ends {list(ends)}, axes {list(places)} and steps {list(steps)} do not fit each other"
    return _taken(shape, list(zip(places, starts, ends, steps, strict=True)))


def _starts_of_sizes(node: Node) -> Elements | Literal[Computed.COMPUTED]:
    """Return the starts where they follow from shapes alone, as does the size of the part then."""
    facts = size_facts(node.inputs[1:])
    starts = None if node.inputs[1] is None else facts.get(node.inputs[1])
    elements = [] if starts is None else starts.elements or []
    if not elements or not all(isinstance(item, (int, Expr)) for item in elements):
        return COMPUTED
    return tuple(elements) if infer_node(node, facts)[0].shape == node.output.shape else COMPUTED


def _taken(shape: Shape, parts: Sequence[tuple[int, Dim, int, int]]) -> SliceSpec | str:
    """Return what (axis, start, end, step) take, or why that is not known."""
    found: dict[int, tuple[Dim, int]] = {}
    for place, start, end, step in parts:
        if step < 0 and end >= _FAR:
            return "a negative step to an end that is computed or far"
        first = _first_of_sizes(shape[place], start, step) if isinstance(start, Expr) else _first(shape[place], start, step)
        if first is None:
            return "a start that may count from the end, or a negative step from a place outside the axis: either depends on sizes"
        found[place] = first, step
    return SliceSpec(found)


_FAR = 2**31 - 1
"""An end from which on engines differ in what it means to a negative step."""


def _first_of_sizes(size: Dim, start: Expr, step: int) -> Dim | None:
    """Return what `_first` does, for a start that follows from sizes and is known to count from the front."""
    return minimum(start, size) if step > 0 and at_most(0, start) else None


def _first(size: Dim, start: int, step: int) -> Dim | None:
    """Return the first element taken from an axis of `size`, inside it if any is taken; None where that depends on sizes."""
    if step > 0:
        return minimum(start, size) if start >= 0 else maximum(size + start, 0)
    if not isinstance(size, int):
        return size - 1 if start == -1 else None
    if start < -size:
        return None
    return max(min(start + size if start < 0 else start, size - 1), 0)


@lowers("Slice", claim=claim_slice)
def slice_(low: Lowering, group: Group, spec: SliceSpec) -> None:
    """Copy the part, or let it lie where it is if its elements are dense there."""
    node = group.node
    data, taken = low.of(node.inputs[0]), shape_of(node.output)
    part, strides = _part_of(data, spec.taken)
    shape, moves = data.shape, [step != 1 for _, step in spec.taken.values()]
    cut = [axis for axis in range(len(shape)) if taken[axis] != shape[axis]]
    if not any(moves) and (not cut or product(shape[: cut[-1]]) == 1 or product(taken[: cut[-1]]) == 1):
        low.view(node.output, data, part.offset)
        return
    region = [StridedDim(*dim) for dim in zip(taken, strides, dense_strides(taken), strict=True)]
    copy_region(low, "Slice", part, low.result(node.output), region, node)


@dataclasses.dataclass(frozen=True, slots=True)
class PadSpec:
    """A tensor with a border."""

    kind: Type
    """The type as which elements are moved."""
    pads: tuple[tuple[int, int], ...]
    """For each axis how much it grows before and after."""
    mode: str
    """What the border is made of."""
    number: Array | None
    """The one element of the border, where it is no input."""


def claim_pad(node: Node) -> PadSpec | str:
    """Return the border that a Pad adds, or why it cannot be compiled."""
    shape, kind, view = shape_of(node.inputs[0]), moved_as(node), Pad.of(node, constants(node))
    if isinstance(kind, str):
        return kind
    pads = view.by_axis(len(shape))
    if pads is None:
        computed = [name for name, given in (("pads", view.pads), ("axes", view.axes)) if given is COMPUTED]
        return f"its {' and '.join(computed)} are computed" if computed else "it has no pads"
    number, dtype = node.input(2), given(node.inputs[0]).dtype
    if number is not None and (product(shape_of(number)) != 1 or number.dtype is not dtype):
        return f"its constant is not one element of type {dtype}"
    if any(min(pair) < 0 and not isinstance(dim, int) for dim, pair in zip(shape, pads, strict=True)):
        return "it crops an axis whose size is not known"
    own = None if number is not None or dtype is None else np.full(1, view.value or 0.0).astype(dtype.numpy)
    return PadSpec(kind, tuple(pads), view.mode, own)


@dataclasses.dataclass(frozen=True, slots=True)
class PadKernel:
    """Rows with a border."""

    kind: Type
    """The type as which elements are moved."""
    mode: str
    """What the border is made of."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"pad_{self.kind.size_bytes}_{self.mode}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_pad(module, symbol, self.kind, self.mode)


@lowers("Pad", claim=claim_pad)
def pad(low: Lowering, group: Group, spec: PadSpec) -> None:
    """Write rows of the result: what lies before, the source, and what lies behind."""
    node, mode = group.node, spec.mode
    data, result = low.of(node.inputs[0]), low.result(node.output)
    value = low.of(node.input(2)) if spec.number is None else low.constant(spec.number)
    symbol = low.kernel(PadKernel(spec.kind, mode))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        dims = [PadDim.of(sizes(dim), *pair) for dim, pair in zip(data.shape, spec.pads, strict=True)]
        if mode != "constant" and any(dim.out and not dim.length for dim in dims):
            raise InvalidArgument(f"Pad: in mode {mode!r} nothing is left to repeat of an axis of {sizes.shape(data.shape)}")
        if tuple(dim.out for dim in dims) != sizes.shape(result.shape):
            raise InvalidArgument(f"Pad: pads {spec.pads} do not make {sizes.shape(result.shape)} of {sizes.shape(data.shape)}")
        params = PadParams.over(dims, mode, TASK_ELEMENTS)
        return params.words(), params.tasks()

    low.step(group, symbol, [data, value, result], writes=[2], plan=plan)


@dataclasses.dataclass(frozen=True, slots=True)
class CentreSpec:
    """A tensor cropped or padded about its centre."""

    kind: Type
    """The type as which elements are moved."""


def claim_center_crop_pad(node: Node) -> CentreSpec | str:
    """Return how the elements of a CenterCropPad are moved, or why it cannot be compiled."""
    kind, rank = moved_as(node), len(shape_of(node.output))
    if len(shape_of(node.inputs[0])) != rank:
        return f"{len(shape_of(node.inputs[0]))} dimensions become {rank}"
    return kind if isinstance(kind, str) else CentreSpec(kind)


@lowers("CenterCropPad", claim=claim_center_crop_pad, inputs=2)
def center_crop_pad(low: Lowering, group: Group, spec: CentreSpec) -> None:
    """Crop and pad in one copy; by how much is known by the time of binding."""
    data, result = low.of(group.node.inputs[0]), low.result(group.node.output)
    zero = low.constant(np.zeros(1, data.dtype.numpy))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        dims = []
        for dim, wanted in zip(data.shape, result.shape, strict=True):
            surplus = sizes(wanted) - sizes(dim)
            if sizes(wanted) < 0:
                raise InvalidArgument(f"shape={list(sizes.shape(result.shape))}; expected one length >= 0 for each axis")
            before = surplus // 2 if surplus >= 0 else -(-surplus // 2)
            dims.append(PadDim.of(sizes(dim), before, surplus - before))
        params = PadParams.over(dims, "constant", TASK_ELEMENTS)
        return params.words(), params.tasks()

    low.step(group, low.kernel(PadKernel(spec.kind, "constant")), [data, zero, result], writes=[2], plan=plan)


@dataclasses.dataclass(frozen=True, slots=True)
class TriangleSpec:
    """One side of the diagonal of matrices."""

    kind: Type
    """The type as which elements are moved."""
    upper: bool
    """Which side is kept."""


def claim_trilu(node: Node) -> TriangleSpec | str:
    """Return the side of the diagonal that a Trilu keeps, or why it cannot be compiled."""
    shape, k, kind = shape_of(node.inputs[0]), node.input(1), moved_as(node)
    if isinstance(kind, str):
        return kind
    if len(shape) < 2:
        return f"its input is no matrix, but has {len(shape)} dimensions"
    if k is not None and (k.dtype is not DataType.INT64 or product(shape_of(k)) != 1):
        return "its diagonal is not one int64"
    return TriangleSpec(kind, node.flag("upper", True))


@dataclasses.dataclass(frozen=True, slots=True)
class TriangleKernel:
    """One side of the diagonal."""

    kind: Type
    """The type as which elements are moved."""
    upper: bool
    """Which side is kept."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"triangle_{self.kind.size_bytes}_{'upper' if self.upper else 'lower'}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_triangle(module, symbol, self.kind, upper=self.upper)


@lowers("Trilu", claim=claim_trilu)
def trilu(low: Lowering, group: Group, spec: TriangleSpec) -> None:
    """Copy one part of each row and clear the other."""
    node = group.node
    data, result, k = low.of(node.inputs[0]), low.result(node.output), node.input(1)
    diagonal = low.constant(np.zeros(1, np.int64)) if k is None else low.of(k)
    symbol = low.kernel(TriangleKernel(spec.kind, spec.upper))
    *batch, height, width = data.shape

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        rows, columns = sizes.product((*batch, height)), sizes(width)
        block = max(TASK_ELEMENTS // max(columns, 1), 1)
        return [rows, sizes(height), columns, block], -(-rows // block)

    low.step(group, symbol, [data, diagonal, result], writes=[2], plan=plan, in_place=[0])
