"""Models as tools take them."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from support.models import model
from support.session_models import BRANCH

import sardonyx as ort
from sardonyx.tools.models import graphs_of, read, save, to_proto


def test_paths_and_protos_are_models(tmp_path: Path) -> None:
    """Both ways, with the weights beside the file where that is asked for."""
    proto = to_proto(model("graph(x: float[2]) -> (y: float[2]) {\nw: float[2] = [1, 2]\ny = Add(x, w)\n}"))
    save(proto, tmp_path / "a.onnx", external_data=True, data_name="weights")
    assert read(tmp_path / "a.onnx").graph.outputs[0].name == "y"
    assert [node.op_type for node in read(proto).graph] == ["Add"]


def test_what_is_no_model_is_refused() -> None:
    """With what was given."""
    with pytest.raises(ort.InvalidArgument, match="got int"):
        read(3)


def test_graphs_inside_nodes_are_found() -> None:
    """The main graph first."""
    graphs = list(graphs_of(to_proto(model(BRANCH)).graph))
    assert len(graphs) == 3
    assert isinstance(graphs[0], onnx.GraphProto)
