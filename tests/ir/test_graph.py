"""Values, nodes and graphs, and safe edits of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from support.cancelling import ended_by

from sardonyx.cancellation import Flag
from sardonyx.dtypes import DataType
from sardonyx.errors import RunTerminated
from sardonyx.ir import Attribute, Graph, Model, Node, SequenceType, Tensor, TensorType, Value
from sardonyx.ir.verify import verify


def chain(length: int = 3) -> tuple[Graph, list[Node]]:
    """A chain from the input x through Op0, Op1, ... to the output, which is called y."""
    source = Value("x")
    nodes: list[Node] = []
    for index in range(length):
        nodes.append(Node(f"Op{index}", [nodes[-1].output if nodes else source], 1, version=21))
    nodes[-1].output.name = "y"
    return Graph("main", [source], [nodes[-1].output], nodes=nodes), nodes


def sound(graph: Graph) -> bool:
    verify(Model(graph, {"": 21}))
    return True


def names(graph: Graph) -> list[str]:
    return [node.op_type for node in graph]


def test_a_value_knows_its_producer_and_its_uses() -> None:
    """Links run both ways: outputs to producers, inputs to users, and a graph is a user of what it gives out."""
    graph, (first, second, last) = chain()
    assert first.output.producer is first
    assert first.output.uses == ((second, 0),)
    assert last.output.uses == ((graph, 0),)
    assert last.output.is_graph_output
    assert not first.output.is_graph_output
    assert graph.inputs[0].use_count == 1


def test_one_value_may_be_used_twice_by_one_node() -> None:
    """Each position is a use of its own."""
    value = Value("x")
    node = Node("Mul", [value, None, value], 1, version=21)
    assert value.uses == ((node, 0), (node, 2))
    assert node.input(1) is None
    assert node.input(7) is None


def test_type_and_shape_are_those_of_tensors() -> None:
    """A value that is no tensor, or of unknown type, has neither."""
    assert Value("x", TensorType(DataType.FLOAT, (2,))).shape == (2,)
    assert Value("x", TensorType(DataType.FLOAT)).dtype is DataType.FLOAT
    assert Value("x").dtype is None
    assert Value("x", SequenceType(TensorType(DataType.FLOAT, (2,)))).shape is None


def test_replacing_an_input_moves_the_use() -> None:
    """The old value loses the use, the new one gains it."""
    graph, (first, second, _) = chain()
    second.replace_input(0, graph.inputs[0])
    assert first.output.use_count == 0
    assert second.inputs == (graph.inputs[0],)
    assert (second, 0) in graph.inputs[0].uses
    second.replace_input(0, None)
    assert second.inputs == (None,)


def test_all_inputs_may_be_replaced_by_more_or_fewer() -> None:
    """Uses follow."""
    graph, (first, second, _) = chain()
    second.set_inputs([graph.inputs[0], first.output, None])
    assert first.output.uses == ((second, 1),)
    second.set_inputs([])
    assert first.output.use_count == 0


def test_replacing_all_uses_leaves_none() -> None:
    """Every user reads the new value."""
    graph, (first, second, _) = chain()
    first.output.replace_all_uses_with(graph.inputs[0])
    assert first.output.use_count == 0
    assert second.inputs == (graph.inputs[0],)
    assert sound(graph)


def test_a_new_graph_output_takes_the_name() -> None:
    """The interface keeps its name when another node makes the output."""
    graph, (_, second, last) = chain()
    last.output.replace_all_uses_with(second.output)
    assert graph.outputs == (second.output,)
    assert second.output.name == "y"
    assert last.output.name == ""
    assert sound(graph)


def test_an_input_cannot_be_renamed_so_an_identity_gives_it_out() -> None:
    """Where the new output is an input, its own name and the output's both stay."""
    graph, nodes = chain(1)
    nodes[0].output.replace_all_uses_with(graph.inputs[0])
    assert names(graph) == ["Op0", "Identity"]
    assert [value.name for value in (*graph.inputs, *graph.outputs)] == ["x", "y"]
    assert sound(graph)


def test_replacing_a_value_by_itself_does_nothing() -> None:
    """No use is lost."""
    graph, (first, second, _) = chain()
    first.output.replace_all_uses_with(first.output)
    assert first.output.uses == ((second, 0),)
    assert sound(graph)


def test_nodes_are_put_where_they_are_told() -> None:
    """First, last, before and after."""
    graph, (first, second, last) = chain()
    graph.insert_before(first, Node("A", [], 1, version=21))
    graph.insert_after(last, Node("D", [], 1, version=21))
    graph.insert_before(second, Node("B", [], 1, version=21))
    graph.insert_after(second, Node("C", [], 1, version=21))
    assert names(graph) == ["A", "Op0", "B", "Op1", "C", "Op2", "D"]
    assert [node.op_type for node in reversed(graph)] == names(graph)[::-1]
    assert len(graph) == 7
    assert sound(graph)


