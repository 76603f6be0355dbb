"""Operators that select elements by what they are; how many there are is known only when they have run."""

from __future__ import annotations

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import Type
from sardonyx.codegen.kernels.select import write_chosen, write_nonzero, write_taken
from sardonyx.codegen.target import Target
from sardonyx.dtypes import DataType
from sardonyx.ir import Node
from sardonyx.ir.shape import minimum, product
from sardonyx.ops.views.gather import Compress
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.expressions import element_type
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import given, moved_as, shape_of
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.strided import dense_strides


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
    """Lower to a kernel that counts, then lists; there may be as many as there are elements."""
    source, length = low.of(group.node.inputs[0]), low.counter()
    shape, rank = source.shape, len(source.shape)
    result = low.result_up_to(group.node.output, (rank, product(shape)), length, 1)
    symbol = low.kernel(NonZeroKernel(spec.kind, rank))
    axes = list(zip(shape[:-1], dense_strides(shape[:-1]), strict=True))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        return [sizes.product(shape[:-1]), sizes(shape[-1]), *(max(sizes(word), 1) for axis in axes for word in axis)], 1

    low.step(group, symbol, [source, result, length], writes=[1, 2], plan=plan)


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
class ChosenKernel:
    """The places where a condition holds."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"chosen_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_chosen(module, symbol)


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
    low.step(group, low.kernel(ChosenKernel()), [condition, places, length], writes=[1, 2], plan=lambda sizes: ([sizes(most)], 1))
    result = low.result_up_to(node.output, (*shape[:axis], most, *shape[axis + 1 :]), length, axis)

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        return [sizes(shape[axis]), sizes(inner)], sizes(outer)

    symbol = low.kernel(TakenKernel(spec.element, inner == 1))
    low.step(group, symbol, [data, places, length, result], writes=[3], plan=plan)
