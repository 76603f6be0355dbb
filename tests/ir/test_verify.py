"""Checks of models: each fault, made by hand, is found and named."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest

from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidGraph
from sardonyx.ir import Attribute, AttributeKind, Function, Graph, Model, Node, Tensor, TensorType, Value
from sardonyx.ir.verify import describe_cycle, describe_node, verify

FLOATS = TensorType(DataType.FLOAT, (2,))


def chain(length: int = 2) -> tuple[Model, list[Node]]:
    """A sound model: x -> n0 -> n1 -> ... -> its output."""
    source = Value("x", FLOATS)
    nodes: list[Node] = []
    for index in range(length):
        nodes.append(Node("Relu", [nodes[-1].output if nodes else source], 1, version=21, name=f"n{index}"))
        nodes[-1].output.name = f"v{index}"
    return Model(Graph("main", [source], [nodes[-1].output], nodes=nodes), {"": 21}), nodes


def conditional() -> tuple[Model, Node, Node]:
    """A sound model whose If has a Neg inside; returns the model, the If and the Neg."""
    condition, source = Value("c"), Value("x", FLOATS)
    inner = Node("Neg", [source], 1, version=21, name="inner")
    inner.output.name = "i"
    outer = Node("If", [condition], 1, {"then_branch": Graph("branch", [], [inner.output], nodes=[inner])}, version=21, name="if")
    outer.output.name = "y"
    return Model(Graph("main", [condition, source], [outer.output], nodes=[outer]), {"": 21}), outer, inner


def with_function(body: Node, attributes: dict[str, Attribute | None] | None = None) -> Model:
    model, _ = chain()
    graph = Graph("F", [], body.outputs, nodes=[body])
    model.functions["d", "F", ""] = Function("d", "F", graph, {"": 21}, attributes=attributes)
    return model


def test_sound_models_pass() -> None:
    """Chains, captures, initializers, functions, unnamed values and repeated outputs are all right."""
    model, nodes = chain()
    model.graph.add_output(nodes[0].output)
    model.graph.add_output(nodes[0].output)
    model.graph.add_initializer(Tensor.from_array(np.zeros(1)), "w")
    nodes[0].output.name = ""
    verify(model)
    verify(conditional()[0])
    verify(with_function(Node("Relu", [None], 1, {"a": Attribute(AttributeKind.INT, None, "k")}, version=21), {"k": None}))


def swapped(model: Model, nodes: list[Node]) -> None:
    model.graph.move_before(nodes[0], nodes[1])


def looped(model: Model, nodes: list[Node]) -> None:
    nodes[0].replace_input(0, nodes[1].output)


def removed_by_force(model: Model, nodes: list[Node]) -> None:
    other = Graph("other", nodes=[Node("Relu", [None], 1, version=21)])
    other.move_before(next(iter(other)), nodes[0])


def foreign_input(model: Model, nodes: list[Node]) -> None:
    nodes[0].replace_input(0, Value("stranger"))


def foreign_output(model: Model, nodes: list[Node]) -> None:
    model.graph.set_output(0, Value("stranger"))


def forgotten_use(model: Model, nodes: list[Node]) -> None:
    nodes[1].inputs = (model.graph.inputs[0],)


def invented_use(model: Model, nodes: list[Node]) -> None:
    Node("Neg", [nodes[0].output], 1, version=21, name="dangling")


def stolen_output(model: Model, nodes: list[Node]) -> None:
    nodes[1].outputs = (nodes[0].output,)


def wrong_producer(model: Model, nodes: list[Node]) -> None:
    nodes[1].output.producer = nodes[0]


def produced_input(model: Model, nodes: list[Node]) -> None:
    model.graph.inputs.append(nodes[1].output)


def repeated_input(model: Model, nodes: list[Node]) -> None:
    model.graph.inputs.append(model.graph.inputs[0])


def renamed_initializer(model: Model, nodes: list[Node]) -> None:
    model.graph.add_initializer(Tensor.from_array(np.zeros(1)), "w").name = "v"


def empty_initializer(model: Model, nodes: list[Node]) -> None:
    model.graph.initializers["w"] = Value("w")


def equal_inputs(model: Model, nodes: list[Node]) -> None:
    model.graph.inputs.append(Value("x", FLOATS))


def equal_outputs(model: Model, nodes: list[Node]) -> None:
    nodes[0].output.name = "v1"
    model.graph.add_output(nodes[0].output)


def reference_outside(model: Model, nodes: list[Node]) -> None:
    nodes[0].attributes["axis"] = Attribute(AttributeKind.INT, None, "k")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (swapped, r"^main: node 'n1' \(Relu\): its input 0 \('v0'\) is produced by node 'n0' .*, which does not stand before it"),
        (looped, "node 'n0' .* its input 0 .* is produced by node 'n1' .* does not stand before it"),
        (removed_by_force, "node 'n1' .* in graph 'other', which it cannot see"),
        (foreign_input, r"node 'n0' .* its input 0 \('stranger'\) is no input or initializer"),
        (foreign_output, "output 'stranger' of graph 'main' is produced by nothing"),
        (forgotten_use, r"node 'n1' .* reads 'x' at 0, but the value does not list that use|value 'v0' lists node 'n1'"),
        (invented_use, "value 'v0' lists node 'dangling' .* as reading it at 0, which it does not"),
        (stolen_output, r"node 'n1' .* output 'v0' is defined twice, also as node 'n0'"),
        (wrong_producer, r"node 'n1' .* its output 0 \('v1'\) says it is produced by output 0 of node 'n0'"),
        (produced_input, "value 'v1' is a source of graph 'main', yet has a producer"),
        (repeated_input, "input 'x' is defined twice"),
        (renamed_initializer, "initializer 'w' .* is a value called 'v'"),
        (empty_initializer, "initializer 'w' .* has no tensor"),
        (equal_inputs, "two inputs of the main graph are called 'x'"),
        (equal_outputs, "two outputs of the main graph are called 'v1'"),
        (reference_outside, "node 'n0' .* attribute 'axis' refers to attribute 'k' of a caller, but this is no function"),
    ],
)
def test_each_fault_is_found_and_named(damage: Callable[[Model, list[Node]], None], message: str) -> None:
    """The message names the model, the node and the values."""
    model, nodes = chain()
    damage(model, nodes)
    with pytest.raises(InvalidGraph, match=message):
        verify(model)


def test_values_of_a_body_are_not_seen_outside() -> None:
    """A node cannot read what a subgraph of another node makes."""
    model, _, inner = conditional()
    model.graph.append(Node("Relu", [inner.output], 1, version=21, name="outside"))
    with pytest.raises(InvalidGraph, match="'outside' .* is produced by node 'inner' .* in graph 'branch', which it cannot see"):
        verify(model)


def test_a_body_sees_only_what_stands_before_its_node() -> None:
    """Capturing the node's own output, or a later one, is out of order."""
    model, outer, inner = conditional()
    inner.replace_input(0, outer.output)
    with pytest.raises(InvalidGraph, match="node 'if' .*: node 'inner' .* is produced by node 'if'"):
        verify(model)