def test_append_new_is_append_of_a_node() -> None:
    """The short way links as the long one does."""
    graph, nodes = chain(1)
    output = Value("z")
    attributes = {"axis": Attribute.of(1)}
    node = graph.append_new("Op", (nodes[0].output, None), (output,), attributes, "d", 3, "n", "o")
    assert list(graph) == [*nodes, node]
    assert (node.graph, output.producer, output.index) == (graph, node, 0)
    assert (node, 0) in nodes[0].output.uses
    assert (node.op_type, node.domain, node.version, node.name, node.overload) == ("Op", "d", 3, "n", "o")
    assert node.get("axis") == 1
    assert node.doc == ""
    assert node.metadata is None
    assert sound(graph)


def test_a_node_is_in_one_graph_only() -> None:
    """Adding it again is an error."""
    graph, nodes = chain()
    with pytest.raises(ValueError, match="already belongs to a graph"):
        graph.append(nodes[0])


def test_a_node_that_is_used_cannot_be_removed() -> None:
    """The message names a user."""
    graph, (first, _, _) = chain()
    with pytest.raises(ValueError, match="is still used by <Op1"):
        graph.remove(first)
    assert sound(graph)


def test_a_stranger_cannot_be_removed() -> None:
    """Only nodes of the graph can leave it."""
    graph, _ = chain()
    with pytest.raises(ValueError, match="is not in graph 'main'"):
        graph.remove(Node("Other", [], 1, version=21))


def test_removal_releases_inputs_and_what_subgraphs_capture() -> None:
    """Nothing counts the removed node, or the nodes inside it, among its users."""
    condition, captured = Value("c"), Value("v")
    inner = Node("Neg", [captured], 1, version=21)
    branch = Graph("branch", [], [inner.output], nodes=[inner])
    node = Node("If", [condition], 1, {"then_branch": branch}, version=21)
    graph = Graph("main", [condition, captured], [], nodes=[node])
    graph.remove(node)
    assert condition.use_count == 0
    assert captured.use_count == 0
    assert len(graph) == 0
    assert node.graph is None


def test_the_current_node_may_be_removed_while_iterating() -> None:
    """Iteration goes on after it."""
    graph, nodes = chain()
    graph.clear_outputs()
    seen = []
    for node in reversed(graph):
        seen.append(node)
        graph.remove(node)
    assert seen == nodes[::-1]
    assert list(graph) == []


def test_later_nodes_may_be_removed_while_iterating() -> None:
    """What is gone is not visited, also when the next and the one after it go."""
    graph = Graph("main", nodes=[Node(f"Op{index}", [], 1, version=21) for index in range(5)])
    nodes = list(graph)
    seen = []
    for node in graph:
        seen.append(node.op_type)
        if node is nodes[1]:
            for gone in nodes[1:4]:
                graph.remove(gone)
    assert seen == ["Op0", "Op1", "Op4"]


def test_nodes_put_after_the_current_one_are_visited() -> None:
    """Those put before it are not."""
    graph, nodes = chain(2)
    seen = []
    for node in graph:
        seen.append(node.op_type)
        if node is nodes[0]:
            graph.insert_before(node, Node("Before", [], 1, version=21))
            graph.insert_after(node, Node("After", [], 1, version=21))
    assert seen == ["Op0", "After", "Op1"]


def test_a_node_may_be_moved() -> None:
    """Moving keeps uses, within a graph and into another."""
    graph, (first, second, last) = chain()
    graph.move_before(first, last)
    assert list(graph) == [last, first, second]
    other = Graph("other", nodes=[Node("There", [], 1, version=21)])
    other.move_before(next(iter(other)), second)
    assert next(iter(other)) is second
    assert second.graph is other
    assert len(graph) == 2
    assert last.inputs == (second.output,)


def test_sorting_puts_producers_first_and_is_stable() -> None:
    """Only what must move moves."""
    graph, (first, second, last) = chain()
    free = graph.append(Node("Free", [], 1, version=21))
    graph.move_before(first, last)
    assert graph.sort() == []
    assert list(graph) == [first, second, last, free]
    assert sound(graph)


def test_sorting_respects_what_subgraphs_capture() -> None:
    """A node with a body comes after the producers of what the body reads."""
    condition = Value("c")
    source = Node("Source", [], 1, version=21)
    inner = Node("Neg", [source.output], 1, version=21)
    node = Node("If", [condition], 1, {"then_branch": Graph("b", [], [inner.output], nodes=[inner])}, version=21)
    graph = Graph("main", [condition], nodes=[node, source])
    assert graph.sort() == []
    assert list(graph) == [source, node]


