"""Operators that make tensors of shapes and a few numbers."""

from __future__ import annotations

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, F64, I16, I32, I64, Type
from sardonyx.codegen.kernels.fill import TASK_ELEMENTS, write_count, write_eye, write_fill, write_store
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array, DataType
from sardonyx.ir import Node
from sardonyx.ir.shape import product
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.expressions import element_type
from sardonyx.providers.cpu.fuse import Group, Member
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import given, shape_of
from sardonyx.providers.cpu.size_claims import Elements
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer
from sardonyx.providers.cpu.strided import moved_type

__all__ = ["store_sizes", "store_words"]


def store_sizes(low: Lowering, node: Node, elements: tuple[Elements, ...]) -> None:
    """Add the steps that store the outputs of a node whose elements are sizes."""
    for value, dims in zip(node.outputs, elements, strict=True):
        store_words(low, node, low.result(value), dims)


@dataclasses.dataclass(frozen=True, slots=True)
class StoreKernel:
    """Numbers among the parameters, stored."""

    dtype: DataType
    """The type of elements."""
    kind: Type
    """The kernel compiler's name for it."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"store_{self.dtype}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_store(module, symbol, self.kind)


def store_words(low: Lowering, node: Node, result: Buffer, dims: Elements) -> None:
    """Add the step that stores sizes in a buffer of as many elements, for `node`."""
    kind = element_type(result.dtype)
    if kind is None:
        raise TypeError(f"kernels do not store elements of {result.dtype}")
    symbol = low.kernel(StoreKernel(result.dtype, kind))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        return [len(dims), *(sizes(dim) for dim in dims)], 1

    low.step(Group(Member(node, dims), []), symbol, [result], writes=[0], plan=plan)


@dataclasses.dataclass(frozen=True, slots=True)
class FillSpec:
    """A tensor whose elements are all the same."""

    kind: Type
    """The type as which the element is stored."""
    element: Array
    """The element, in an array of one."""


def claim_constant_of_shape(node: Node) -> FillSpec | str:
    """Return what a ConstantOfShape stores, or why it cannot be compiled."""
    dtype, tensor = node.output.dtype, node.tensor("value")
    kind = moved_type(dtype)
    if kind is None:
        return f"elements of type {dtype}"
    element = np.zeros(1, np.float32) if tensor is None else tensor.numpy().reshape(-1).copy()
    if element.size != 1 or DataType.from_numpy(element.dtype) is not dtype:
        return f"its value is not one element of type {dtype}"
    return FillSpec(kind, element)


@dataclasses.dataclass(frozen=True, slots=True)
class FillKernel:
    """One element everywhere."""

    kind: Type
    """The type as which it is stored."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"fill_{self.kind.size_bytes}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_fill(module, symbol, self.kind)


@lowers("ConstantOfShape", claim=claim_constant_of_shape)
def constant_of_shape(low: Lowering, group: Group, spec: FillSpec) -> None:
    """Fill the output, whose shape is known by the time of binding."""
    result = low.result(group.node.output)
    symbol = low.kernel(FillKernel(spec.kind))
    count = product(result.shape)

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        elements = sizes(count)
        return [elements], -(-elements // TASK_ELEMENTS)

    low.step(group, symbol, [low.constant(spec.element), result], writes=[1], plan=plan)


_COUNTED = {DataType.INT16: I16, DataType.INT32: I32, DataType.INT64: I64, DataType.FLOAT: F32, DataType.DOUBLE: F64}


@dataclasses.dataclass(frozen=True, slots=True)
class RangeSpec:
    """The elements of a Range."""

    dtype: DataType
    """The type of its elements."""
    kind: Type
    """The kernel compiler's name for it."""


def claim_range(node: Node) -> RangeSpec | str:
    """Return the type that a Range counts in, or why it cannot be compiled."""
    dtype = node.output.dtype
    if any(given(value).dtype is not dtype for value in node.inputs[:3]):
        return "its inputs are of different types"
    if dtype is None or dtype not in _COUNTED:
        return f"elements of type {dtype}"
    if any(product(shape_of(value)) != 1 for value in node.inputs[:3]):
        return "one of its inputs is no scalar"
    if len(shape_of(node.output)) != 1:
        return f"its output has {len(shape_of(node.output))} dimensions"
    return RangeSpec(dtype, _COUNTED[dtype])


@dataclasses.dataclass(frozen=True, slots=True)
class CountKernel:
    """Numbers in even steps."""

    dtype: DataType
    """The type of elements."""
    kind: Type
    """The kernel compiler's name for it."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"count_{self.dtype}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_count(module, symbol, self.kind)


@lowers("Range", claim=claim_range, inputs=3)
def range_(low: Lowering, group: Group, spec: RangeSpec) -> None:
    """Count; how far is known by the time of binding."""
    node = group.node
    start, delta, result = low.of(node.inputs[0]), low.of(node.inputs[2]), low.result(node.output)
    symbol = low.kernel(CountKernel(spec.dtype, spec.kind))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        elements = sizes(result.shape[0])
        return [elements], -(-elements // TASK_ELEMENTS)

    low.step(group, symbol, [start, delta, result], writes=[2], plan=plan)


@dataclasses.dataclass(frozen=True, slots=True)
class EyeSpec:
    """A matrix with ones on a diagonal."""

    dtype: DataType
    """The type of its elements."""
    kind: Type
    """The type as which they are stored."""
    diagonal: int
    """How far right of the first diagonal it lies."""


def claim_eye_like(node: Node) -> EyeSpec | str:
    """Return what an EyeLike makes, or why it cannot be compiled."""
    dtype = node.output.dtype
    kind = moved_type(dtype)
    if dtype is None or kind is None:
        return f"elements of type {dtype}"
    if len(shape_of(node.inputs[0])) != 2:
        return f"its input is no matrix, but has {len(shape_of(node.inputs[0]))} dimensions"
    return EyeSpec(dtype, kind, node.integer("k", 0))


@dataclasses.dataclass(frozen=True, slots=True)
class EyeKernel:
    """A matrix with an element on a diagonal."""

    kind: Type
    """The type as which elements are stored."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"eye_{self.kind.size_bytes}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_eye(module, symbol, self.kind)


@lowers("EyeLike", claim=claim_eye_like)
def eye_like(low: Lowering, group: Group, spec: EyeSpec) -> None:
    """Fill rows with zeros, and put a one in each; of the input only the shape is wanted."""
    rows, columns = shape_of(group.node.inputs[0])
    result = low.result(group.node.output)

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        height, width = sizes(rows), sizes(columns)
        block = max(1, TASK_ELEMENTS // max(width, 1))
        return [height, width, max(-height, min(width, spec.diagonal)), block], -(-height // block)

    one = low.constant(np.ones(1, spec.dtype.numpy))
    low.step(group, low.kernel(EyeKernel(spec.kind)), [one, result], writes=[1], plan=plan)
