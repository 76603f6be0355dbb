"""Options that a model brings in its metadata."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from support.models import model

import sardonyx as ort
from sardonyx.formats.onnx import to_bytes
from sardonyx.session.model_config import options_of_model


def _bytes(config: str) -> bytes:
    made = model("graph(x: float[2]) -> (y) { y = Neg(x) }")
    made.metadata["ort_config"] = config
    return to_bytes(made)


CONFIG = {
    "session_options": {
        "intra_op_num_threads": 2,
        "inter_op_num_threads": 5,
        "graph_optimization_level": 1,
        "execution_mode": 1,
        "enable_profiling": 0,
    }
}


def test_a_model_brings_its_options() -> None:
    """They take the place of those that are given."""
    given = ort.SessionOptions()
    given.logid = "mine"
    session = ort.InferenceSession(_bytes(json.dumps(CONFIG)), given, read_config_from_model=1)
    options = session.get_session_options()
    assert (options.intra_op_num_threads, options.inter_op_num_threads, options.logid) == (2, 5, "")
    assert options.graph_optimization_level is ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    assert options.execution_mode is ort.ExecutionMode.ORT_PARALLEL


def test_they_are_read_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the argument or else by the environment."""
    given = _bytes(json.dumps(CONFIG))
    assert ort.InferenceSession(given).get_session_options().intra_op_num_threads == 0
    monkeypatch.setenv("ORT_LOAD_CONFIG_FROM_MODEL", "1")
    assert ort.InferenceSession(given).get_session_options().intra_op_num_threads == 2
    assert ort.InferenceSession(given, read_config_from_model=0).get_session_options().intra_op_num_threads == 0


def test_a_model_without_them_has_those_given() -> None:
    """Nothing is changed."""
    given = ort.SessionOptions()
    assert options_of_model(to_bytes(model("graph(x: float[2]) -> (y) { y = Neg(x) }")), given) is given


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("[]", 'is {"session_options"'),
        ('{"session_options": 3}', 'is {"session_options"'),
        ("no JSON", "got 'no JSON'"),
        ('{"session_options": {"foo": 1}}', "sets 'foo', but may set enable_profiling"),
        ('{"session_options": {"execution_mode": 7}}', "sets execution_mode to 7"),
    ],
)
def test_malformed_options_are_refused(config: str, message: str, tmp_path: Path) -> None:
    """The message names the model and the entry."""
    path = tmp_path / "own.onnx"
    path.write_bytes(_bytes(config))
    with pytest.raises(ort.InvalidArgument, match=message):
        ort.InferenceSession(path, read_config_from_model=True)


def test_a_file_object_is_not_read_twice() -> None:
    """It is refused where options are to be read."""
    with pytest.raises(ort.InvalidArgument, match="not as a file object"):
        ort.InferenceSession(io.BytesIO(_bytes(json.dumps(CONFIG))), read_config_from_model=True)
