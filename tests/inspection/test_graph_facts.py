"""A graph as data of a page."""

from __future__ import annotations

import json

from support.models import model

from sardonyx.inspection.graph_facts import graph_facts
from sardonyx.partition.explain import Placement

TEXT = """graph(x: float[n, 2]) -> (y: float[n, 2]) {
k: float[2] = [1, 2]
w: float[3, 8] = ... 1
a = Relu(x) @first
b = com.microsoft.Gelu(a)
y = Add(a, k) @last
}"""
LOOP = """graph(x: float[2], c: bool) -> (y: float[2]) {
a = Neg(x) @outer
y = If(c) {then_branch = graph() -> (t: float[2]) {
t = Abs(a) @inner
}, else_branch = graph() -> (e: float[2]) {
e = Exp(a)
}} @choice
}"""


def test_nodes_and_values_are_numbered() -> None:
    """In topological order, with types, shapes and small constants."""
    facts = graph_facts(model(TEXT))
    assert [(node["name"], node["op"]) for node in facts["nodes"]] == [
        ("first", "Relu"),
        ("b", "com.microsoft.Gelu"),
        ("last", "Add"),
    ]
    names = [value["name"] for value in facts["values"]]
    assert [names[value] for value in facts["nodes"][2]["ins"]] == ["a", "k"]
    assert facts["values"][names.index("x")] == {"name": "x", "type": "float", "shape": ["n", 2]}
    assert facts["values"][names.index("k")]["const"] == "[1., 2.]"
    assert [names[value] for value in (*facts["inputs"], *facts["outputs"])] == ["x", "y"]
    json.dumps(facts)


def test_bodies_are_inside_their_node() -> None:
    """Their nodes come before it, and what they capture joins them to the graph around."""
    facts = graph_facts(model(LOOP))
    inside = {node["name"]: node.get("inside") for node in facts["nodes"]}
    assert inside == {"outer": None, "inner": "choice/then_branch", "e": "choice/else_branch", "choice": None}
    inner = facts["nodes"][1]
    assert inner["ins"] == facts["nodes"][0]["outs"]
    assert facts["nodes"][-1]["attrs"]["then_branch"] == "a graph of 1 nodes"


def test_placements_go_with_their_nodes() -> None:
    """By name and operator."""
    place = Placement("first", "Relu", 21, "main", "CPU", "part_0", "", {"Other": "no kernel"})
    node = graph_facts(model(TEXT), {("first", "Relu"): place})["nodes"][0]
    assert (node["provider"], node["partition"], node["declined"]) == ("CPU", "part_0", {"Other": "no kernel"})


def test_attributes_are_short_texts() -> None:
    """Whatever they hold."""
    text = (
        'graph(x: float[2]) -> (y: float[4]) {\nk = Constant() {value: float[3] = [1, 2, 3]} @k\ny = Pad(x, p) {mode = "constant"}\np = Constant() {value_ints = ['
        + "1, " * 200
        + "1]}\n}"
    )
    text = text.replace('y = Pad(x, p) {mode = "constant"}\np = ', "p = ").replace("\n}", '\ny = Pad(x, p) {mode = "constant"}\n}')
    attributes = [node["attrs"] for node in graph_facts(model(text))["nodes"]]
    assert attributes[0]["value"] == "float[3] [1., 2., 3.]"
    assert attributes[1]["value_ints"].endswith("…")
    assert attributes[2]["mode"] == "'constant'"


def test_dimensions_without_a_name_are_open() -> None:
    """Whatever symbol they have inside."""
    facts = graph_facts(model("graph(x: float[?, n]) -> (y: float[?, n]) {\ny = Neg(x)\n}"))
    assert [value["shape"] for value in facts["values"]] == [["?", "n"], ["?", "n"]]
