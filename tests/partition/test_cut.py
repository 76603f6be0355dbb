"""Convex partitions."""

from __future__ import annotations

import gc
import time

from hypothesis import given, settings
from hypothesis import strategies as st
from support.models import graph
from support.providers import FusingProvider

from sardonyx.ir import Graph, Node, Value
from sardonyx.partition.assign import Unit, assign
from sardonyx.partition.cut import cut
from sardonyx.provider import Capability


def _cut(held: Graph, *providers: FusingProvider) -> list[tuple[str, list[str]]]:
    parts, broken = cut(held, assign(held, providers).units)
    assert not broken
    return [(part.provider.name, [node.name for node in part.partition.nodes]) for part in parts]


def test_neighbours_of_one_provider_are_one_partition() -> None:
    """A chain A A B A A has three partitions."""
    held = graph("""graph(x: float[2]) -> (y: float[2]) {
        a = Relu(x) @n1
        b = Neg(a) @n2
        c = Exp(b) @n3
        d = Relu(c) @n4
        y = Neg(d) @n5
    }""")
    assert _cut(held, FusingProvider({"Relu", "Neg"}, "A", fuse=False), FusingProvider({"Exp"}, "B", fuse=False)) == [
        ("A", ["n1", "n2"]),
        ("B", ["n3"]),
        ("A", ["n4", "n5"]),
    ]


def test_a_diamond_makes_no_cycle_between_partitions() -> None:
    """X -> A -> (B, A) -> A: the last A waits for B, so it cannot join the first."""
    held = graph("""graph(x: float[2]) -> (y: float[2]) {
        a = Relu(x) @top
        b = Exp(a) @left
        c = Relu(a) @right
        y = Add(b, c) @bottom
    }""")
    assert _cut(held, FusingProvider({"Relu", "Add"}, "A", fuse=False), FusingProvider({"Exp"}, "B", fuse=False)) == [
        ("A", ["top", "right"]),
        ("B", ["left"]),
        ("A", ["bottom"]),
    ]


def test_the_order_begins_with_the_provider_that_gives_fewer_partitions() -> None:
    """Two sources of different providers: starting with B lets all of A's nodes run together."""
    held = graph("""graph(x: float[2], z: float[2]) -> (y: float[2]) {
        a = Relu(x) @n1
        b = Exp(z) @n2
        y = Add(a, b) @n3
    }""")
    assert _cut(held, FusingProvider({"Relu", "Add"}, "A", fuse=False), FusingProvider({"Exp"}, "B", fuse=False)) == [
        ("B", ["n2"]),
        ("A", ["n1", "n3"]),
    ]


def test_the_provider_with_most_ready_units_is_next() -> None:
    """B has two and C has one: run first, B makes all of C's nodes ready."""
    held = graph("""graph(x: float[2]) -> (c: float[2], d: float[2], e: float[2]) {
        a = Relu(x) @n1
        d = Neg(a) @n2
        b = Exp(a) @n3
        c = Exp(a) @n4
        e = Neg(b) @n5
    }""")
    providers = [FusingProvider({operator}, name, fuse=False) for name, operator in (("A", "Relu"), ("B", "Exp"), ("C", "Neg"))]
    assert _cut(held, *providers) == [("A", ["n1"]), ("B", ["n3", "n4"]), ("C", ["n2", "n5"])]


def test_units_of_two_streams_are_not_in_one_partition() -> None:
    """Though one provider runs them."""
    held = graph("graph(x: float[2]) -> (a: float[2], b: float[2]) {\na = Relu(x)\nb = Neg(x)\n}")
    provider = FusingProvider((), "A")
    parts, _ = cut(held, {node: Unit(provider, Capability((node,)), stream) for stream, node in enumerate(held)})
    assert [len(part.partition.nodes) for part in parts] == [1, 1]


def test_a_unit_that_wants_to_be_alone_is_a_partition() -> None:
    """Its neighbours of the same provider are another."""
    held = graph("graph(x: float[2]) -> (a: float[2], b: float[2], c: float[2]) {\na = Relu(x)\nb = Neg(x)\nc = Exp(x)\n}")
    provider, (first, *_) = FusingProvider((), "A"), tuple(held)
    parts, _ = cut(held, {node: Unit(provider, Capability((node,), alone=node is first)) for node in held})
    assert sorted(len(part.partition.nodes) for part in parts) == [1, 2]
    assert (first,) in [part.partition.nodes for part in parts]


def test_what_waits_for_a_unit_that_ends_its_partition_is_in_a_later_one() -> None:
    """What does not wait for it stays with it, and two that end may be in one partition."""
    held = graph("""graph(x: float[2]) -> (d: float[2], e: float[2]) {
        a = Abs(x)
        b = Relu(a)
        c = Neg(a)
        d = Add(b, c)
        e = Exp(a)
    }""")
    provider, (a, b, c, d, e) = FusingProvider((), "A"), tuple(held)
    parts, _ = cut(held, {node: Unit(provider, Capability((node,), ends=node in (b, c))) for node in held})
    assert [part.partition.nodes for part in parts] == [(a, b, c, e), (d,)]


