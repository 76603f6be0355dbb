"""Tests of sessions of model packages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.models import model

from sardonyx.errors import Fail, InvalidArgument, NoSuchFile, NotFound
from sardonyx.formats.onnx import to_bytes
from sardonyx.model_packages.context import ModelPackageContext, ModelPackageOptions
from sardonyx.session.options import SessionOptions
from sardonyx.session.providers import make_providers

CPU = {"ep": "CPUExecutionProvider"}
INFO = make_providers([("CPUExecutionProvider", {}, None)])[0].compatibility_info()  # type: ignore[attr-defined]  # the CPU provider has it, others need not
TEXT = "graph(x: float[n]) -> (y: float[n]) {\ny = Relu(x)\n}"


def _context(root: Path, **variants: dict[str, Any]) -> ModelPackageContext:
    for name in variants:
        (root / name).mkdir(parents=True)
        (root / name / "m.onnx").write_bytes(to_bytes(model(TEXT)))
    manifest = {"schema_version": "1.0", "components": {"c": {"variants": variants}}}
    (root / "manifest.json").write_text(json.dumps(manifest))
    return ModelPackageContext(root)


def _options(*providers: str) -> ModelPackageOptions:
    options = SessionOptions()
    for name in providers:
        options.add_provider(name, {})
    return ModelPackageOptions(options)


def _chosen(context: ModelPackageContext, *providers: str) -> str:
    return context.select_component("c", _options(*providers)).get_selected_variant_name()


def _says(**said: object) -> dict[str, Any]:
    return {**CPU, "executor_info": {"ort": {"model_file": "m.onnx", **said}}}


def test_what_a_package_has(tmp_path: Path) -> None:
    """Components and variants, in their order."""
    context = _context(tmp_path, b=CPU, a={})
    assert (context.get_schema_version(), context.get_component_count(), context.get_component_names()) == (1, 1, ["c"])
    assert (context.get_variant_count("c"), context.get_variant_names("c")) == (2, ["b", "a"])
    assert [context.get_variant_ep_name("c", name) for name in ("b", "a")] == ["CPUExecutionProvider", None]
    assert context.resolve_string_ref("a/m.onnx", must_exist=True) == str(tmp_path / "a" / "m.onnx")
    with pytest.raises(NotFound, match="no component 'd'; it has c"):
        context.get_variant_names("d")
    with pytest.raises(NotFound, match="component 'c' has no variant 'z'"):
        context.get_variant_ep_name("c", "z")


@pytest.mark.parametrize(
    ("variants", "providers", "chosen"),
    [
        ({"b": CPU, "a": CPU}, (), "b"),
        ({"b": {}, "g": {"ep": "CUDAExecutionProvider"}, "a": CPU}, (), "a"),
        ({"n": {**CPU, "device": "npu"}, "a": {**CPU, "device": "CPU"}}, (), "a"),
        ({"o": CPU, "a": {**CPU, "compatibility_string": INFO}}, (), "a"),
        ({"b": CPU, "a": {"ep": "ReferenceExecutionProvider"}}, ("ReferenceExecutionProvider", "CPUExecutionProvider"), "a"),
        ({"b": CPU, "g": {"ep": "CUDAExecutionProvider"}}, ("CUDAExecutionProvider",), "g"),
    ],
)
def test_the_variant_that_suits_the_first_provider(
    tmp_path: Path, variants: dict[str, Any], providers: tuple[str, ...], chosen: str
) -> None:
    """And its device, and was compiled for it; the first of equal ones."""
    assert _chosen(_context(tmp_path, **variants), *providers) == chosen


@pytest.mark.parametrize("variant", [{}, {"ep": "CUDAExecutionProvider"}, {**CPU, "device": "gpu"}])
def test_where_no_variant_suits(tmp_path: Path, variant: dict[str, Any]) -> None:
    """The variants are told with their providers."""
    with pytest.raises(NotFound, match="no variant of component 'c' suits CPUExecutionProvider; it has 'v' for "):
        _chosen(_context(tmp_path, v=variant))


def test_a_session_of_a_variant(tmp_path: Path) -> None:
    """Has the options and the providers that the variant says."""
    said = {"session.log_id": "mine", "session.model_external_initializers_file_folder_path": "w"}
    found = _context(tmp_path, v=_says(session_options=said)).select_component("c", _options())
    session = found.create_session()
    np.testing.assert_array_equal(session.run(None, {"x": np.array([-1, 2], np.float32)})[0], np.array([0, 2], np.float32))
    entries = session.get_session_options().session_config_entries
    assert entries["session.log_id"] == "mine"
    assert entries["session.model_external_initializers_file_folder_path"] == str(tmp_path / "v" / "w")
    assert found.get_selected_variant_folder_path() == str(tmp_path / "v")


def test_options_stand_above_what_a_variant_says(tmp_path: Path) -> None:
    """But for paths, which they may leave out."""
    said = {"session.log_id": "mine", "ep.context_file_path": "k", "session.model_external_initializers_file_folder_path": "w"}
    options = SessionOptions()
    options.intra_op_num_threads = 1
    options.add_session_config_entry("ep.context_file_path", "own")
    session = _context(tmp_path, v=_says(session_options=said)).select_component("c", _options()).create_session(options)
    assert session.get_session_options().session_config_entries == {
        "ep.context_file_path": "own",
        "session.model_external_initializers_file_folder_path": str(tmp_path / "v" / "w"),
    }
    assert session.get_session_options().intra_op_num_threads == 1
    assert options.session_config_entries == {"ep.context_file_path": "own"}


def test_options_of_the_provider(tmp_path: Path) -> None:
    """Are those of the package's options and of the variant."""
    found = _context(tmp_path, v=_says(provider_options={"intra_op_num_threads": "1"})).select_component("c", _options())
    assert found.create_session().get_provider_options()["CPUExecutionProvider"] == {"intra_op_num_threads": "1"}
    assert found.create_session(SessionOptions()).get_provider_options()["CPUExecutionProvider"] == {}


