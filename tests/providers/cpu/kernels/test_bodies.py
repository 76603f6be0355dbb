"""Graphs inside nodes, claimed and lowered."""

from __future__ import annotations

import pytest
from support.models import graph

from sardonyx.codegen.target import host_target
from sardonyx.ir import Node
from sardonyx.ops.infer import infer_graph
from sardonyx.providers.cpu.kernels.bodies import BodySpec, claim_body, lower_body, make_outputs
from sardonyx.providers.cpu.lowering import Lowering


def _branch(text: str, outputs: str = "y") -> tuple[Node, BodySpec | str]:
    held = graph(
        f"graph(x: float[N, 4], c: bool) -> ({outputs}) {{ u = Neg(x) {outputs} = If(c) {{then_branch = {text}, else_branch = {text}}} }}"
    )
    infer_graph(held)
    node = list(held)[-1]
    return node, claim_body(node.subgraphs[0])


def test_a_body_is_claimed_node_by_node() -> None:
    """Those that make sizes count as what they make."""
    _, body = _branch("graph() -> (v) { s = Shape(u) a = Abs(u) v = Reshape(a, s) }")
    assert isinstance(body, BodySpec)
    assert [node.op_type for node in body.claims] == ["Abs", "Reshape"]
    assert [node.op_type for node in body.sizes] == ["Shape"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("graph() -> (v) { a, b = Unique(u) v = Abs(a) }", "Unique"),
        ("graph() -> (v) { s = SequenceConstruct(u) v = Identity(s) }", "seq"),
    ],
)
def test_a_body_is_declined_as_a_whole(text: str, reason: str) -> None:
    """The reason names the node, or the value that is no tensor."""
    _, body = _branch(text)
    assert isinstance(body, str)
    assert reason in body


def test_what_a_body_does_not_make_is_copied() -> None:
    """A captured value, a view of one, and one result for two outputs; another lies where its steps write it."""
    node, body = _branch(
        "graph() -> (v, w, u, r) { k: int64[1] = [-1] v = Abs(u) w = Identity(v) r = Reshape(u, k) }", "y, z, t, p"
    )
    assert isinstance(body, BodySpec)
    low = Lowering(host_target(), 1)
    assert node.graph is not None
    captured = low.of(next(iter(node.graph)).output)
    with low.body():
        lower_body(low, node, body)
        made = make_outputs(low, body.graph.outputs)
    assert [step.name for step in low.steps] == ["Abs", "Copy", "Copy", "Copy"]
    assert len(set(made)) == 4
    assert captured not in made
    assert all(buffer.base is None for buffer in made)
