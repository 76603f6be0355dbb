"""Operators that select elements by what they are; how many there are is known only when they have run."""

from __future__ import annotations

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import BOOL, Type
from sardonyx.codegen.kernels.select import found_block, write_found, write_nonzero, write_taken
from sardonyx.codegen.target import Target
from sardonyx.dtypes import DataType
from sardonyx.ir import Dim, Node, Shape
from sardonyx.ir.shape import ceil_div, minimum, product
from sardonyx.ops.views.gather import Compress
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.expressions import element_type
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import given, moved_as, shape_of
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer
from sardonyx.providers.cpu.strided import dense_strides

_TAKEN_ELEMENTS = 1 << 16
"""Elements that one task of Compress copies about."""


@dataclasses.dataclass(frozen=True, slots=True)
class NonZeroSpec:
    """A NonZero."""

    kind: Type
    """The type of elements."""


def claim_non_zero(node: Node) -> NonZeroSpec | str:
    """Return the type of elements that a NonZero looks at, or why it cannot be compiled."""
    dtype = given(node.inputs[0]).dtype
    kind = element_type(dtype)
    if not shape_of(node.inputs[0]):
        return "the data is a scalar"
    return f"elements of type {dtype}" if kind is None else NonZeroSpec(kind)


@dataclasses.dataclass(frozen=True, slots=True)
class FoundKernel:
    """How much of each block is not zero."""

    kind: Type
    """The type of elements."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"found_{self.kind.kind.value}{self.kind.bits}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_found(module, symbol, self.kind)


@dataclasses.dataclass(frozen=True, slots=True)
class NonZeroKernel:
    """Coordinates of what is not zero."""

    kind: Type
    """The type of elements."""
    rank: int
    """How many dimensions there are."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"non_zero_{self.kind.kind.value}{self.kind.bits}_{self.rank}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_nonzero(module, symbol, self.kind, self.rank)


@lowers("NonZero", claim=claim_non_zero, counts=lambda spec: True)
def non_zero(low: Lowering, group: Group, spec: NonZeroSpec) -> None:
    """Count block by block, then list; there may be as many as there are elements."""
    source, length = low.of(group.node.inputs[0]), low.counter()
    result = low.result_up_to(group.node.output, (len(source.shape), product(source.shape)), length, 1)
    _list_set(low, group, spec.kind, (source, result, length), source.shape)


def _list_set(low: Lowering, group: Group, kind: Type, buffers: tuple[Buffer, Buffer, Buffer], shape: Shape) -> None:
    """List where the first elements of a buffer, seen in `shape`, are not 0: source, result, and how many they are."""
    source, result, length = buffers
    most: Dim = ceil_div(product(shape), found_block(0))
    counts = low.temporary(DataType.INT64, (most,))
    axes = list(zip(shape[:-1], dense_strides(shape[:-1]), strict=True))

    def block_of(sizes: Sizes) -> tuple[int, int, int]:
        elements = sizes.product(shape)
        block = found_block(elements)
        return elements, block, -(-elements // block)

    def plan_counts(sizes: Sizes) -> tuple[list[int], int]:
        elements, block, blocks = block_of(sizes)
        return [elements, block], blocks

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        around = [max(sizes(word), 1) for axis in axes for word in axis]
        return [*block_of(sizes), max(sizes(shape[-1]), 1), *around], max(block_of(sizes)[2], 1)

    low.step(group, low.kernel(FoundKernel(kind)), [source, counts], writes=[1], plan=plan_counts)
    symbol = low.kernel(NonZeroKernel(kind, len(shape)))
    low.step(group, symbol, [source, counts, result, length], writes=[2, 3], plan=plan)


@dataclasses.dataclass(frozen=True, slots=True)
class CompressSpec:
    """A Compress."""

    element: Type
    """The type as which elements are moved."""
    axis: int | None
    """The axis that is cut; None for all elements in one row."""


def claim_compress(node: Node) -> CompressSpec | str:
    """Return what a Compress keeps, or why it cannot be compiled."""
    shape, element, condition = shape_of(node.inputs[0]), moved_as(node), given(node.inputs[1])
    if isinstance(element, str):
        return element
    if condition.dtype is not DataType.BOOL or len(shape_of(condition)) != 1:
        return f"a condition of type {condition.dtype} and {len(shape_of(condition))} dimensions"
    return CompressSpec(element, Compress.of(node).place(len(shape)))


@dataclasses.dataclass(frozen=True, slots=True)
class TakenKernel:
    """Slices at places."""

    element: Type
    """The type as which elements are moved."""
    single: bool
    """Whether each is one element."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"taken_{self.element.size_bytes}{'_single' if self.single else ''}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_taken(module, symbol, self.element, single=self.single)


@lowers("Compress", claim=claim_compress, counts=lambda spec: True, inputs=2)
def compress(low: Lowering, group: Group, spec: CompressSpec) -> None:
    """List the places that are kept, and copy the slices there; a condition may be shorter than the axis, or longer."""
    node = group.node
    data, condition, length = low.of(node.inputs[0]), low.of(node.inputs[1]), low.counter()
    shape, axis = ((product(data.shape),), 0) if spec.axis is None else (data.shape, spec.axis)
    outer, inner = product(shape[:axis]), product(shape[axis + 1 :])
    most = minimum(condition.shape[0], shape[axis])
    places = low.temporary(DataType.INT64, (most,))
    _list_set(low, group, BOOL, (condition, places, length), (most,))
    result = low.result_up_to(node.output, (*shape[:axis], most, *shape[axis + 1 :]), length, axis)

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        block = max(1, _TAKEN_ELEMENTS // max(sizes(inner), 1))
        blocks = -(-sizes(most) // block)
        return [sizes(shape[axis]), sizes(inner), block, max(blocks, 1)], sizes(outer) * blocks

    symbol = low.kernel(TakenKernel(spec.element, inner == 1))
    low.step(group, symbol, [data, places, length, result], writes=[3], plan=plan)