def test_sorting_returns_what_is_stuck() -> None:
    """Nodes on a cycle, and after it, are named and left at the end."""
    first, second, third = (Node(f"Op{index}", [None], 1, version=21) for index in range(3))
    first.replace_input(0, second.output)
    second.replace_input(0, first.output)
    third.replace_input(0, second.output)
    free = Node("Free", [], 1, version=21)
    graph = Graph("main", nodes=[first, second, third, free])
    assert graph.sort() == [first, second, third]
    assert list(graph) == [free, first, second, third]


def test_sorting_finds_a_body_that_reads_its_own_node() -> None:
    """A cycle may lead through a subgraph."""
    node = Node("If", [], 1, version=21)
    inner = Node("Neg", [node.output], 1, version=21)
    node.attributes["then_branch"] = Attribute.of(Graph("b", [], [inner.output], nodes=[inner]))
    assert Graph("main", nodes=[node]).sort() == [node]


def test_initializers_get_names_of_their_own() -> None:
    """A name that is taken gets a number."""
    graph = Graph("main")
    tensor = Tensor.from_array(np.zeros(2, np.float32))
    values = [graph.add_initializer(tensor, "w") for _ in range(3)]
    assert [value.name for value in values] == ["w", "w_1", "w_2"]
    assert list(graph.initializers.values()) == values
    assert values[0].type == TensorType(DataType.FLOAT, (2,))
    assert graph.add_initializer(tensor).name == "constant"


def test_outputs_may_be_changed_and_repeated() -> None:
    """One value may be given out twice; each place is a use."""
    graph, (first, _, last) = chain()
    graph.add_output(last.output)
    assert last.output.uses == ((graph, 0), (graph, 1))
    graph.set_output(0, first.output)
    assert graph.outputs == (first.output, last.output)
    assert last.output.uses == ((graph, 1),)
    graph.clear_outputs()
    assert graph.outputs == ()
    assert last.output.use_count == 0


def test_attributes_are_made_of_python_values() -> None:
    """`get` gives the value, or the default."""
    node = Node("Op", [], 1, {"axis": 1, "names": ["a"]}, version=21)
    assert node.get("axis") == 1
    assert node.get("names") == ("a",)
    assert node.get("missing", 7) == 7


def test_the_only_output_is_one() -> None:
    """`output` of a node with several is an error."""
    node = Node("Split", [], 2, version=21)
    assert [value.index for value in node.outputs] == [0, 1]
    with pytest.raises(ValueError, match="too many values"):
        _ = node.output


def test_nodes_print_operator_version_and_values() -> None:
    """What messages and debuggers show."""
    node = Node("Add", [Value("a"), None], [Value("b")], version=14, domain="d", name="n")
    assert repr(node) == "<d.Add-14 'n' [%a, None] -> [%b]>"


def test_a_removed_node_makes_its_outputs_no_longer() -> None:
    """Values of a node that was taken out have no producer, unless another node makes them by now."""
    held, nodes = chain()
    last = nodes[-1]
    held.clear_outputs()
    held.remove(last)
    assert last.output.producer is None
    taken = nodes[-2].output
    successor = held.insert_before(nodes[-2], Node("Neg", nodes[-2].inputs, [taken], version=13))
    held.remove(nodes[-2])
    assert taken.producer is successor


@pytest.mark.parametrize("walk", [iter, reversed])
def test_walks_over_large_graphs_are_ended(walk: Callable[[Graph], Iterator[Node]]) -> None:
    """In both directions."""
    graph, _ = chain(1000)
    with ended_by(Flag(True)), pytest.raises(RunTerminated):
        list(walk(graph))


def test_no_cancellation_ends_dismantling() -> None:
    """It is what follows one."""
    graph, nodes = chain(1000)
    with ended_by(Flag(True)):
        graph.dismantle()
    assert all(node.graph is None for node in nodes)


def test_a_dismantled_graph_holds_nothing_in_circles() -> None:
    """Without the garbage collector, values and nodes go as soon as nobody refers to them."""
    import gc
    import weakref

    class Mark(str):
        """A text that can be watched."""

    held, nodes = chain()
    nodes[0].output.metadata = {"mark": Mark()}
    alive = weakref.ref(nodes[0].output.metadata["mark"])
    gc.disable()
    try:
        held.dismantle()
        assert nodes[1].inputs == nodes[0].outputs
        assert nodes[0].output.producer is None
        assert len(held) == 0
        del held, nodes
        assert alive() is None
    finally:
        gc.enable()
