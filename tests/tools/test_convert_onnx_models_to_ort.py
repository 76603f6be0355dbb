"""Models in ONNX Runtime's own format."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.models import model

import sardonyx as ort
from sardonyx.formats.onnx import to_bytes
from sardonyx.tools.convert_onnx_models_to_ort import OptimizationStyle, convert_onnx_models_to_ort, main

NEGATED = to_bytes(model("graph(x: float[2]) -> (y: float[2]) {\ny = Neg(x)\n}"))


def _folder(tmp_path: Path) -> Path:
    (tmp_path / "in" / "deep").mkdir(parents=True)
    for place in ("a.onnx", "deep/b.onnx"):
        (tmp_path / "in" / place).write_bytes(NEGATED)
    return tmp_path / "in"


def test_a_folder_is_converted_as_it_lies(tmp_path: Path) -> None:
    """A file for each style; both run, here and in onnxruntime."""
    written = convert_onnx_models_to_ort(_folder(tmp_path), tmp_path / "out", list(OptimizationStyle))
    names = [path.relative_to(tmp_path / "out").as_posix() for path in written]
    assert names == ["a.ort", "a.with_runtime_opt.ort", "deep/b.ort", "deep/b.with_runtime_opt.ort"]
    peer = pytest.importorskip("onnxruntime")
    for path in written:
        for engine in (ort, peer):
            session = engine.InferenceSession(str(path), providers=["CPUExecutionProvider"])
            assert session.run(None, {"x": np.float32([1, 2])})[0].tolist() == [-1, -2]


def test_a_model_is_converted_beside_itself(tmp_path: Path) -> None:
    """And written as ONNX where asked for, which is not converted the next time."""
    folder = _folder(tmp_path)
    main([str(folder / "a.onnx"), "--save_optimized_onnx_model"])
    assert sorted(path.name for path in folder.iterdir()) == ["a.onnx", "a.optimized.onnx", "a.ort", "deep"]
    assert [path.name for path in convert_onnx_models_to_ort(folder)] == ["a.ort", "b.ort"]


def test_what_cannot_be_converted_is_an_error_or_passed_over(tmp_path: Path) -> None:
    """As one asks for."""
    folder = _folder(tmp_path)
    (folder / "bad.onnx").write_bytes(b"no model")
    with pytest.raises(ort.InvalidProtobuf):
        convert_onnx_models_to_ort(folder)
    assert [path.name for path in convert_onnx_models_to_ort(folder, allow_conversion_failures=True)] == ["a.ort", "b.ort"]


def test_a_place_without_models_is_an_error(tmp_path: Path) -> None:
    """Whether it is there or not."""
    with pytest.raises(ort.NoSuchFile, match="neither a model nor a folder"):
        convert_onnx_models_to_ort(tmp_path / "nowhere")
    with pytest.raises(ort.InvalidArgument, match=r"no files that end with \.onnx"):
        convert_onnx_models_to_ort(tmp_path)
