"""Facts about function bodies of the standard."""

from __future__ import annotations

import onnx
import pytest

from sardonyx.dtypes import DataType
from sardonyx.ir import Graph, Node, TensorType, Value
from sardonyx.ops.function_bodies import function_body

X = Value("x", TensorType(DataType.FLOAT, (2, 3)))


def _operators(node: Node) -> list[str]:
    body = function_body(node)
    assert body is not None
    return [inner.op_type for inner in onnx.FunctionProto.FromString(body.proto).node]


def test_plain_body_is_found_for_an_older_opset() -> None:
    """Relu-14 has a body, though that is written in opset 18."""
    body = function_body(Node("Relu", [X], version=14))
    assert body is not None
    assert body.opset_imports == {"": 18}


def test_body_depends_on_attributes() -> None:
    """The body of Gelu follows its attribute."""
    assert "Erf" in _operators(Node("Gelu", [X], version=20))
    assert "Tanh" in _operators(Node("Gelu", [X], attributes={"approximate": "tanh"}, version=20))


def test_body_depends_on_input_types() -> None:
    """The body of CastLike casts to the type of its second input."""
    like = Value("like", TensorType(DataType.INT64, (1,)))
    body = function_body(Node("CastLike", [X, like], version=19))
    assert body is not None
    (cast,) = onnx.FunctionProto.FromString(body.proto).node
    assert {item.name: item.i for item in cast.attribute}["to"] == DataType.INT64


@pytest.mark.parametrize("op_type", ["Conv", "NoSuchOperator"])
def test_operator_without_body_has_none(op_type: str) -> None:
    """Primitive and unknown operators have no body."""
    assert function_body(Node(op_type, [X, X], version=13)) is None


def test_graph_attribute_needs_a_writer() -> None:
    """SequenceMap has a body only where the caller can serialize its graph."""
    node = Node("SequenceMap", [X], attributes={"body": Graph("body")}, version=17)
    assert function_body(node) is None


def test_outputs_that_the_node_leaves_out_are_no_outputs_of_its_body() -> None:
    """LayerNormalization without mean and deviation has a body with one output, which computes no other."""
    body = function_body(Node("LayerNormalization", [X, X], version=17))
    assert body is not None
    assert list(onnx.FunctionProto.FromString(body.proto).output) == ["Y"]


@pytest.mark.parametrize("version", [1 << 31, 1 << 40, (1 << 63) - 1])
def test_a_version_beyond_32_bits_is_the_newest(version: int) -> None:
    """A file may import any."""
    assert function_body(Node("Relu", [X], version=version)) is not None
    assert function_body(Node("StringNormalizer", [X], version=version)) is None


@pytest.mark.parametrize("version", [0, -1, -(1 << 40)])
def test_a_version_before_the_first_has_no_body(version: int) -> None:
    """No operator exists there."""
    assert function_body(Node("Relu", [X], version=version)) is None
