"""One node of com.microsoft in onnxruntime, for tests that compare with it; they are skipped where it is not installed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import helper

from sardonyx.dtypes import DataType

__all__ = ["node_model", "run_peer"]

_SCORES = ("DecoderMaskedMultiHeadAttention", "MultiHeadAttention")
"""Operators whose fourth output is the scores, in a type of their own."""


def node_model(op_type: str, inputs: Sequence[Any], outputs: int, **attributes: Any) -> Any:
    """A model of one node on inputs of these types and shapes, None for one left out; Any as protobuf's messages are."""
    names = [f"x{index}" if array is not None else "" for index, array in enumerate(inputs)]
    while names and not names[-1]:
        names.pop()
    results = [f"y{index}" for index in range(outputs)]
    node = helper.make_node(op_type, names, results, domain="com.microsoft", **attributes)
    declared = [
        helper.make_tensor_value_info(f"x{index}", int(DataType.from_numpy(array.dtype)), array.shape)
        for index, array in enumerate(inputs)
        if array is not None
    ]
    made = [helper.make_empty_tensor_value_info(name) for name in results]
    if op_type in _SCORES and outputs > 3:  # onnxruntime asks for a declared type: no input has it
        made[3] = helper.make_tensor_value_info(results[3], int(DataType.FLOAT), None)
    graph = helper.make_graph([node], "peer", declared, made)
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def run_peer(op_type: str, *inputs: Any, outputs: int = 1, **attributes: Any) -> list[Any]:
    """What onnxruntime computes for the node."""
    onnxruntime = pytest.importorskip("onnxruntime")
    proto = node_model(op_type, inputs, outputs, **attributes)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    feed = {f"x{index}": np.asarray(array) for index, array in enumerate(inputs) if array is not None}
    found: list[Any] = session.run(None, feed)
    return found
