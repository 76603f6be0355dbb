"""Operators that read from, or write to, places which another tensor names; every index is checked before it is used."""

from __future__ import annotations

from math import prod

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import BOOL, Type
from sardonyx.codegen.kernels.gather import GatherElementsParams, GatherParams, write_gather, write_gather_elements
from sardonyx.codegen.kernels.one_hot import write_one_hot
from sardonyx.codegen.kernels.scatter import write_scatter, write_scatter_elements
from sardonyx.codegen.target import Target
from sardonyx.ir import Dim, Node
from sardonyx.ir.shape import product
from sardonyx.ops.views.gather import Gather, OneHot, Scatter
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.expressions import element_type, scalar_of
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import given, index_type, moved_as, open_or_wrong, shape_of
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import STATUS, Buffer, Plan
from sardonyx.providers.cpu.strided import StridedDim, copy_region, dense_strides

TASK_ELEMENTS = 1 << 14
"""Elements of one task."""


def _types_of(node: Node, indices: int, source: int = 0) -> tuple[Type, Type] | str:
    """Return the types as which elements are moved and indices are read, or why kernels do not."""
    element, index = moved_as(node, source), index_type(node.inputs[indices])
    if isinstance(element, str):
        return element
    return index if isinstance(index, str) else (element, index)


@dataclasses.dataclass(frozen=True, slots=True)
class GatherSpec:
    """A Gather: slices of an axis."""

    element: Type
    """The type as which elements are moved."""
    index: Type
    """The type of indices."""
    axis: int
    """The axis that they count along."""
    place: int | None
    """The place that a constant index names, where there is one index and it lies inside the axis for all sizes."""


def claim_gather(node: Node) -> GatherSpec | str:
    """Return which slices a Gather takes, or why it cannot be compiled."""
    shape, types = shape_of(node.inputs[0]), _types_of(node, 1)
    if not shape:
        return "the data is a scalar"
    if isinstance(types, str):
        return types
    axis = Gather.of(node).place(len(shape))
    return GatherSpec(*types, axis, _constant_place(node, shape[axis]))


def _constant_place(node: Node, size: Dim) -> int | None:
    number = scalar_of(node, 1)
    if number is None or not isinstance(size, int):
        return None
    index = int(number)
    return index % size if -size <= index < size else None


@lowers("Gather", claim=claim_gather, inputs=2)
def gather(low: Lowering, group: Group, spec: GatherSpec) -> None:
    """Copy row after row; one constant index is a slice."""
    node, axis = group.node, spec.axis
    data = low.of(node.inputs[0])
    if spec.place is not None:
        _take_place(low, node, data, axis, spec.place)
        return
    inner = product(data.shape[axis + 1 :])
    count, reach = product(low.of(node.inputs[1]).shape), data.shape[axis] * inner
    tuples = _Tuples(product(data.shape[:axis]), count, inner, (reach, 0), ((data.shape[axis], inner),))
    _gather_tuples(low, group, spec.element, spec.index, tuples)


def _take_place(low: Lowering, node: Node, data: Buffer, axis: int, place: int) -> None:
    outer, inner = product(data.shape[:axis]), product(data.shape[axis + 1 :])
    if outer == 1:
        low.view(node.output, data, inner * place)
        return
    source = Buffer(data.dtype, data.shape, data.constant, data, inner * place)
    region = [StridedDim(outer, data.shape[axis] * inner, inner), StridedDim(inner, 1, 1)]
    copy_region(low, "Gather", source, low.result(node.output), region, node)


@dataclasses.dataclass(frozen=True, slots=True)
class _Tuples:
    """What tuples of indices name: GatherParams, but for symbols."""

    batch: Dim
    count: Dim
    inner: Dim
    strides: tuple[Dim, Dim]
    axes: tuple[tuple[Dim, Dim], ...]


