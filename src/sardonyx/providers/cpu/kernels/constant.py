"""Operators that make tensors of shapes and a few numbers."""

from __future__ import annotations

import numpy as np

from sardonyx.codegen.emit.types import BOOL
from sardonyx.codegen.kernels.fill import TASK_ELEMENTS, write_count, write_fill, write_store
from sardonyx.dtypes import DataType
from sardonyx.ir import Node, Value
from sardonyx.ir.shape import product
from sardonyx.providers.cpu.expressions import element_type
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.lowering import Lowering, lowers
from sardonyx.providers.cpu.operands import given
from sardonyx.providers.cpu.size_values import Elements
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.strided import moved_type

__all__ = ["store_sizes"]


def store_sizes(low: Lowering, node: Node, elements: tuple[Elements, ...]) -> None:
    """Add the steps that store the outputs of a node whose elements are sizes."""
    for value, dims in zip(node.outputs, elements, strict=True):
        _store(low, node, value, dims)


def _store(low: Lowering, node: Node, value: Value, dims: Elements) -> None:
    result = low.result(value)
    kind = element_type(result.dtype)
    if kind is None:
        raise TypeError(f"kernels do not store elements of {result.dtype}")
    symbol = low.kernel(f"store_{result.dtype}_{low.target.isa}", lambda module, name: write_store(module, name, kind))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        return [len(dims), *(sizes(dim) for dim in dims)], 1

    low.step(Group(node, []), symbol, [result], writes=[0], plan=plan)


def _check_constant_of_shape(node: Node) -> str | None:
    return None if moved_type(node.output.dtype) is not None else f"elements of type {node.output.dtype}"


@lowers("ConstantOfShape", check=_check_constant_of_shape)
def constant_of_shape(low: Lowering, group: Group) -> None:
    """Fill the output, whose shape is known by the time of binding."""
    node = group.anchor
    result, kind = low.result(node.output), moved_type(node.output.dtype)
    if kind is None:
        raise TypeError("the check lets only types that kernels move through")
    tensor = node.get("value")
    number = low.constant(np.zeros(1, result.dtype.numpy) if tensor is None else tensor.numpy().reshape(-1)[:1].copy())
    symbol = low.kernel(f"fill_{kind.size_bytes}_{low.target.isa}", lambda module, name: write_fill(module, name, kind))
    count = product(result.shape)

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        elements = sizes(count)
        return [elements], -(-elements // TASK_ELEMENTS)

    low.step(group, symbol, [number, result], writes=[1], plan=plan)


_COUNTED = (DataType.INT16, DataType.INT32, DataType.INT64, DataType.FLOAT, DataType.DOUBLE)


def _check_range(node: Node) -> str | None:
    if any(value is None or value.shape is None for value in node.inputs[:3]) or len(node.inputs) < 3:
        return "an input is left out"
    if {value.dtype for value in (*node.inputs[:3], node.output) if value is not None} - {node.output.dtype}:
        return "its inputs are of different types"
    kind = element_type(node.output.dtype)
    if node.output.dtype not in _COUNTED or kind is None or kind == BOOL:
        return f"elements of type {node.output.dtype}"
    return None if all(product(given(value).shape or ()) == 1 for value in node.inputs[:3]) else "its inputs are no scalars"


@lowers("Range", check=_check_range)
def range_(low: Lowering, group: Group) -> None:
    """Count; how far is known by the time of binding."""
    node = group.anchor
    start, delta, result = low.of(node.inputs[0]), low.of(node.inputs[2]), low.result(node.output)
    kind = element_type(result.dtype)
    if kind is None:
        raise TypeError("the check lets only types that kernels compute with through")
    symbol = low.kernel(f"count_{result.dtype}_{low.target.isa}", lambda module, name: write_count(module, name, kind))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        elements = sizes(result.shape[0])
        return [elements], -(-elements // TASK_ELEMENTS)

    low.step(group, symbol, [start, delta, result], writes=[2], plan=plan)