def test_providers_of_the_options_are_the_sessions(tmp_path: Path) -> None:
    """Where they have any."""
    options = SessionOptions()
    options.add_provider("ReferenceExecutionProvider", {})
    session = _context(tmp_path, v=_says()).select_component("c", _options()).create_session(options)
    assert session.get_providers() == ["ReferenceExecutionProvider"]


@pytest.mark.parametrize("variant", [CPU, {**CPU, "executor_info": {"ort": {}}}, {**CPU, "executor_info": {"other": {}}}])
def test_a_variant_without_a_model(tmp_path: Path, variant: dict[str, Any]) -> None:
    """Makes no session."""
    with pytest.raises(Fail, match="variant 'v' of component 'c' has no executor_info"):
        _context(tmp_path, v=variant).select_component("c", _options()).create_session()


def test_a_model_that_is_not_there(tmp_path: Path) -> None:
    """Is an error of the session."""
    with pytest.raises(NoSuchFile):
        _context(tmp_path, v=_says(model_file="no.onnx")).select_component("c", _options()).create_session()


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"model_file": 3}, "model_file in executor_info"),
        ({"model_file": "../m.onnx"}, r"'\.\.' is not allowed"),
        ({"session_options": []}, "session_options in executor_info.* is an object of texts"),
        ({"provider_options": {"a": 1}}, "provider_options in executor_info.* is an object of texts"),
        ({"session_options": {"ep.context_file_path": "/x"}}, "absolute path"),
    ],
)
def test_what_a_variant_says_wrong(tmp_path: Path, said: dict[str, object], message: str) -> None:
    """Is refused when the package is read."""
    with pytest.raises(InvalidArgument, match=message):
        _context(tmp_path, v=_says(**said))


def test_arguments_of_another_type(tmp_path: Path) -> None:
    """Are named."""
    context: Any = _context(tmp_path, v=_says())
    with pytest.raises(TypeError, match="sess_options"):
        ModelPackageOptions(None)  # type: ignore[arg-type]  # what is tested
    with pytest.raises(TypeError, match="options"):
        context.select_component("c", SessionOptions())
    with pytest.raises(TypeError, match="sess_options"):
        context.select_component("c", _options()).create_session(3)
    with pytest.raises(TypeError, match="package_root"):
        ModelPackageContext(3)  # type: ignore[arg-type]  # what is tested
