"""Assignment for a file."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from support.models import graph, model
from support.providers import FusingProvider, NhwcProvider

import sardonyx as ort
from sardonyx.formats.onnx import to_bytes
from sardonyx.ir.text import print_graph
from sardonyx.partition.assign_only import PROVIDERS_KEY, assign_only

TEXT = """graph(x: float[1, 3, 4, 4]) -> (y: float[1, 3, 4, 4]) {
    w: float[3, 3, 1, 1] = ... 1
    a: float[1, 3, 4, 4] = Relu(x)
    b: float[1, 3, 4, 4] = Conv(a, w)
    y: float[1, 3, 4, 4] = Exp(b)
}"""


def test_claims_may_overlap_and_nothing_changes() -> None:
    """Every provider is asked about every node; no layout is converted."""
    held = graph(TEXT)
    before = print_graph(held)
    found = assign_only(held, [FusingProvider(("Relu", "Exp")), NhwcProvider()])
    assert list(found.values()) == [("FusingProvider", "NhwcProvider"), ("NhwcProvider",), ("FusingProvider",)]
    assert print_graph(held) == before


def test_a_saved_model_says_who_can_run_its_nodes(tmp_path: Path) -> None:
    """Where the session is asked for it."""
    options = ort.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    options.add_session_config_entry("session.save_assignment", "1")
    ort.InferenceSession(to_bytes(model(TEXT)), options, providers=[FusingProvider(("Relu", "Exp")), "ReferenceExecutionProvider"])
    saved = onnx.load(options.optimized_model_filepath)
    noted = [{entry.key: entry.value for entry in node.metadata_props}.get(PROVIDERS_KEY) for node in saved.graph.node]
    assert noted == [
        "FusingProvider;ReferenceExecutionProvider",
        "ReferenceExecutionProvider",
        "FusingProvider;ReferenceExecutionProvider",
    ]


@pytest.mark.parametrize("setting", ["0", ""])
def test_a_saved_model_says_nothing_unasked(tmp_path: Path, setting: str) -> None:
    """The entry is off by default."""
    options = ort.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    if setting:
        options.add_session_config_entry("session.save_assignment", setting)
    ort.InferenceSession(to_bytes(model(TEXT)), options, providers=["ReferenceExecutionProvider"])
    assert not any(node.metadata_props for node in onnx.load(options.optimized_model_filepath).graph.node)
