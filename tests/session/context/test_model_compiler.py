"""Compiling a model ahead, in onnxruntime's words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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


def test_a_model_that_cannot_be_compiled_leaves_the_old_one(source: Path) -> None:
    """What was compiled before is replaced when all is done."""
    compiler = ort.ModelCompiler(ort.SessionOptions(), source)
    compiler.compile_to_file()
    before = {item.name: item.read_bytes() for item in source.parent.glob("model_ctx*")}
    compiled = source.read_bytes()
    source.write_bytes(b"no model")
    with pytest.raises(errors.InvalidProtobuf):
        compiler.compile_to_file()
    assert {item.name: item.read_bytes() for item in source.parent.glob("model_ctx*")} == before
    source.write_bytes(compiled)
    compiler.compile_to_file()
    np.testing.assert_array_equal(_result(source.with_name("model_ctx.onnx")), _result(source))


def test_the_original_is_not_replaced(source: Path) -> None:
    """It is what the compiled one is made anew from."""
    before = source.read_bytes()
    with pytest.raises(errors.InvalidArgument, match="would replace the original .*model.onnx'; give it another path"):
        ort.ModelCompiler(ort.SessionOptions(), source).compile_to_file(source)
    assert source.read_bytes() == before


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
    with pytest.raises(errors.Fail, match="Unable to compile any nodes"):
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


def test_a_stream_gets_the_bytes_part_after_part(source: Path) -> None:
    """Together they are a model; a function that fails is named."""
    parts: list[bytes] = []
    compiler = ort.ModelCompiler(ort.SessionOptions(), source, embed_compiled_data_into_model=True)
    compiler.compile_to_stream(parts.append)
    np.testing.assert_array_equal(_result(b"".join(parts)), _result(source))

    def fail(part: bytes) -> None:
        raise BrokenPipeError("nobody listens")

    with pytest.raises(errors.Fail, match="was to write the compiled model failed: BrokenPipeError: nobody listens"):
        compiler.compile_to_stream(fail)


def test_callbacks_store_and_give_back_what_would_be_files(source: Path) -> None:
    """Nothing is written beside the model, which may be bytes itself."""
    kept: dict[str, bytes] = {}
    compiler = ort.ModelCompiler(ort.SessionOptions(), source)
    compiler.set_ep_context_data_write_func(lambda name, data: kept.update({name: data.read()}))
    content = compiler.compile_to_bytes()
    compiler.compile_to_file()
    assert list(kept) == ["model_ctx.bin"]
    assert not list(source.parent.glob("*.bin"))

    def read(name: str, buffer: ort.OrtEpContextDataBuffer) -> None:
        buffer.allocate(len(kept[name]))
        buffer.write(kept[name])

    options = ort.SessionOptions()
    options.set_ep_context_data_read_func(read, 1 << 24)
    for compiled in (content, str(source.with_name("model_ctx.onnx"))):
        (found,) = ort.InferenceSession(compiled, options).run(None, {"x": np.ones((2, 64), np.float32)})
        np.testing.assert_array_equal(found, _result(source))
    compiler.clear_ep_context_data_write_func()
    compiler.compile_to_file()
    assert list(source.parent.glob("*.bin"))


def test_a_callback_that_cannot_write_is_an_error(source: Path) -> None:
    """And no model is left that lacks its programs."""

    def fail(name: str, data: ort.OrtEpContextData) -> None:
        raise OSError("disk full")

    compiler = ort.ModelCompiler(ort.SessionOptions(), source)
    compiler.set_ep_context_data_write_func(fail)
    with pytest.raises(errors.Fail, match="write callback failed for 'model_ctx.bin': OSError: disk full"):
        compiler.compile_to_file()
    assert not source.with_name("model_ctx.onnx").exists()


def test_a_callback_says_where_initializers_are(source: Path) -> None:
    """Those of nodes that are not compiled, each by its name; None leaves one in the model."""
    options = ort.SessionOptions()
    options.add_provider("ReferenceExecutionProvider", {})
    seen: dict[str, list[int]] = {}
    file = source.with_name("initializers.bin").open("wb")

    def locate(name: str, value: Any, info: object) -> ort.OrtExternalInitializerInfo | None:
        seen[name] = value.shape()
        if value.tensor_size_in_bytes() < 64:
            return None
        offset = file.tell()
        file.write(value.numpy().tobytes())
        return ort.OrtExternalInitializerInfo("initializers.bin", offset, value.tensor_size_in_bytes())

    with file:
        file.write(b"something before")
        ort.ModelCompiler(options, source, get_initializer_location_func=locate).compile_to_file()
    assert list(seen.values()) == [[64, 64]]
    path = source.with_name("model_ctx.onnx")
    assert path.stat().st_size < 64 * 64
    np.testing.assert_allclose(_result(path), _result(source), rtol=1e-4)


def test_a_callback_is_told_where_initializers_were(source: Path) -> None:
    """What it returns may be just that: the data stay where they are."""
    onnx_format.save(onnx_format.load(source), source, data_name="weights.bin", least_bytes=0)
    options = ort.SessionOptions()
    options.add_provider("ReferenceExecutionProvider", {})
    seen: list[object] = []

    def locate(name: str, value: object, info: ort.OrtExternalInitializerInfo | None) -> ort.OrtExternalInitializerInfo | None:
        seen.append(info)
        return info

    ort.ModelCompiler(options, source, get_initializer_location_func=locate).compile_to_file()
    assert seen == [ort.OrtExternalInitializerInfo("weights.bin", 0, 64 * 64 * 4)]
    np.testing.assert_allclose(_result(source.with_name("model_ctx.onnx")), _result(source), rtol=1e-4)


def test_arguments_that_contradict_one_another_are_errors(source: Path) -> None:
    """So is no model at all, and a callback that fails."""
    options = ort.SessionOptions()
    options.add_provider("ReferenceExecutionProvider", {})

    def fail(name: str, value: object, info: object) -> None:
        raise KeyError(name)

    with pytest.raises(errors.InvalidArgument, match="external_initializers_file_path or get_initializer_location_func, not both"):
        ort.ModelCompiler(options, source, external_initializers_file_path="a.bin", get_initializer_location_func=fail)
    with pytest.raises(errors.InvalidArgument, match="the path of a file or its bytes, got b''"):
        ort.ModelCompiler(options, b"")
    with pytest.raises(errors.Fail, match="get_initializer_location_func failed for 'w': KeyError"):
        ort.ModelCompiler(options, source, get_initializer_location_func=fail).compile_to_file()


def test_models_that_share_are_compiled_one_after_another(source: Path) -> None:
    """By the entries of the session options, as with sessions; one file holds the programs of both."""
    options = ort.SessionOptions()
    options.add_session_config_entry("ep.share_ep_contexts", "1")
    ort.ModelCompiler(options, source).compile_to_file(source.with_name("one.onnx"))
    options.add_session_config_entry("ep.stop_share_ep_contexts", "1")
    ort.ModelCompiler(options, source).compile_to_file(source.with_name("two.onnx"))
    assert [item.name for item in source.parent.glob("*.bin")] == ["one.bin"]
    for name in ("one.onnx", "two.onnx"):
        np.testing.assert_array_equal(_result(source.with_name(name)), _result(source))


def test_bytes_whose_programs_lie_in_a_file(source: Path, tmp_path: Path) -> None:
    """In the folder and under the name that were set; a session finds them by a path in that folder."""
    folder = tmp_path / "programs"
    folder.mkdir()
    compiler = ort.ModelCompiler(ort.SessionOptions(), source)
    compiler.set_ep_context_binary_information(folder, "encoder.onnx")
    content = compiler.compile_to_bytes()
    assert [path.name for path in folder.iterdir()] == ["encoder_ctx.bin"]
    options = ort.SessionOptions()
    options.add_session_config_entry("ep.context_file_path", str(folder / "any.onnx"))
    x = np.ones((2, 64), np.float32)
    np.testing.assert_array_equal(ort.InferenceSession(content, options).run(None, {"x": x})[0], _result(source))


@pytest.mark.parametrize(
    ("folder", "name", "message"),
    [("", "a", "is empty"), (".", "", "is empty"), ("no/such", "a", "not a valid directory"), (".", "a/b", "without a folder")],
)
def test_places_of_programs_that_are_none(source: Path, folder: str, name: str, message: str) -> None:
    """They are an error at once."""
    with pytest.raises(errors.InvalidArgument, match=message):
        ort.ModelCompiler(ort.SessionOptions(), source).set_ep_context_binary_information(folder, name)


def test_a_model_of_another_kind() -> None:
    """A number is neither a path nor bytes."""
    model: Any = 3
    with pytest.raises(TypeError, match="type 'int'"):
        ort.ModelCompiler(ort.SessionOptions(), model)


def test_a_threshold_is_a_number_of_bytes() -> None:
    """A negative one is none."""
    with pytest.raises(ort.InvalidArgument, match="external_initializers_size_threshold is a number of bytes, got -1"):
        ort.ModelCompiler(ort.SessionOptions(), b"model", external_initializers_size_threshold=-1)
