"""ONNX messages for tests of the formats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

__all__ = ["info", "model", "node", "tensor"]

node = helper.make_node
"""Make a NodeProto: node(op_type, inputs, outputs, **attributes)."""


def info(name: str, shape: Sequence[int | str | None] | None = (2,), dtype: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    """A tensor value called `name`."""
    return helper.make_tensor_value_info(name, dtype, shape)


def tensor(name: str, array: Any) -> onnx.TensorProto:
    """A tensor with its elements in raw_data."""
    return numpy_helper.from_array(np.asarray(array), name)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[Any] = ("x",),
    outputs: Sequence[Any] = ("y",),
    initializers: Sequence[onnx.TensorProto] = (),
    *,
    ir_version: int = 10,
    imports: dict[str, int] | None = None,
    functions: Sequence[onnx.FunctionProto] = (),
) -> onnx.ModelProto:
    """A model; inputs and outputs are ValueInfoProto, or names of float tensors of shape [2]."""
    graph = helper.make_graph(
        list(nodes),
        "main",
        [info(value) if isinstance(value, str) else value for value in inputs],
        [info(value) if isinstance(value, str) else value for value in outputs],
        list(initializers),
    )
    opsets = [helper.make_opsetid(domain, version) for domain, version in (imports or {"": 21}).items()]
    made: onnx.ModelProto = helper.make_model(graph, opset_imports=opsets, functions=list(functions))
    made.ir_version = ir_version
    return made
