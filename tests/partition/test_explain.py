"""The report of a partitioning."""

from __future__ import annotations

from support.models import graph
from support.providers import FusingProvider

from sardonyx.partition.assign import assign
from sardonyx.partition.cut import cut
from sardonyx.partition.explain import explain


def test_each_node_has_its_provider_unit_and_the_reasons_of_others() -> None:
    """One placement per node, in the order in which they run."""
    held = graph("graph(x: float[2]) -> (y: float[2]) {\na = Relu(x) @r\nb = Neg(a)\ny = Exp(b) @e\n}")
    assignment = assign(held, [FusingProvider({"Relu", "Neg"}, "A"), FusingProvider({"Exp"}, "B", fuse=False)])
    parts, _ = cut(held, assignment.units, "main_")
    first, second, third = explain(held, "main", parts, assignment.declined)
    assert (first.node, first.provider, first.unit, first.partition) == ("r", "A", "fused_Relu", "A_main_0")
    assert second.node == "b"
    assert (third.provider, third.unit, dict(third.declined)) == ("B", "", {"A": "Exp is not among its operators"})
