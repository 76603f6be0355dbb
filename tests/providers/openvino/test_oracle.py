"""Asking OpenVINO what it can run."""

from __future__ import annotations

import pytest
from support.models import graph

from sardonyx.partition.as_model import base_versions
from sardonyx.providers.openvino.oracle import Oracle, first_line

pytest.importorskip("openvino")


def _reasons(body: str, opset: int = 21) -> list[str | None]:
    held = graph(body, opset=opset)
    reasons = Oracle("CPU").reasons(tuple(held), base_versions(held))
    return [reasons[node] for node in held]


def test_it_says_which_nodes_it_can_run() -> None:
    """A known node has no reason against it, an unknown one has OpenVINO's words."""
    relu, det = _reasons("graph(x: float[2, 2]) -> (y: float[]) { a: float[2, 2] = Relu(x)\ny = Det(a) }")
    assert relu is None
    assert det == "No conversion rule found for operations: Det-21"


def test_nodes_of_a_newer_version_are_asked_about_under_the_models() -> None:
    """A rule may bring in an operator that the model's opset did not have."""
    assert _reasons("graph(x: float[2]) -> (y: float[2]) { a: float[2] = Gelu:20(x)\ny = Relu(a) }", 13) == [None, None]


def test_a_node_that_means_something_else_is_declined() -> None:
    """One file holds one version of a domain."""
    reasons = _reasons("graph(x: float[2, 3]) -> (y: float[2, 3]) { a: float[2, 3] = Softplus:11(x)\ny = Softmax:13(a) }")
    assert reasons[0] is None
    assert reasons[1] == "it means something else under version 11"


def test_a_node_that_is_read_as_something_else_is_declined() -> None:
    """Axes of no elements are an input that OpenVINO's model lacks; one operand is given out as it is."""
    reasons = _reasons("graph(x: float[2, 3]) -> (y: float[2, 3], z: float[2, 3]) { y = Max(x)\nz = Relu(x) }")
    assert reasons == ["it only gives out what it reads", None]


def test_the_first_telling_line_of_an_error_is_kept() -> None:
    """Places in OpenVINO's sources are left out."""
    text = "Exception from src/a.cpp:1:\nCheck 'x' failed at src/b.cpp:2:\nThe matter.\nMore."
    assert first_line(RuntimeError(text)) == "The matter."
    assert first_line(RuntimeError("")) == "RuntimeError"


def test_a_result_of_fixed_size_where_the_graph_s_is_open_is_another() -> None:
    """OpenVINO reduces along all axes here, whatever the node says."""
    text = "graph(x: float[b, s, 7]) -> (y: float[b, 1, 1]) { y = ReduceLogSumExp(x) {axes = [1, 2]} }"
    assert _reasons(text, 17) == ["its output would be f32[1,1,1], not f32[-1, 1, 1]"]
