"""`get_provider_graph_assignment_info`, as onnxruntime has it."""

from __future__ import annotations

import pytest
from support.models import model
from support.providers import FusingProvider

import sardonyx as ort
from sardonyx.formats.onnx import to_bytes
from sardonyx.session.placement.assignment_info import OrtEpAssignedNode

TEXT = "graph(x: float[2]) -> (y: float[2]) {\na = Neg(x) @first\nb = Exp(a) @second\ny = com.microsoft.QuickGelu(b) @third\n}"


def test_each_partition_has_its_provider_and_nodes() -> None:
    """In the order in which they run."""
    options = ort.SessionOptions()
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(to_bytes(model(TEXT)), options, providers=[FusingProvider({"Neg", "Exp"}, "Mine")])
    found = session.get_provider_graph_assignment_info()
    assert [part.ep_name for part in found] == ["Mine", "ReferenceExecutionProvider"]
    assert found[0].get_nodes() == [OrtEpAssignedNode("first", "", "Neg"), OrtEpAssignedNode("second", "", "Exp")]
    assert found[1].get_nodes() == [OrtEpAssignedNode("third", "com.microsoft", "QuickGelu")]


def test_it_has_to_be_asked_for() -> None:
    """By the same config entry; `explain` needs none."""
    session = ort.InferenceSession(to_bytes(model(TEXT)))
    with pytest.raises(ort.Fail, match="entry 'session.record_ep_graph_assignment_info' must be set to \"1\""):
        session.get_provider_graph_assignment_info()


def test_nodes_of_the_built_in_providers_stand_alone() -> None:
    """As in onnxruntime, also where one program computes several."""
    options = ort.SessionOptions()
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    found = ort.InferenceSession(to_bytes(model(TEXT)), options, ["CPUExecutionProvider"]).get_provider_graph_assignment_info()
    assert [node.name for part in found for node in part.get_nodes()] == ["first", "second", "third"]
    assert len(found) == 3