def test_a_unit_that_a_path_leaves_and_enters_again_is_reported() -> None:
    """A fused claim around another provider's node cannot run as one."""
    held = graph("""graph(x: float[2]) -> (y: float[2]) {
        a = Relu(x)
        b = Exp(a)
        y = Neg(b)
    }""")
    relu, exp, neg = held
    outer, inner = FusingProvider((), "A"), FusingProvider((), "B")
    around = Unit(outer, Capability((relu, neg), True, "around"))
    parts, broken = cut(held, {relu: around, neg: around, exp: Unit(inner, Capability((exp,)))})
    assert (parts, broken) == ([], [around])


def test_a_partition_lists_what_enters_and_leaves_it() -> None:
    """Inputs, constants and outputs of a partition are told apart; an inner value is none of them."""
    held = graph("""graph(x: float[2]) -> (y: float[2], n: float[2]) {
        k: float[2] = [1, 2]
        a = Add(x, k)
        n = Neg(a)
        y = Exp(n)
    }""")
    parts, _ = cut(held, assign(held, [FusingProvider({"Add", "Neg"}, "A", fuse=False), FusingProvider({"Exp"}, fuse=False)]).units)
    first = parts[0].partition
    names = [[value.name for value in values] for values in (first.inputs, first.constants, first.outputs)]
    assert names == [["x"], ["k"], ["n"]]


def test_what_a_claim_asks_for_leaves_the_partition_that_makes_it() -> None:
    """Also where only nodes of that partition read it."""
    held = graph("""graph(x: float[2]) -> (y: float[2]) {
        a = Relu(x)
        b = Neg(a)
        y = Exp(b)
    }""")
    relu, neg, exp = held
    first, second = FusingProvider((), "A"), FusingProvider((), "B")
    asking = Unit(second, Capability((exp,), reads=(relu.output,)))
    parts, _ = cut(held, {relu: Unit(first, Capability((relu,))), neg: Unit(first, Capability((neg,))), exp: asking})
    assert parts[0].partition.outputs == (relu.output, neg.output)
    assert parts[1].partition.inputs == (neg.output, relu.output)


def test_what_a_claim_asks_for_is_made_before() -> None:
    """Though its nodes do not read it, and come first in the graph."""
    held = graph("graph(x: float[2]) -> (a: float[2], b: float[2]) {\nb = Exp(x)\na = Relu(x)\n}")
    exp, relu = held
    first, second = FusingProvider((), "A"), FusingProvider((), "B")
    asking = Unit(second, Capability((exp,), reads=(relu.output,)))
    parts, _ = cut(held, {exp: asking, relu: Unit(first, Capability((relu,)))})
    assert [part.partition.nodes for part in parts] == [(relu,), (exp,)]


def test_what_a_subgraph_captures_enters_the_partition() -> None:
    """A value read only inside a body is an input of the partition that holds the node."""
    held = graph("""graph(c: bool[], x: float[2]) -> (y: float[2]) {
        a = Relu(x)
        y = If(c) {then_branch = graph() -> (t) {
            t = Neg(a)
        }, else_branch = graph() -> (e) {
            e = Exp(a)
        }}
    }""")
    parts, _ = cut(held, assign(held, [FusingProvider({"Relu"}, "A", fuse=False), FusingProvider({"If"}, "B", fuse=False)]).units)
    assert [value.name for value in parts[1].partition.inputs] == ["c", "a"]
    assert [value.name for value in parts[0].partition.outputs] == ["a"]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.lists(st.integers(0, 30), max_size=3)), min_size=1, max_size=25))
def test_partitions_cover_all_nodes_and_depend_on_earlier_ones_only(shape: list[tuple[int, list[int]]]) -> None:
    """Whatever the graph and the assignment, each node is in one partition, and its inputs come from that or an earlier one."""
    source = Value("x")
    held = Graph("random", [source])
    values, nodes = [source], []
    for _, picks in shape:
        node = held.append(Node("Sum", [values[pick % len(values)] for pick in picks], 1, version=21))
        nodes.append(node)
        values.append(node.output)
    providers = [FusingProvider((), name) for name in "ABC"]
    units = {node: Unit(providers[kind], Capability((node,))) for node, (kind, _) in zip(nodes, shape, strict=True)}
    parts, broken = cut(held, units)
    place = {node: index for index, part in enumerate(parts) for node in part.partition.nodes}
    assert not broken
    assert set(place) == set(nodes)
    assert all(
        value is None or value.producer is None or place[value.producer] <= place[node] for node in nodes for value in node.inputs
    )


def _seconds_to_cut(count: int) -> float:
    chain = "\n".join(f"v{i + 1} = Relu(v{i})" for i in range(count))
    held = graph(f"graph(v0: float[2]) -> (v{count}: float[2]) {{\n{chain}\n}}")
    units = assign(held, [FusingProvider({"Relu"}, "A", fuse=False)]).units
    gc.disable()  # its passes over all that other tests left would count too
    try:
        start = time.process_time()
        cut(held, units)
        return time.process_time() - start
    finally:
        gc.enable()


def test_cutting_takes_time_linear_in_the_nodes() -> None:
    """Eight times the nodes take about eight times as long, not 64 times."""
    assert min(_seconds_to_cut(16000) for _ in range(2)) < 30 * max(_seconds_to_cut(2000) for _ in range(3))