@dataclasses.dataclass(frozen=True, slots=True)
class GatherKernel:
    """Copies of what tuples of indices name."""

    element: Type
    """The type as which elements are moved."""
    index: Type
    """The type of indices."""
    depth: int
    """How many indices make a tuple."""
    single: bool
    """Whether each names one element."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"gather_{self.element.size_bytes}_int{self.index.bits}_{self.depth}{'_single' if self.single else ''}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_gather(module, symbol, self.element, self.index, self.depth, single=self.single)


def _gather_tuples(low: Lowering, group: Group, element: Type, index: Type, tuples: _Tuples) -> None:
    """Add the step that gathers."""
    node = group.node
    data, indices, result = low.of(node.inputs[0]), low.of(node.inputs[1]), low.result(node.output)
    symbol = low.kernel(GatherKernel(element, index, len(tuples.axes), tuples.inner == 1))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        row, count = sizes(tuples.inner), sizes(tuples.count)
        block = max(1, TASK_ELEMENTS // max(row, 1))
        params = GatherParams(
            batch=sizes(tuples.batch),
            count=count,
            inner=row,
            data_stride=sizes(tuples.strides[0]),
            index_stride=sizes(tuples.strides[1]),
            axes=tuple((sizes(size), sizes(stride)) for size, stride in tuples.axes),
            block=block,
            block_batch=max(block // max(count, 1), 1),
        )
        return params.words(), params.tasks()

    low.step(group, symbol, [data, indices, result, STATUS], writes=[2], plan=plan)


@dataclasses.dataclass(frozen=True, slots=True)
class GatherNDSpec:
    """A GatherND: what tuples of indices name."""

    element: Type
    """The type as which elements are moved."""
    index: Type
    """The type of indices."""
    batch: int
    """How many leading dimensions data and indices share."""
    depth: int
    """How many indices make a tuple."""


def claim_gather_nd(node: Node) -> GatherNDSpec | str:
    """Return what the tuples of a GatherND name, or why it cannot be compiled."""
    data, indices, types = shape_of(node.inputs[0]), shape_of(node.inputs[1]), _types_of(node, 1)
    if not indices:
        return "its indices are a scalar"
    depth, batch = indices[-1], Gather.of(node).batch_axes
    if not isinstance(depth, int):
        return "how many indices make a tuple depends on sizes"
    if depth == 0 or batch + depth > len(data) or not 0 <= batch < len(indices):
        return f"tuples of {depth} indices in {batch} batch dimensions do not fit data of {len(data)} dimensions"
    if data[:batch] != indices[:batch]:
        return f"that data and indices have the same batches {open_or_wrong(data[:batch], indices[:batch])}"
    return types if isinstance(types, str) else GatherNDSpec(*types, batch, depth)


@lowers("GatherND", claim=claim_gather_nd, inputs=2)
def gather_nd(low: Lowering, group: Group, spec: GatherNDSpec) -> None:
    """Copy what each tuple names."""
    shape, indices = low.of(group.node.inputs[0]).shape, low.of(group.node.inputs[1]).shape
    batch, behind, strides = spec.batch, spec.batch + spec.depth, dense_strides(shape)
    axes = tuple((shape[axis], strides[axis]) for axis in range(batch, behind))
    count = product(indices[batch:-1])
    reach = product(shape[batch:]), count
    tuples = _Tuples(product(shape[:batch]), count, product(shape[behind:]), reach, axes)
    _gather_tuples(low, group, spec.element, spec.index, tuples)


@dataclasses.dataclass(frozen=True, slots=True)
class GatherElementsSpec:
    """A GatherElements: elements of lines along an axis."""

    element: Type
    """The type as which elements are moved."""
    index: Type
    """The type of indices."""
    axis: int
    """The axis that they count along."""


def claim_gather_elements(node: Node) -> GatherElementsSpec | str:
    """Return which elements a GatherElements takes, or why it cannot be compiled."""
    view = Gather.of(node)
    types = _elements_problem(node, view) or _types_of(node, 1)
    if isinstance(types, str):
        return types
    return GatherElementsSpec(*types, view.place(len(shape_of(node.inputs[0]))))


def _elements_problem(node: Node, view: Gather | Scatter) -> str | None:
    """Return why the indices do not fit: off the axis the indices may be shorter than the data, not longer."""
    data, indices = shape_of(node.inputs[0]), shape_of(node.inputs[1])
    if not data:
        return "the data is a scalar"
    if len(data) != len(indices):
        return f"indices of {len(indices)} dimensions for data of {len(data)}"
    axis = view.place(len(data))
    pairs = [pair for place, pair in enumerate(zip(indices, data, strict=True)) if place != axis]
    if any(have != most and not (isinstance(have, int) and isinstance(most, int) and have <= most) for have, most in pairs):
        return f"that the indices are no longer than the data {open_or_wrong(*pairs)}"
    return None


@dataclasses.dataclass(frozen=True, slots=True)
class GatherElementsKernel:
    """Copies of elements of lines."""

    element: Type
    """The type as which elements are moved."""
    index: Type
    """The type of indices."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"gather_elements_{self.element.size_bytes}_int{self.index.bits}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_gather_elements(module, symbol, self.element, self.index)


