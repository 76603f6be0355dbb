"""Nodes as an ONNX model of their own."""

from __future__ import annotations

from support.models import graph

from sardonyx.formats import onnx as onnx_format
from sardonyx.ir import Graph, Value
from sardonyx.partition.as_model import base_versions, has_same_meaning, write_nodes

WEIGHTED = """graph(x: float[n, 64]) -> (y: float[n, 64]) {
    w: float[64, 64] = ... 1
    b: float[64] = ... 2
    m = MatMul(x, w)
    y = Add(m, b)
}"""


def _is_large(value: Value) -> bool:
    return value.constant is not None and value.constant.size > 1000


def _written(held: Graph) -> bytes:
    constants = list(held.initializers.values())
    return write_nodes(held, held.inputs, constants, held.outputs, base_versions(held), _is_large)


def test_weights_that_are_left_out_are_inputs_and_others_are_written() -> None:
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
    assert has_same_meaning(gelu, 13)
    assert has_same_meaning(relu, 13)


def test_a_node_that_means_something_else_under_another_version_does_not_mean_the_same() -> None:
    """Softmax of version 11 flattens what comes before its axis."""
    (node,) = graph("graph(x: float[2, 3]) -> (y: float[2, 3]) { y = Softmax:11(x) }")
    assert has_same_meaning(node, 12)
    assert not has_same_meaning(node, 13)
