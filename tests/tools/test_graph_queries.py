"""Questions about the nodes of an onnx.ModelProto."""

from __future__ import annotations

import onnx
import pytest
from support.models import model
from support.session_models import BRANCH

from sardonyx.tools.graph_queries import GraphQueries
from sardonyx.tools.models import to_proto

MODEL = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 21]>
main (float[n, 4] x, float[4] s) => (float[n, 4] y) <float[4] w = {1, 2, 3, 4}> {
    c = Constant<value = float {0.5}>()
    a = Add(x, w)
    b = Mul(a, c)
    d = Exp(b)
    y = Add(d, a)
}""")
GRAPH = GraphQueries(MODEL)
CONSTANT, ADD, MUL, EXP, LAST = MODEL.graph.node


def test_readers_and_makers_of_values() -> None:
    """By name, and by node."""
    assert GRAPH.input_name_to_nodes()["a"] == [MUL, LAST]
    assert GRAPH.output_name_to_node()["d"] == EXP
    assert GRAPH.get_children(ADD) == [MUL, LAST]
    assert (GRAPH.get_children(ADD, output_index=0), GRAPH.get_children(ADD, output_index=1)) == ([MUL, LAST], [])
    assert GRAPH.get_parents(LAST) == [EXP, ADD]
    assert (GRAPH.get_parent(LAST, 1), GRAPH.get_parent(ADD, 0), GRAPH.get_parent(ADD, 5)) == (ADD, None, None)


def test_bodies_are_left_out_on_request() -> None:
    """Of an If, whose branches make values of their own."""
    found = GraphQueries(to_proto(model(BRANCH)))
    assert len(found.output_name_to_node()) > len(found.output_name_to_node(exclude_subgraphs=True))
    assert sum(map(len, found.input_name_to_nodes().values())) > sum(map(len, found.input_name_to_nodes(True).values()))
    assert found.get_graph_by_node(found.graphs()[1].node[0]) == found.graphs()[1]
    assert len(found.get_graphs_output_names()) == 3


def test_the_nearest_node_of_an_operator() -> None:
    """Behind a node, or before it; only a neighbour where asked for."""
    assert GRAPH.find_first_child_by_type(ADD, "Exp") == EXP
    assert GRAPH.find_first_child_by_type(ADD, "Exp", recursive=False) is None
    assert GRAPH.find_first_parent_by_type(LAST, "Mul") == MUL
    assert GRAPH.find_first_parent_by_type(EXP, "Mul", recursive=False) == MUL
    assert GRAPH.find_first_parent_by_type(LAST, "Conv") is None


def test_all_nodes_that_depend_on_a_node_or_it_on_them() -> None:
    """Each once; where one is not to be passed, what lies behind it is left out."""
    assert GRAPH.get_children_subgraph_nodes(ADD, []) == [MUL, LAST, EXP]
    assert GRAPH.get_children_subgraph_nodes(MUL, [EXP]) == []
    assert GRAPH.get_parent_subgraph_nodes(EXP, []) == [MUL, ADD, CONSTANT]
    assert GRAPH.get_parent_subgraph_nodes(EXP, [MUL]) == []
    assert (GRAPH.get_graph_inputs(LAST), GRAPH.get_graph_inputs(LAST, recursive=True)) == ([], ["x"])


def test_constants() -> None:
    """Of nodes and of initializers."""
    assert [GRAPH.get_constant_value(name) for name in ("c", "a")] == [0.5, None]
    assert GRAPH.get_constant_input(EXP) == (None, None)
    index, value = GRAPH.get_constant_input(ADD)
    assert index == 1
    assert value is not None
    assert value.tolist() == [1, 2, 3, 4]
    assert (GRAPH.find_constant_input(MUL, 0.5), GRAPH.find_constant_input(MUL, 0.6), GRAPH.find_constant_input(ADD, 1)) == (
        1,
        -1,
        -1,
    )
    assert GRAPH.has_constant_input(MUL, 0.5)
    assert not GRAPH.has_constant_input(EXP, 0.5)
    assert GRAPH.is_constant_with_specified_dimension("w", 1, "weight")
    assert not GRAPH.is_constant_with_specified_dimension("w", 2, "weight")


@pytest.mark.parametrize(("name", "dtype", "shape"), [("x", 1, ["n", 4]), ("w", 1, [4]), ("y", 1, ["n", 4]), ("a", None, None)])
def test_types_and_shapes_that_the_model_states(name: str, dtype: int | None, shape: list[int | str] | None) -> None:
    """Symbolic dimensions by name; None for what it does not state."""
    assert (GRAPH.get_dtype(name), GRAPH.get_shape(name)) == (dtype, shape)


def test_parts_are_found_by_name() -> None:
    """None for others."""
    assert GRAPH.find_graph_input("x") == MODEL.graph.input[0]
    assert GRAPH.find_graph_output("y") == MODEL.graph.output[0]
    assert (GRAPH.find_graph_input("y"), GRAPH.find_graph_output("x"), GRAPH.get_graph_by_name("other")) == (None, None, None)
    assert GRAPH.get_graph_by_name("main") == GRAPH.graph()
    assert GRAPH.get_node_attribute(CONSTANT, "value") == CONSTANT.attribute[0].t
    assert GRAPH.get_node_attribute(ADD, "value") is None
    assert (GRAPH.input_index("a", LAST), GRAPH.input_index("q", LAST)) == (1, -1)
    assert GRAPH.functions() == [[]]
    assert GRAPH.get_graphs_input_names() == ["x", "s"]