@lowers("GatherElements", claim=claim_gather_elements, inputs=2)
def gather_elements(low: Lowering, group: Group, spec: GatherElementsSpec) -> None:
    """Copy element by element, row after row of the indices."""
    node = group.node
    data, indices, result = low.of(node.inputs[0]), low.of(node.inputs[1]), low.result(node.output)
    symbol = low.kernel(GatherElementsKernel(spec.element, spec.index))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        params = GatherElementsParams.along(spec.axis, sizes.shape(data.shape), sizes.shape(indices.shape), TASK_ELEMENTS)
        return params.words(), params.tasks()

    low.step(group, symbol, [data, indices, result, STATUS], writes=[2], plan=plan)


_UPDATES = 1 << 16
"""Elements that are updated in one task."""
_BLOCK = 5
"""Which of the words of GatherElementsParams says how many updates a task has."""


@dataclasses.dataclass(frozen=True, slots=True)
class ScatterSpec:
    """A Scatter, ScatterElements or ScatterND: updates that are written over the data."""

    element: Type
    """The type that updates are combined in; an integer of their size where they are only moved."""
    index: Type
    """The type of indices."""
    reduction: str
    """How an update is combined with what was there; "none" where it takes its place."""
    along: int
    """The axis that indices count along; for ScatterND how many of them make a tuple."""


def _claim_scatter(node: Node, reduction: str, along: int) -> ScatterSpec | str:
    """Return how updates are written, or why it cannot be compiled."""
    types, dtype = _types_of(node, 1), given(node.inputs[0]).dtype
    if isinstance(types, str):
        return types
    if given(node.inputs[2]).dtype is not dtype:
        return f"updates of type {given(node.inputs[2]).dtype} for data of type {dtype}"
    if reduction == "none":
        return ScatterSpec(*types, reduction, along)
    kind = element_type(dtype)
    if kind is None or kind == BOOL or kind.is_narrow:
        return f"{reduction} of elements of type {dtype}"
    return ScatterSpec(kind, types[1], reduction, along)


def claim_scatter_nd(node: Node) -> ScatterSpec | str:
    """Return how a ScatterND writes, or why it cannot be compiled."""
    data, indices, updates = (shape_of(value) for value in node.inputs[:3])
    if not indices:
        return "its indices are a scalar"
    depth = indices[-1]
    if not isinstance(depth, int):
        return "how many indices make a tuple depends on sizes"
    if not 0 < depth <= len(data):
        return f"tuples of {depth} indices do not fit data of {len(data)} dimensions"
    if updates != indices[:-1] + data[depth:]:
        return f"that the updates fit the indices {open_or_wrong(data, indices, updates)}"
    return _claim_scatter(node, Scatter.of(node).reduction, depth)


@dataclasses.dataclass(frozen=True, slots=True)
class ScatterKernel:
    """Updates written where tuples of indices say."""

    element: Type
    """The type that updates are combined in."""
    index: Type
    """The type of indices."""
    reduction: str
    """How they are combined."""
    depth: int
    """How many indices make a tuple."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"scatter_{_update_key(self.element, self.index, self.reduction)}_{self.depth}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_scatter(module, symbol, self.element, self.index, self.depth, self.reduction)


@lowers("ScatterND", claim=claim_scatter_nd, inputs=3)
def scatter_nd(low: Lowering, group: Group, spec: ScatterSpec) -> None:
    """Copy the data and write the updates over it."""
    shape, tuples, depth = low.of(group.node.inputs[0]).shape, low.of(group.node.inputs[1]).shape[:-1], spec.along
    axes, inner, count = list(zip(shape, dense_strides(shape), strict=True))[:depth], product(shape[depth:]), product(tuples)
    symbol = low.kernel(ScatterKernel(spec.element, spec.index, spec.reduction, depth))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        tuples, elements = sizes(count), sizes(inner)
        block = max(_UPDATES // max(elements, 1), 1)
        return [tuples, elements, block, *(sizes(word) for axis in axes for word in axis)], -(-tuples // block)

    _scatter(low, group, symbol, plan)


def claim_scatter_elements(node: Node) -> ScatterSpec | str:
    """Return how a ScatterElements writes, or why it cannot be compiled."""
    if shape_of(node.inputs[2]) != shape_of(node.inputs[1]):
        return f"that the updates fit the indices {open_or_wrong(shape_of(node.inputs[1]), shape_of(node.inputs[2]))}"
    view = Scatter.of(node)
    problem = _elements_problem(node, view)
    return problem or _claim_scatter(node, view.reduction, view.place(len(shape_of(node.inputs[0]))))


@dataclasses.dataclass(frozen=True, slots=True)
class ScatterElementsKernel:
    """Updates written along an axis."""

    element: Type
    """The type that updates are combined in."""
    index: Type
    """The type of indices."""
    reduction: str
    """How they are combined."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"scatter_elements_{_update_key(self.element, self.index, self.reduction)}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_scatter_elements(module, symbol, self.element, self.index, self.reduction)


