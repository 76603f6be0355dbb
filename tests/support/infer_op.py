"""Infer one node as the engine would, without a model around it."""

from __future__ import annotations

from typing import Any

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidGraph
from sardonyx.ir import Expr, Node, Shape, TensorType, Value, symbol
from sardonyx.ir.shape import is_anonymous
from sardonyx.ops.fact import Fact, known, tensor
from sardonyx.ops.infer import infer_node
from sardonyx.trace import Event, observe

A, B = symbol("a"), symbol("b")
"""Two sizes."""

LATEST = {"": 28, "ai.onnx.ml": 5}


def floats(*shape: Any) -> Fact:
    """A float tensor of this shape."""
    return tensor(DataType.FLOAT, shape)


def ints(*values: Any) -> Fact:
    """A known int64 vector, whose elements may be symbolic or None."""
    if all(isinstance(value, int) for value in values):
        return known(DataType.INT64, np.array(values, np.int64))
    array = np.empty(len(values), object)
    array[:] = values
    return known(DataType.INT64, array)


def scalar(value: Any) -> Fact:
    """A known scalar, int64 or, for a float, float."""
    array = np.array(value, np.float32 if isinstance(value, float) else np.int64)
    return known(DataType.FLOAT if isinstance(value, float) else DataType.INT64, array)


def infer_op(
    op_type: str,
    *inputs: Fact | None,
    domain: str = "",
    version: int | None = None,
    outputs: int = 1,
    events: int = 0,
    **attributes: Any,
) -> tuple[Fact, ...]:
    """The facts of all outputs of `op_type` at opset `version`, the newest by default, if the trace tells of `events` events."""
    values = [None if fact is None else Value(f"x{index}") for index, fact in enumerate(inputs)]
    facts = {value: fact for value, fact in zip(values, inputs, strict=True) if value is not None and fact is not None}
    node = Node(op_type, values, outputs, attributes, domain=domain, version=version or LATEST.get(domain, 1))
    seen: list[Event] = []
    with observe(seen.append):
        found = infer_node(node, facts)
    assert len(seen) == events, seen
    return found


def infer_shape(op_type: str, *inputs: Fact | None, **options: Any) -> Shape | None:
    """The shape of the first output, with "?" as the name of every anonymous dimension."""
    return plain(infer_op(op_type, *inputs, **options)[0])


def plain(fact: Fact) -> Shape | None:
    """The shape of a fact, with "?" as the name of every anonymous dimension."""
    if fact.shape is None:
        return None
    return tuple(UNKNOWN_DIM if isinstance(dim, Expr) and is_anonymous(dim) else dim for dim in fact.shape)


UNKNOWN_DIM = symbol("?")
"""Stands for any anonymous dimension."""


def dtype_of(op_type: str, *inputs: Fact | None, **options: Any) -> DataType | None:
    """The element type of the first output."""
    return infer_op(op_type, *inputs, **options)[0].dtype


def error_of(op_type: str, *inputs: Fact | None, **options: Any) -> str:
    """The message with which the node is refused."""
    try:
        infer_op(op_type, *inputs, **options)
    except InvalidGraph as error:
        return str(error)
    raise AssertionError(f"{op_type} was accepted")


__all__ = [
    "UNKNOWN_DIM",
    "A",
    "B",
    "TensorType",
    "dtype_of",
    "error_of",
    "floats",
    "infer_op",
    "infer_shape",
    "ints",
    "plain",
    "scalar",
]
