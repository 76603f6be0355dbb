"""The report of a partitioning."""

from __future__ import annotations

import dataclasses

from support.models import graph
from support.providers import FusingProvider

from sardonyx.partition.assign import assign
from sardonyx.partition.cut import cut
from sardonyx.partition.explain import Placement, explain, nodes_of, with_precisions
from sardonyx.provider import Claims, GraphView


def test_each_node_has_its_provider_unit_and_the_reasons_of_others() -> None:
    """One placement per node, in the order in which they run."""
    held = graph("graph(x: float[2]) -> (y: float[2]) {\na = Relu(x) @r\nb = Neg(a)\ny = Exp(b) @e\n}")
    assignment = assign(held, [FusingProvider({"Relu", "Neg"}, "A"), FusingProvider({"Exp"}, "B", fuse=False)])
    parts, _ = cut(held, assignment.units, "main_")
    first, second, third = explain(held, "main", parts, assignment.declined)
    assert (first.node, first.provider, first.unit, first.partition) == ("r", "A", "fused_Relu", "A_main_0")
    assert second.node == "b"
    assert (third.provider, third.unit, dict(third.declined)) == ("B", "", {"A": "Exp is not among its operators"})


class _Owning(FusingProvider):
    """Runs the bodies of its nodes itself."""

    def capabilities(self, view: GraphView) -> Claims:
        found = super().capabilities(view)
        return Claims([dataclasses.replace(claim, owns_bodies=True) for claim in found.capabilities], found.declined)


def test_nodes_of_bodies_that_a_provider_runs_itself_follow_their_node() -> None:
    """At every depth, with the paths of their graphs."""
    branch = (
        "graph() -> (v) { v = If(c) {then_branch = graph() -> (w) { w = Neg(x) }, else_branch = graph() -> (w) { w = Abs(x) }} }"
    )
    held = graph(f"graph(x: float[2], c: bool[]) -> (y) {{ y = If(c) {{then_branch = {branch}, else_branch = {branch}}} @i }}")
    assignment = assign(held, [_Owning({"If"}, "A", fuse=False)])
    parts, _ = cut(held, assignment.units, "main_")
    found = [(place.graph, place.op_type, place.provider) for place in explain(held, "main", parts, assignment.declined)]
    assert found[:4] == [
        ("main", "If", "A"),
        ("main/i/then_branch", "If", "A"),
        ("main/i/then_branch/If/then_branch", "Neg", "A"),
        ("main/i/then_branch/If/else_branch", "Abs", "A"),
    ]
    assert len(found) == 7
    (part,) = parts
    assert [node.op_type for node in nodes_of(part.partition)] == [op_type for _, op_type, _ in found]


def _placed(node: str, partition: str) -> Placement:
    return Placement(node, "MatMul", 13, "main", "A", partition, "", {})


def test_precisions_are_those_of_the_nodes_in_their_order() -> None:
    """Of each partition that says them; others have none."""
    rows = [_placed("a", "p"), _placed("b", "q"), _placed("c", "p"), _placed("d", "r")]
    found = with_precisions(rows, {"p": ("float32", ""), "q": ("bfloat16",)})
    assert [(place.node, place.precision) for place in found] == [("a", "float32"), ("b", "bfloat16"), ("c", ""), ("d", "")]


def test_the_node_of_a_compiled_model_has_all_precisions_of_its_partition() -> None:
    """Each once. Where nodes are not those that were compiled, nothing is said of any."""
    assert with_precisions([_placed("a", "p")], {"p": ("x", "", "y", "x")})[0].precision == "x; y"
    assert with_precisions([_placed("a", "p"), _placed("b", "p")], {"p": ("x",)}) == [_placed("a", "p"), _placed("b", "p")]