def test_faults_of_a_function_name_it() -> None:
    """The message says in which function the node is."""
    with pytest.raises(InvalidGraph, match=r"function 'd\.F': node 'n' \(Relu\): its input 0"):
        verify(with_function(Node("Relu", [Value("stranger")], 1, version=21, name="n")))


def test_a_reference_to_an_attribute_that_the_function_lacks() -> None:
    """The message lists those that it has."""
    body = Node("Relu", [None], 1, {"axis": Attribute(AttributeKind.INT, None, "k")}, version=21)
    with pytest.raises(InvalidGraph, match=r"refers to 'k', but the function has only \['other'\]"):
        verify(with_function(body, {"other": None}))


def calling(*calls: tuple[str, str]) -> Model:
    """A model with functions, each calling the other of its pair; "" calls nothing."""
    model, _ = chain()
    for name in dict.fromkeys(caller for caller, _ in calls):
        nodes = [Node(callee, [], 1, domain="d", version=1) for caller, callee in calls if caller == name and callee]
        model.functions["d", name, ""] = Function("d", name, Graph(name, nodes=nodes), {"": 21})
    return model


@pytest.mark.parametrize(
    ("calls", "cycle"),
    [
        ([("A", "A")], r"'d\.A' calls itself: 'd\.A' -> 'd\.A'"),
        ([("A", "B"), ("B", "C"), ("C", "B")], r"'d\.B' calls itself: 'd\.B' -> 'd\.C' -> 'd\.B'"),
        ([("A", ""), ("B", "A"), ("B", "C"), ("C", "B")], r"'d\.B' -> 'd\.C' -> 'd\.B'"),
    ],
)
def test_recursion_of_functions_is_refused(calls: list[tuple[str, str]], cycle: str) -> None:
    """Direct or through others, the cycle is shown."""
    with pytest.raises(InvalidGraph, match=cycle):
        verify(calling(*calls))


