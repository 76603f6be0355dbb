"""Nodes written for OpenVINO."""

from __future__ import annotations

import numpy as np
import pytest
from support.models import graph

from sardonyx.formats import onnx as onnx_format
from sardonyx.ir import Graph
from sardonyx.providers.openvino.convert import as_tensor, base_versions, same_meaning, share_constants, to_onnx

WEIGHTED = """graph(x: float[n, 64]) -> (y: float[n, 64]) {
    w: float[64, 64] = ... 1
    b: float[64] = ... 2
    m = MatMul(x, w)
    y = Add(m, b)
}"""


def _written(held: Graph) -> bytes:
    constants = list(held.initializers.values())
    return to_onnx(list(held), held.inputs, constants, held.outputs, base_versions(held))


def test_large_weights_are_inputs_and_small_ones_are_written() -> None:
    """The bytes hold the bias, not the matrix."""
    model = onnx_format.load(_written(graph(WEIGHTED)))
    assert [value.name for value in model.graph.inputs] == ["i0", "w0"]
    assert list(model.graph.initializers) == ["w1"]


def test_equal_nodes_are_equal_bytes() -> None:
    """Names of values, nodes and symbols do not matter, neither do the elements of large weights."""
    other = WEIGHTED.replace("... 1", "... 3").replace("[n,", "[batch,").replace("m =", "product =").replace("(m,", "(product,")
    assert _written(graph(WEIGHTED)) == _written(graph(other))


def test_versions_are_the_lowest_of_each_domain() -> None:
    """A node of a newer version is written under the model's own, where it means the same."""
    held = graph("graph(x: float[2]) -> (y: float[2]) { a = Gelu:20(x)\nb = com.microsoft.QuickGelu(a)\ny = Relu(b) }", opset=13)
    gelu, _, relu = held
    assert base_versions(held) == {"": 13, "com.microsoft": 1}
    assert same_meaning(gelu, 13)
    assert same_meaning(relu, 13)


def test_a_node_that_means_something_else_under_another_version_does_not_mean_the_same() -> None:
    """Softmax of version 11 flattens what comes before its axis."""
    (node,) = graph("graph(x: float[2, 3]) -> (y: float[2, 3]) { y = Softmax:11(x) }")
    assert same_meaning(node, 12)
    assert not same_meaning(node, 13)


def test_read_only_and_strange_arrays_become_tensors() -> None:
    """OpenVINO asks for writeable memory although it only reads; dense arrays are not copied."""
    pytest.importorskip("openvino")
    dense = np.arange(6, dtype=np.float32).reshape(2, 3)
    dense.flags.writeable = False
    tensor = as_tensor(dense)
    assert tensor.data.ctypes.data == dense.ctypes.data
    unaligned = np.zeros(4 * 6 + 1, np.uint8)[1:].view(np.float32)
    assert as_tensor(unaligned).data.ctypes.data == unaligned.ctypes.data
    assert as_tensor(dense.T).data.tolist() == dense.T.tolist()
    assert as_tensor(np.zeros((0, 3), np.float32)).data.shape == (0, 3)
    assert as_tensor(np.float32(3)[...]).data.shape == ()


def test_weights_are_shared() -> None:
    """The constants of the read model are the arrays that it was given."""
    openvino = pytest.importorskip("openvino")
    model = openvino.Core().read_model(_written(graph(WEIGHTED)))
    weight = np.ones((64, 64), np.float32)
    share_constants(model, [weight])
    constants = [item for item in model.get_ops() if item.get_type_name() == "Constant"]
    assert weight.ctypes.data in [item.data.ctypes.data for item in constants]
    assert len(model.inputs) == 1
