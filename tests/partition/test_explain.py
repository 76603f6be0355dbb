"""The report of a partitioning."""

from __future__ import annotations

import dataclasses

from support.models import graph
from support.providers import FusingProvider

from sardonyx.partition.assign import assign
from sardonyx.partition.cut import cut
from sardonyx.partition.explain import explain
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
