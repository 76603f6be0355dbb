"""Why a node was fused or not, by the options of a session."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.models import model
from support.sessions import settings_of

from sardonyx import InferenceSession, SessionOptions
from sardonyx.errors import Fail, InvalidArgument
from sardonyx.formats.onnx import save, to_bytes
from sardonyx.ir.text import parse_model
from sardonyx.optimize.fusion_report import FusionReport, Outcome
from sardonyx.session.fusions import explain_fusions
from sardonyx.session.providers import make_providers
from sardonyx.session.stages.provider_list import ProviderList
from sardonyx.session.stages.source import Source

BODY = to_bytes(model("graph(x: float[2, 4]) -> (y: float[2, 4]) { g = Sigmoid(x) @gate y = Mul(x, g) }"))
CALL = """opset 21
graph(x: float[2, 4]) -> (y: float[2, 4]) { y = f.Gate(x) @call }
function f.Gate(a) -> (b) { s = Sigmoid(a) @gate b = Mul(a, s) }"""


def outcomes(report: FusionReport) -> dict[str, Outcome]:
    return {attempt.optimization: attempt.outcome for attempt in report.attempts}


def test_a_session_explains_a_node_of_its_model() -> None:
    """As the model was given, although the optimized one no longer has the node."""
    session = InferenceSession(BODY)
    assert [placement.op_type for placement in session.explain()] == ["Swish"]
    assert outcomes(session.explain_fusions("gate"))["fuse_swish"] is Outcome.FIRED


def test_nodes_of_functions_go_by_the_call() -> None:
    """They are inlined; the call itself is no node any more, and its name leads to them."""
    session = InferenceSession(to_bytes(parse_model(CALL)))
    assert outcomes(session.explain_fusions("call/gate"))["fuse_swish"] is Outcome.FIRED
    with pytest.raises(InvalidArgument, match="near it are call/Mul, call/gate"):
        session.explain_fusions("call")


def test_options_of_the_session_hold() -> None:
    """Levels and names that are left out."""
    session = InferenceSession(BODY, disabled_optimizers=["QuickGeluFusion"])
    assert outcomes(session.explain_fusions("gate"))["fuse_swish"] is Outcome.NOT_TRIED
    options = SessionOptions()
    options.add_session_config_entry("session.graph_optimization_level", "1")
    assert outcomes(InferenceSession(BODY, options).explain_fusions("gate"))["fuse_swish"] is Outcome.NOT_TRIED


def test_nothing_is_written(tmp_path: Path) -> None:
    """A file that the options ask for is written by the session only."""
    options = SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    session = InferenceSession(BODY, options)
    (tmp_path / "optimized.onnx").unlink()
    session.explain_fusions("gate")
    assert not (tmp_path / "optimized.onnx").exists()


def test_the_model_must_be_there_to_be_loaded_again(tmp_path: Path) -> None:
    """A file object is read once."""
    save(model("graph(x: float[2]) -> (y: float[2]) { y = Relu(x) }"), tmp_path / "m.onnx")
    with (tmp_path / "m.onnx").open("rb") as file:
        session = InferenceSession(file)
    with pytest.raises(InvalidArgument, match="explained from a path or bytes"):
        session.explain_fusions("y")


def test_a_file_that_was_replaced_is_an_error(tmp_path: Path) -> None:
    """It is no longer the model of the session."""
    path = tmp_path / "m.onnx"
    save(model("graph(x: float[2]) -> (y: float[2]) { y = Relu(x) }"), path)
    session = InferenceSession(path)
    save(model("graph(x: float[2]) -> (y: float[2]) { z = Relu(x) y = Neg(z) }"), path)
    with pytest.raises(Fail, match="was replaced or written to"):
        session.explain_fusions("y")


def test_errors_name_the_model(tmp_path: Path) -> None:
    """With the names that are near."""
    save(model("graph(x: float[2]) -> (y: float[2]) { y = Relu(x) @relu }"), tmp_path / "m.onnx")
    with pytest.raises(InvalidArgument, match=r"m\.onnx: no node .* is named 'rely'; near it are relu"):
        explain_fusions(Source.of(tmp_path / "m.onnx"), settings_of(), ProviderList.of(make_providers([])), "rely")
