"""Which nodes a node of the optimized graph stands for."""

from __future__ import annotations

from support.models import model

from sardonyx.inspection.graph_facts import graph_facts
from sardonyx.inspection.origins import sources_of

BEFORE = """graph(x: float[2]) -> (y: float[2]) {
g = Sigmoid(x) @gate
h = Mul(x, g) @times
i = Identity(h) @same
y = Neg(i) @last
}"""


def test_a_fusion_stands_for_all_it_computes() -> None:
    """From the values that it makes back to values that are still there."""
    after = "graph(x: float[2]) -> (y: float[2]) {\nh = Swish:24(x) @fused\ny = Neg(h) @last\n}"
    assert sources_of(graph_facts(model(BEFORE)), graph_facts(model(after))) == [[0, 1], [2, 3]]


def test_a_node_whose_values_have_other_names_goes_by_its_own() -> None:
    """And a new one stands for none."""
    after = "graph(x: float[2]) -> (z: float[2]) {\nq = Neg(x) @last\nz = Abs(q) @new\n}"
    assert sources_of(graph_facts(model(BEFORE)), graph_facts(model(after))) == [[3], []]