def test_functions_may_share_what_they_call() -> None:
    """Two ways to one function are no cycle."""
    verify(calling(("A", "B"), ("A", "C"), ("B", "D"), ("C", "D"), ("D", "")))


def test_a_recursion_inside_a_subgraph_is_found() -> None:
    """A call from a body of If is a call."""
    model = calling(("A", ""))
    body = Graph("branch", nodes=[Node("A", [], 1, domain="d", version=1)])
    model.functions["d", "A", ""].graph.append(Node("If", [None], 1, {"then_branch": body}, version=21))
    with pytest.raises(InvalidGraph, match=r"'d\.A' calls itself"):
        verify(model)


def test_a_long_chain_of_calls_is_refused() -> None:
    """Calls may nest only so deep; the stack is not exhausted before that is said."""
    chain_of_calls = [(f"F{index}", f"F{index + 1}") for index in range(5000)]
    with pytest.raises(InvalidGraph, match="starts a chain of 5001 calls; at most 64"):
        verify(calling(*chain_of_calls, ("F5000", "")))


def test_deep_subgraphs_are_refused() -> None:
    """Nesting beyond the limit is said, not crashed upon."""
    graph = Graph("innermost")
    for _ in range(70):
        graph = Graph("level", nodes=[Node("If", [], 1, {"then_branch": graph}, version=21)])
    with pytest.raises(InvalidGraph, match="nested more than 64 levels"):
        verify(Model(graph, {"": 21}))


def test_many_uses_of_one_value_are_checked_in_linear_time() -> None:
    """A value with 20,000 uses takes no longer than 20,000 values with one."""
    model, _ = chain()
    for _ in range(20_000):
        model.graph.append(Node("Relu", [model.graph.inputs[0]], 1, version=21))
    start = time.process_time()
    verify(model)
    assert time.process_time() - start < 5


def test_nodes_are_described_by_name_or_outputs() -> None:
    """A nameless node is known by what it makes; a foreign domain is shown."""
    assert describe_node(Node("Add", [], 1, version=1, name="n")) == "node 'n' (Add)"
    assert describe_node(Node("Gelu", [], [Value("y")], version=1, domain="d")) == "node (d.Gelu) -> ['y']"


def test_a_long_cycle_is_cut_short() -> None:
    """A message shows ten nodes and how many there are."""
    nodes = [Node("Relu", [None], 1, version=21, name=f"n{index}") for index in range(12)]
    for index, node in enumerate(nodes):
        node.replace_input(0, nodes[index - 1].output)
    text = describe_cycle(nodes)
    assert text.count(" reads ") == 10
    assert text.endswith("… (12 nodes)")
