"""Whether compiled models suit the providers here."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.models import model

import sardonyx as ort
from sardonyx import OrtCompiledModelCompatibility as Compatibility
from sardonyx import errors
from sardonyx.codegen.target import available_levels
from sardonyx.formats import onnx as onnx_format
from sardonyx.trace import observe

CPU = "CPUExecutionProvider"
KEY = f"ep_compatibility_info.{CPU}"


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A compiled model."""
    monkeypatch.setenv("SARDONYX_CACHE_DIR", str(tmp_path / "cache"))
    return _compile(tmp_path)


def _compile(folder: Path) -> Path:
    onnx_format.save(model("graph(x: float[n]) -> (y: float[n]) { y = Relu(x) }"), folder / "model.onnx")
    ort.ModelCompiler(ort.SessionOptions(), folder / "model.onnx").compile_to_file()
    return folder / "model_ctx.onnx"


def _with_info(path: Path, info: str) -> Path:
    held = onnx_format.load(path)
    held.metadata[KEY] = info
    onnx_format.save(held, path)
    return path


def _load(path: Path, *, strict: bool = False) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.add_session_config_entry("session.fail_on_suboptimal_compiled_model", str(int(strict)))
    return ort.InferenceSession(str(path), options, providers=[CPU])


def test_a_compiled_model_says_what_it_is_good_for(compiled: Path) -> None:
    """By path and by bytes; nothing for a provider that compiled nothing, and in a model that is not compiled."""
    info = ort.get_compatibility_info_from_model(compiled, CPU)
    assert info is not None
    assert ort.get_compatibility_info_from_model_bytes(compiled.read_bytes(), CPU) == info
    assert ort.get_compatibility_info_from_model(compiled, "OtherExecutionProvider") is None
    assert ort.get_compatibility_info_from_model(compiled.with_name("model.onnx"), CPU) is None


def test_what_was_compiled_here_is_optimal(compiled: Path) -> None:
    """Devices are named in any way; no information is not judged."""
    info = ort.get_compatibility_info_from_model(compiled, CPU) or ""
    for devices in ([CPU], [(CPU, {"intra_op_num_threads": 1})], [CPU, CPU]):
        assert ort.get_model_compatibility_for_ep_devices(devices, info) is Compatibility.EP_SUPPORTED_OPTIMAL
    assert ort.get_model_compatibility_for_ep_devices([CPU], "") is Compatibility.EP_NOT_APPLICABLE
    assert ort.get_model_compatibility_for_ep_devices(["ReferenceExecutionProvider"], info) is Compatibility.EP_NOT_APPLICABLE
    assert ort.get_model_compatibility_for_ep_devices([CPU], "something else") is Compatibility.EP_NOT_APPLICABLE
    with pytest.raises(TypeError, match="compatibility_info is the text"):
        ort.get_model_compatibility_for_ep_devices([CPU], None)  # type: ignore[arg-type]  # what is refused


@pytest.mark.parametrize("devices", [[], [CPU, "ReferenceExecutionProvider"], ["Nobody"]])
def test_devices_are_of_one_provider_that_there_is(devices: list[str]) -> None:
    """Anything else is an error that says what there is."""
    with pytest.raises(errors.InvalidArgument, match=r"devices of one provider, got|there is no provider 'Nobody'"):
        ort.get_model_compatibility_for_ep_devices(devices, "info")


def test_the_numbers_are_onnxruntime_s() -> None:
    """They come from its C API."""
    assert [(item.name, int(item)) for item in Compatibility] == [
        ("EP_NOT_APPLICABLE", 0),
        ("EP_SUPPORTED_OPTIMAL", 1),
        ("EP_SUPPORTED_PREFER_RECOMPILATION", 2),
        ("EP_UNSUPPORTED", 3),
    ]


def test_an_unsupported_model_is_refused_before_anything_is_loaded(compiled: Path) -> None:
    """The message says what it was compiled for, and what to do."""
    with pytest.raises(errors.Fail, match=f"not supported by {CPU}: it was compiled for .*another.*anew"):
        _load(_with_info(compiled, '{"target": "another"}'))


def test_a_provider_that_is_not_there_says_nothing(compiled: Path) -> None:
    """Neither does a model without information, as other tools leave it."""
    held = onnx_format.load(compiled)
    held.metadata = {"ep_compatibility_info.Other": "anything"}
    onnx_format.save(held, compiled)
    assert _load(compiled, strict=True).get_providers()[0] == CPU


def test_what_holds_no_programs_needs_none_that_suit(compiled: Path) -> None:
    """Its metadata may come from another model."""
    plain = compiled.with_name("model.onnx")
    assert _load(_with_info(plain, "another one"), strict=True).run(None, {"x": [1.0, -1.0]})[0].tolist() == [1, 0]


@pytest.mark.skipif(len(available_levels()) < 2, reason="there is one level only")
def test_a_model_for_a_lower_processor_runs_unless_that_is_forbidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is reported, and an error where the option says so."""
    monkeypatch.setenv("SARDONYX_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("SARDONYX_ISA", available_levels()[0])
    path = _compile(tmp_path)
    assert _load(path, strict=True).get_providers()[0] == CPU
    monkeypatch.delenv("SARDONYX_ISA")
    info = ort.get_compatibility_info_from_model(path, CPU) or ""
    assert ort.get_model_compatibility_for_ep_devices([CPU], info) is Compatibility.EP_SUPPORTED_PREFER_RECOMPILATION
    names: list[str] = []
    with observe(lambda event: names.append(event.name)):
        assert _load(path).run(None, {"x": [1.0, -1.0]})[0].tolist() == [1, 0]
    assert "context.suboptimal" in names
    with pytest.raises(errors.Fail, match=f"suboptimal for {CPU}: .* or leave out session.fail_on_suboptimal_compiled_model"):
        _load(path, strict=True)


@pytest.mark.skipif(len(available_levels()) < 2, reason="there is one level only")
def test_a_model_for_a_higher_processor_is_refused(compiled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such is one that lacks a feature, and one that the user has use less than it has."""
    monkeypatch.setenv("SARDONYX_ISA", available_levels()[0])
    with pytest.raises(errors.Fail, match="not supported by .*: it was compiled for target .*, here .*SARDONYX_ISA set there"):
        _load(compiled)
    held = onnx_format.load(compiled)
    held.metadata = {}
    onnx_format.save(held, compiled)
    with pytest.raises(errors.EPFail, match="was compiled for .*, which lacks some of it"):
        _load(compiled)


def test_an_empty_name_is_refused() -> None:
    """Of a model or of a provider."""
    with pytest.raises(errors.InvalidArgument, match="ep_type is empty"):
        ort.get_compatibility_info_from_model("model.onnx", "")
    with pytest.raises(errors.InvalidArgument, match="model_path is empty"):
        ort.get_compatibility_info_from_model("", CPU)
