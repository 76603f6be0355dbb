"""The steps of layout conversions as models."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from support.models import model
from support.providers import NhwcProvider

import sardonyx as ort
from sardonyx.formats.onnx import to_bytes

TEXT = """graph(x: float[1, 3, 8, 6]) -> (y: float[1, 4, 8, 6]) {
    w: float[4, 3, 1, 1] = ... 1
    a = Relu(x)
    b = Conv(a, w)
    y = Relu(b)
}"""


def _session(setting: str) -> None:
    options = ort.SessionOptions()
    options.add_session_config_entry("session.debug_layout_transformation", setting)
    ort.InferenceSession(to_bytes(model(TEXT)), options, providers=[NhwcProvider()])


def _operators(path: Path) -> list[str]:
    return [f"{node.domain}.{node.op_type}".strip(".") for node in onnx.load(path).graph.node]


def test_each_step_is_a_model(tmp_path: Path) -> None:
    """First the node with its transposes, then what is left when they have been pushed."""
    _session(str(tmp_path / "steps"))
    first, second = sorted((tmp_path / "steps").iterdir())
    assert [first.name, second.name] == ["post_layout_transform_step_1.onnx", "post_layout_transform_step_2.onnx"]
    assert _operators(first) == ["Relu", "Transpose", "sardonyx.nhwc.Conv", "Transpose", "Relu"]
    assert _operators(second) == ["Relu", "Transpose", "sardonyx.nhwc.Conv", "Relu", "Transpose"]


def test_one_writes_into_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As onnxruntime does."""
    monkeypatch.chdir(tmp_path)
    _session("1")
    assert len(list(tmp_path.glob("post_layout_transform_step_*.onnx"))) == 2


def test_zero_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is off by default."""
    monkeypatch.chdir(tmp_path)
    _session("0")
    assert not list(tmp_path.iterdir())
