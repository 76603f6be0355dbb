"""Changes of the nodes of an onnx.ModelProto."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper

import sardonyx as ort
from sardonyx.errors import InvalidArgument
from sardonyx.tools.graph_edits import GraphEdits

TEXT = """<ir_version: 10, opset_import: ["" : 21]>
main (float[2] x, float[2] s) => (float[2] y, float[2] z) <float[2] w = {1, 2}, float[2] unused = {0, 0}> {
    c = Constant<value = float {0.5}>()
    [Add_4] a = Add(x, w)
    [Add_other] y = Mul(a, w)
    z = Sub(s, a)
}"""


def _graph() -> GraphEdits:
    return GraphEdits(onnx.parser.parse_model(TEXT))


def _operators(graph: GraphEdits) -> list[str]:
    return [node.op_type for node in graph.nodes()]


def test_nodes_are_added_and_removed() -> None:
    """In the main graph, or in one of a name; an unknown one is an error."""
    graph = _graph()
    graph.add_nodes([helper.make_node("Neg", ["a"], ["n"], "N"), helper.make_node("Abs", ["a"], ["m"])], {"N": "main"})
    graph.remove_nodes([graph.graph().node[0], helper.make_node("Foo", [], [])])
    assert _operators(graph) == ["Add", "Mul", "Sub", "Neg", "Abs"]
    with pytest.raises(InvalidArgument, match="the model has no graph 'other'; it has main"):
        graph.add_node(helper.make_node("Neg", ["a"], ["k"]), "other")


def test_initializers_and_inputs_are_added_and_removed() -> None:
    """Of the main graph."""
    graph = _graph()
    tensor = onnx.numpy_helper.from_array(np.ones(2, np.float32), "v")
    graph.add_initializer(tensor)
    assert graph.get_initializer("v") is not None
    graph.remove_initializer(tensor)
    graph.remove_initializer(tensor)
    assert graph.get_initializer("v") is None
    graph.add_input(helper.make_tensor_value_info("t", 1, [2]))
    assert graph.find_graph_input("t") is not None


def test_values_are_renamed() -> None:
    """In one node or in all."""
    graph = _graph()
    graph.replace_input_of_all_nodes("a", "b")
    graph.replace_output_of_all_nodes("a", "b")
    assert (list(graph.graph().node[1].output), list(graph.graph().node[3].input)) == (["b"], ["s", "b"])
    graph.replace_node_input(graph.graph().node[3], "s", "x")
    graph.replace_node_output(graph.graph().node[3], "z", "q")
    assert (graph.graph().node[3].input[0], graph.graph().node[3].output[0]) == ("x", "q")


def test_an_output_is_renamed() -> None:
    """Unless another value has the name, or there is no such output."""
    graph = _graph()
    graph.rename_graph_output("y", "result")
    (result, _) = ort.InferenceSession(graph.model).run(None, {"x": np.ones(2, np.float32), "s": np.ones(2, np.float32)})
    assert (graph.graph().output[0].name, result.tolist()) == ("result", [2, 6])
    with pytest.raises(InvalidArgument, match="the output 'z' cannot be called 'a': another value has this name"):
        graph.rename_graph_output("z", "a")
    with pytest.raises(InvalidArgument, match="the model has no output 'y'; it has result, z"):
        graph.rename_graph_output("y", "q")


def test_names_of_nodes_are_new() -> None:
    """With the operator or a prefix, and a number above those in use."""
    graph = _graph()
    assert [graph.create_node_name(*given) for given in (("Add",), ("Conv",), ("Conv", "mine"), ("Conv", "mine_"))] == [
        "Add_5",
        "Conv_0",
        "mine_0",
        "mine_0",
    ]


def test_constants_that_nothing_reads_are_removed() -> None:
    """Those of nodes and of initializers."""
    graph = _graph()
    graph.remove_unused_constant()
    assert (_operators(graph), [tensor.name for tensor in graph.graph().initializer]) == (["Add", "Mul", "Sub"], ["w"])


def test_what_no_output_needs_is_removed() -> None:
    """Of all outputs, or of those that are named; inputs only where allowed."""
    graph = _graph()
    graph.update_graph()
    assert (_operators(graph), len(graph.graph().input)) == (["Add", "Mul", "Sub"], 2)
    graph.prune_graph(["y"], allow_remove_graph_inputs=False)
    assert (_operators(graph), len(graph.graph().input)) == (["Add", "Mul"], 2)
    graph.prune_graph(["y"])
    assert [value.name for value in graph.graph().input] == ["x"]
    assert ort.InferenceSession(graph.model).run(None, {"x": np.ones(2, np.float32)})[0].tolist() == [2, 6]
    with pytest.raises(InvalidArgument, match="the model has no output 'z'; it has y"):
        graph.prune_graph(["z"])


def test_nodes_are_ordered() -> None:
    """Each after what it reads; what is in order stays; a circle is an error."""
    graph = _graph()
    nodes = list(graph.graph().node)
    graph.topological_sort()
    assert list(graph.graph().node) == nodes
    del graph.graph().node[:]
    graph.graph().node.extend(nodes[::-1])
    graph.topological_sort(is_deterministic=True)
    assert _operators(graph) == ["Add", "Sub", "Mul", "Constant"]
    graph.replace_node_input(graph.graph().node[0], "x", "y")
    with pytest.raises(InvalidArgument, match="in a circle, Add 'Add_4' among them"):
        graph.topological_sort()


def test_values_that_bodies_read_are_needed() -> None:
    """Of an If, whose branch reads a value of the main graph."""
    graph = GraphEdits(
        onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 21]>
main (bool c, float[2] x) => (float[2] y) {
    y = If (c) <then_branch = t () => (float[2] p) { p = Neg(a) }, else_branch = e () => (float[2] q) { q = Abs(a) }>
    a = Exp(x)
}""")
    )
    graph.topological_sort()
    assert [node.op_type for node in graph.graph().node] == ["Exp", "If"]
    graph.prune_graph()
    assert [node.op_type for node in graph.graph().node] == ["Exp", "If"]


def test_declarations_of_values_inside_can_be_removed() -> None:
    """Those of inputs and outputs stay."""
    graph = _graph()
    graph.model.graph.value_info.add().name = "a"
    graph.clean_shape_infer()
    assert not graph.model.graph.value_info
    assert graph.model.graph.input
