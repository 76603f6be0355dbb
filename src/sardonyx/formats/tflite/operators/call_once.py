"""Subgraphs that run once, before everything else, and say what variables are at first."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from sardonyx.dtypes import Array, DataType
from sardonyx.formats.tflite.builder import GraphBuilder
from sardonyx.formats.tflite.operator import Operator, imports
from sardonyx.formats.tflite.variables import Variables
from sardonyx.ir import Node, Tensor, TensorType, Value

__all__ = ["call_once"]


def _cast(node: Node, x: Array) -> Array:
    return x.astype(DataType(node.get("to")).numpy)


def _dequantize(node: Node, x: Array, scale: Array, point: Array) -> Array:
    return ((x.astype(np.float32) - point.astype(np.float32)) * scale).astype(np.float32)


_FOLDS: Mapping[str, Callable[..., Array]] = {"Cast": _cast, "DequantizeLinear": _dequantize}
"""What converters put between a variable and the constant that it begins with."""


@imports("CALL_ONCE")
def call_once(op: Operator) -> None:
    """Take what a subgraph assigns to variables for their values before the first run."""
    index = op.options("CallOnceOptions").integer("init_subgraph_index")
    scratch = GraphBuilder("once", op.build)
    inner = Variables(scratch, Variables(scratch))
    op.program.inline(index, op.table, scratch, inner, [])
    keys = inner.written()
    tensors = {key: _folded(inner.read(key, DataType.FLOAT, ())) for key in keys}
    for key, tensor in tensors.items():
        if tensor is not None:
            op.variables.initial[key] = tensor
    computed = [key for key in keys if tensors[key] is None]
    if computed:
        _compute(op, index, computed)


def _folded(value: Value) -> Tensor | None:
    """Return the elements of a constant, or of one in another type; None for what takes more to compute."""
    if value.constant is not None:
        return value.constant
    node = value.producer
    if node is None or node.op_type not in _FOLDS or node.attributes.keys() - {"to"}:
        return None
    inputs = [None if item is None else _folded(item) for item in node.inputs]
    if any(item is None for item in inputs):
        return None
    return Tensor.from_array(_FOLDS[node.op_type](node, *(item.numpy() for item in inputs if item is not None)))


def _compute(op: Operator, index: int, keys: list[str]) -> None:
    """Compute what variables are at first in the main graph, where runs after the first one take what was kept instead."""
    if not op.variables.is_main:
        op.unsupported(f"the variable {keys[0]!r} gets a value that is computed, in a subgraph that another one calls")
    build, variables = op.build, op.variables
    inner = Variables(build, variables)
    op.program.inline(index, op.table, build, inner, [])
    done = variables.read(f"{op.table.path}:done", DataType.BOOL, ())
    variables.write(f"{op.table.path}:done", build.constant(np.array(True)), TensorType(DataType.BOOL, ()))
    for key in keys:
        kind, computed = inner.kind(key), inner.read(key, DataType.FLOAT, ())
        if kind is None or kind.shape is None or not all(isinstance(size, int) for size in kind.shape):
            op.unsupported(f"the variable {key!r} gets a value that is computed, of a shape that the file leaves open")
        kept = variables.read(key, kind.dtype, [int(size) for size in kind.shape if isinstance(size, int)])
        variables.write(key, build.node("Where", done, kept, computed), kind)
