"""Types of values changed, needless Casts removed."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto

from sardonyx.errors import InvalidArgument
from sardonyx.tools.graph_casts import GraphCasts


def parsed(nodes: str, inputs: str = "float[n] x", outputs: str = "float[n] y") -> GraphCasts:
    """Return a graph of nodes."""
    text = f'<ir_version: 10, opset_import: ["" : 21]> main ({inputs}) => ({outputs}) {{ {nodes} }}'
    return GraphCasts(onnx.parser.parse_model(text))


def operators(graph: GraphCasts) -> list[str]:
    """Return the operators of the nodes."""
    return [node.op_type for node in graph.nodes()]


def test_an_input_of_another_type() -> None:
    """A Cast to the former type goes in; one to the new type is needless."""
    graph = parsed("i = Cast<to = 6>(x) j = Identity(x) y = Cast<to = 1>(i)", "int64[n] x")
    added, removed = graph.change_graph_input_type(graph.model.graph.input[0], TensorProto.INT32)
    assert added is not None
    assert [node.output[0] for node in removed] == ["i"]
    assert graph.model.graph.input[0].type.tensor_type.elem_type == TensorProto.INT32
    assert (added.input[0], graph.get_node_attribute(added, "to")) == ("x", TensorProto.INT64)
    graph.topological_sort()
    onnx.checker.check_model(graph.model, full_check=True)
    assert graph.change_graph_input_type(graph.model.graph.input[0], TensorProto.INT32) == (None, [])


def test_an_output_of_another_type() -> None:
    """A Cast makes it, also where nodes read the value."""
    graph = parsed("y = Exp(x) z = Neg(y)", outputs="float[n] y, float[n] z")
    added = graph.change_graph_output_type(graph.model.graph.output[0], TensorProto.DOUBLE)
    assert added is not None
    assert (added.output[0], graph.model.graph.output[0].type.tensor_type.elem_type) == ("y", TensorProto.DOUBLE)
    graph.topological_sort()
    onnx.checker.check_model(graph.model, full_check=True)
    assert graph.change_graph_output_type(graph.model.graph.output[0], TensorProto.DOUBLE) is None


def test_values_of_other_models() -> None:
    """They are an error that lists those of this one."""
    graph = parsed("y = Exp(x)")
    with pytest.raises(InvalidArgument, match="no input 'q'; it has x"):
        graph.change_graph_input_type(onnx.helper.make_tensor_value_info("q", 1, [1]), 6)
    with pytest.raises(InvalidArgument, match="no output 'q'; it has y"):
        graph.change_graph_output_type(onnx.helper.make_tensor_value_info("q", 1, [1]), 6)


def test_a_cast_of_a_cast() -> None:
    """It reads what the first one reads, which goes where nothing else reads it."""
    graph = parsed("h = Cast<to = 10>(x) y = Cast<to = 1>(h)")
    graph.remove_cascaded_cast_nodes()
    assert [node.input[0] for node in graph.nodes()] == ["x"]


def test_casts_to_the_type_that_is_there() -> None:
    """They go, also before an output; one between an input and an output stays."""
    graph = parsed("e = Exp(x) a = Cast<to = 1>(e) y = Neg(a)")
    graph.remove_useless_cast_nodes()
    assert operators(graph) == ["Exp", "Neg"]
    graph = parsed("e = Exp(x) y = Cast<to = 1>(e)")
    graph.remove_useless_cast_nodes()
    assert (operators(graph), graph.nodes()[0].output[0]) == (["Exp"], "y")
    graph = parsed("y = Cast<to = 1>(x)")
    graph.remove_useless_cast_nodes()
    assert operators(graph) == ["Cast"]


def test_inference_can_be_disabled() -> None:
    """Until another model is wrapped."""
    graph = parsed("y = Exp(x)")
    found = graph.infer_runtime_shape({"n": 3})
    assert found is not None
    assert found.get_edge_shape("y") == [3]
    graph.disable_shape_inference()
    assert graph.infer_runtime_shape(update=True) is None
    graph.initialize(graph.model)
    assert graph.infer_runtime_shape() is not None


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [("y = Exp(x)", False), ("h = Cast<to = 10>(x) y = Cast<to = 1>(h)", True), ("y = Cast<to = 1>(x)", False)],
)
def test_whether_a_model_has_float16(nodes: str, expected: bool) -> None:
    """A Cast to it counts."""
    assert parsed(nodes).use_float16() == expected
