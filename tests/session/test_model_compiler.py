"""Compiling a model ahead, in onnxruntime's words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from support.models import model

import sardonyx as ort
from sardonyx import errors
from sardonyx.formats import onnx as onnx_format


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model, and a cache folder for the key of seals."""
    monkeypatch.setenv("SARDONYX_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "model.onnx"
    text = "graph(x: float[n, 64]) -> (y: float[n, 64]) {\nw: float[64, 64] = ... 1\nm = MatMul(x, w)\ny = Relu(m)\n}"
    onnx_format.save(model(text), path)
    return path


def _result(path: str | Path | bytes) -> np.ndarray:  # type: ignore[type-arg]  # of any type
    session = ort.InferenceSession(path if isinstance(path, bytes) else str(path))
    (found,) = session.run(None, {"x": np.ones((2, 64), np.float32)})
    assert isinstance(found, np.ndarray)
    return found


@pytest.mark.parametrize("embed", [False, True])
def test_a_compiled_file_computes_the_same(source: Path, embed: bool) -> None:
    """Its default path is the model's with `_ctx`; a file that is there is written over."""
    compiler = ort.ModelCompiler(ort.SessionOptions(), source, embed_compiled_data_into_model=embed)
    compiler.compile_to_file()
    compiler.compile_to_file()
    path = source.with_name("model_ctx.onnx")
    assert [node.op_type for node in onnx.load(str(path)).graph.node] == ["EPContext"]
    assert bool(list(source.parent.glob("*.bin"))) != embed
    np.testing.assert_array_equal(_result(path), _result(source))


def test_bytes_hold_all(source: Path) -> None:
    """They load by themselves."""
    compiled = ort.ModelCompiler(ort.SessionOptions(), source.read_bytes()).compile_to_bytes()
    np.testing.assert_array_equal(_result(compiled), _result(source))


def test_a_model_of_bytes_needs_a_path(source: Path, tmp_path: Path) -> None:
    """There is no name to make one of."""
    compiler = ort.ModelCompiler(ort.SessionOptions(), source.read_bytes())
    with pytest.raises(errors.InvalidArgument, match="pass output_model_path"):
        compiler.compile_to_file()
    compiler.compile_to_file(tmp_path / "given.onnx")
    assert (tmp_path / "given.onnx").exists()


def test_flags_make_errors(source: Path) -> None:
    """A file that exists, or a model of which nothing is compiled, is one where the flag says so."""
    path = source.with_name("model_ctx.onnx")
    path.write_bytes(b"")
    compiler = ort.ModelCompiler(ort.SessionOptions(), source, flags=ort.OrtCompileApiFlags.ERROR_IF_OUTPUT_FILE_EXISTS)
    with pytest.raises(errors.Fail, match="model_ctx.onnx' exists"):
        compiler.compile_to_file()
    options = ort.SessionOptions()
    options.add_provider("ReferenceExecutionProvider", {})
    compiler = ort.ModelCompiler(options, source, flags=ort.OrtCompileApiFlags.ERROR_IF_NO_NODES_COMPILED)
    with pytest.raises(errors.Fail, match="no node was compiled"):
        compiler.compile_to_file()


def test_weights_of_other_nodes_may_lie_in_a_file(source: Path) -> None:
    """Those of nodes that are compiled are in their programs."""
    options = ort.SessionOptions()
    options.add_provider("ReferenceExecutionProvider", {})
    ort.ModelCompiler(options, source, external_initializers_file_path="weights.bin").compile_to_file()
    assert (source.parent / "weights.bin").stat().st_size >= 64 * 64 * 4
    np.testing.assert_allclose(_result(source.with_name("model_ctx.onnx")), _result(source), rtol=1e-4)


def test_the_caller_s_options_stay_as_they_are(source: Path) -> None:
    """They are copied."""
    options = ort.SessionOptions()
    ort.ModelCompiler(options, source, graph_optimization_level=ort.GraphOptimizationLevel.ORT_DISABLE_ALL).compile_to_file()
    assert options.session_config_entries == {}
    assert options.graph_optimization_level == ort.GraphOptimizationLevel.ORT_ENABLE_ALL