@lowers("Scatter", "ScatterElements", claim=claim_scatter_elements, inputs=3)
def scatter_elements(low: Lowering, group: Group, spec: ScatterSpec) -> None:
    """Copy the data and write the updates over it, one by one."""
    data, indices = low.of(group.node.inputs[0]).shape, low.of(group.node.inputs[1])
    symbol = low.kernel(ScatterElementsKernel(spec.element, spec.index, spec.reduction))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        params = GatherElementsParams.along(spec.along, sizes.shape(data), sizes.shape(indices.shape), TASK_ELEMENTS)
        words, count = params.words(), prod(sizes.shape(indices.shape))
        words[_BLOCK] = _UPDATES
        return words, -(-count // _UPDATES)

    _scatter(low, group, symbol, plan)


def _update_key(element: Type, index: Type, reduction: str) -> str:
    """Name what the kernel's code depends on besides the depth of tuples."""
    return f"{element.kind.value}{element.size_bytes}_int{index.bits}_{reduction}"


def _scatter(low: Lowering, group: Group, symbol: str, plan: Plan) -> None:
    """Add the steps that copy the data and write the updates."""
    node = group.node
    data, indices, updates = low.of(node.inputs[0]), low.of(node.inputs[1]), low.of(node.inputs[2])
    result = low.result(node.output)
    copy_region(low, node.op_type, data, result, [StridedDim(product(data.shape), 1, 1)])
    low.step(group, symbol, [indices, updates, result, STATUS], writes=[2], plan=plan, together=1)


@dataclasses.dataclass(frozen=True, slots=True)
class OneHotSpec:
    """A OneHot: one value everywhere, but for the places that indices name."""

    element: Type
    """The type as which elements are moved."""
    index: Type
    """The type of indices."""
    axis: int
    """The axis of the output that they count along."""
    wraps: bool
    """Whether negative indices count from the end."""


def claim_one_hot(node: Node) -> OneHotSpec | str:
    """Return what a OneHot fills in, or why it cannot be compiled."""
    shape, types = shape_of(node.inputs[2]), _types_of(node, 0, source=2)
    if isinstance(types, str):
        return types
    if shape != (2,):
        return f"values of shape {shape}, expected two"
    view = OneHot.of(node)
    return OneHotSpec(*types, view.place(len(shape_of(node.output))), view.wraps)


@dataclasses.dataclass(frozen=True, slots=True)
class OneHotKernel:
    """One of two values at each place."""

    element: Type
    """The type as which elements are moved."""
    index: Type
    """The type of indices."""
    wraps: bool
    """Whether negative indices count from the end."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"one_hot_{self.element.size_bytes}_int{self.index.bits}{'_wraps' if self.wraps else ''}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_one_hot(module, symbol, self.element, self.index, wraps=self.wraps)


@lowers("OneHot", claim=claim_one_hot, inputs=3)
def one_hot(low: Lowering, group: Group, spec: OneHotSpec) -> None:
    """Fill with the one value, then put the other where indices say."""
    node = group.node
    indices, values, result = low.of(node.inputs[0]), low.of(node.inputs[2]), low.result(node.output)
    symbol, axis = low.kernel(OneHotKernel(spec.element, spec.index, spec.wraps)), spec.axis
    outer, inner = product(indices.shape[:axis]), product(indices.shape[axis:])

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        return [sizes(result.shape[axis]), sizes(inner)], sizes(outer)

    low.step(group, symbol, [indices, values, result], writes=[2], plan=plan)
