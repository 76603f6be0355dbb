"""`sardonyx convert`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from support.packages import make_package

import sardonyx as ort


def test_models_go_from_format_to_format(invoke: Callable[..., Result], model_file: Path, tmp_path: Path) -> None:
    """By the suffix; each loads and computes the same."""
    source = model_file
    for name, kind in (("a.ort", "ORT"), ("b.nnpackage", "NNPackage"), ("c.zip", "NNPackage"), ("d.onnx", "ONNX")):
        output = invoke("convert", source, tmp_path / name).output
        assert f"{tmp_path / name}: {kind}, 2 nodes" in output
        assert "everything is expressed" in output
        source = tmp_path / name
        assert ort.InferenceSession(source).run(None, {"x": [[1.0, -1.0]]})[0].tolist() == [[2, 2]]


def test_a_name_decides_where_it_is_given(invoke: Callable[..., Result], model_file: Path, tmp_path: Path) -> None:
    """In any case of letters."""
    found = json.loads(invoke("convert", model_file, tmp_path / "m.bin", "--to", "ort", "--json").stdout)
    assert found == {"path": str(tmp_path / "m.bin"), "format": "ORT", "nodes": 2, "not_expressed": []}
    assert (tmp_path / "m.bin").read_bytes()[4:8] == b"ORTM"


def test_what_is_not_expressed_is_listed(invoke: Callable[..., Result], tmp_path: Path) -> None:
    """Metadata that place the nodes of a package, in ONNX Runtime's format."""
    package = make_package(
        tmp_path / "p", {"models": ["add.onnx"], "model-types": ["onnx"], "configs": ["a.cfg"]}, a_cfg="BACKENDS=cpu"
    )
    output = invoke("convert", package, tmp_path / "m.ort").output
    assert "not expressed" in output
    assert "1 nodes  their metadata is left out" in output


def test_nothing_is_overwritten_unasked(invoke: Callable[..., Result], model_file: Path, tmp_path: Path) -> None:
    """A folder that is no package not even then."""
    target = tmp_path / "m.ort"
    target.write_bytes(b"before")
    result = invoke("convert", model_file, target)
    assert result.exit_code != 0
    assert target.read_bytes() == b"before"
    assert invoke("convert", model_file, target, "--force").exit_code == 0
    assert target.read_bytes()[4:8] == b"ORTM"
    folder = tmp_path / "mine.nnpackage"
    folder.mkdir()
    (folder / "mine").write_text("mine")
    refused = invoke("convert", model_file, folder, "--force")
    assert refused.exit_code != 0
    assert "holds no package; it is not replaced" in refused.output
    assert (folder / "mine").read_text() == "mine"


@pytest.mark.parametrize("level", ["basic", "extended", "all"])
def test_models_are_optimized_first(invoke: Callable[..., Result], model_file: Path, tmp_path: Path, level: str) -> None:
    """As far as it is asked for, with operators that onnxruntime has."""
    assert invoke("convert", model_file, tmp_path / "m.ort", "--level", level).exit_code == 0
    assert ort.InferenceSession(tmp_path / "m.ort").run(None, {"x": [[1.0, -1.0]]})[0].tolist() == [[2, 2]]


def test_weights_go_to_a_file_beside_onnx_only(invoke: Callable[..., Result], model_file: Path, tmp_path: Path) -> None:
    """Other formats have no such files."""
    assert invoke("convert", model_file, tmp_path / "m.onnx", "--external-data", "m.data").exit_code == 0
    refused = invoke("convert", model_file, tmp_path / "m.ort", "--external-data", "n.data")
    assert "in ONNX's format only" in refused.output


def test_a_format_that_nobody_knows_is_an_error(invoke: Callable[..., Result], model_file: Path, tmp_path: Path) -> None:
    """With those that are known."""
    output = invoke("convert", model_file, tmp_path / "m", "--to", "caffe").output
    assert "there is no format 'caffe'; there are ONNX, ORT" in output
    assert "written are ONNX, ORT, NNPackage" in invoke("convert", model_file, tmp_path / "m.tflite").output
