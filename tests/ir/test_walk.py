"""Walks over graphs, subgraphs and functions."""

from __future__ import annotations

from sardonyx.ir import Function, Graph, Model, Node, Value
from sardonyx.ir.walk import all_graphs, all_nodes, captured_values, nested_graphs

X, C = Value("x"), Value("c")


def leaf(name: str, *read: Value) -> Graph:
    node = Node("Neg", read or [X], 1, version=21, name=f"{name}.node")
    return Graph(name, [], [node.output], nodes=[node])


def choice(name: str, *branches: Graph) -> Node:
    return Node("If", [C], 1, {f"branch_{index}": branch for index, branch in enumerate(branches)}, version=21, name=name)


def test_graphs_come_before_what_is_nested_in_them() -> None:
    """The order is that of the nodes and attributes, outer before inner."""
    inner = Graph("b", nodes=[choice("inner", leaf("b.0"), leaf("b.1"))])
    outer = Graph("main", nodes=[choice("first", leaf("a"), inner), choice("second", leaf("c"))])
    assert [graph.name for graph in nested_graphs(outer)] == ["main", "a", "b", "b.0", "b.1", "c"]


def test_functions_are_walked_after_the_main_graph() -> None:
    """`all_graphs` and `all_nodes` include bodies of functions and their subgraphs."""
    model = Model(Graph("main", nodes=[choice("if", leaf("a"))]), {"": 21})
    model.functions["d", "F", ""] = Function("d", "F", Graph("F", nodes=[choice("f.if", leaf("f.a"))]), {"": 21})
    assert [graph.name for graph in all_graphs(model)] == ["main", "a", "F", "f.a"]
    assert [node.name for node in all_nodes(model)] == ["if", "a.node", "f.if", "f.a.node"]


def test_captured_values_are_those_from_outside() -> None:
    """Own inputs, initializers and outputs are not captured; what a nested graph reads from further out is, once."""
    own, outside, other = Value("own"), Value("outside"), Value("other")
    node = Node("Add", [own, outside], 1, version=21)
    nested = choice("if", leaf("a", outside), leaf("b", node.output), leaf("d", other))
    graph = Graph("body", [own], [node.output], nodes=[node, nested])
    assert captured_values(graph) == [outside, C, other]


def test_an_output_from_outside_is_captured() -> None:
    """A graph may give out a value that it does not make."""
    assert captured_values(Graph("body", [], [X])) == [X]


def test_deep_nesting_does_not_exhaust_the_stack() -> None:
    """Walks do not recurse."""
    graph = leaf("innermost")
    for _ in range(3000):
        graph = Graph("level", nodes=[choice("if", graph)])
    assert sum(1 for _ in nested_graphs(graph)) == 3001
