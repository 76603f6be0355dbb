"""Sessions that are made again: with other providers, or in another process."""

from __future__ import annotations

import io
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.models import model

import sardonyx as ort
from sardonyx.formats.onnx import save, to_bytes
from sardonyx.session.native.session import InferenceSession as NativeSession
from sardonyx.session.remaking import Arguments, model_of, with_providers

BYTES = to_bytes(model("graph(x: float[n]) -> (y: float[n]) {\ny = Exp(x)\n}"))
FEED = {"x": np.zeros(2, np.float32)}
CPU, REFERENCE = "CPUExecutionProvider", "ReferenceExecutionProvider"


def test_providers_are_set_anew() -> None:
    """Without arguments the session has those that it has by default."""
    session = ort.InferenceSession(BYTES)
    session.set_providers([REFERENCE])
    assert session.get_providers() == [REFERENCE]
    assert session.run(None, FEED)[0].tolist() == [1, 1]
    session.set_providers()
    assert session.get_providers() == [CPU, REFERENCE]


def test_a_session_stays_where_its_new_providers_fail() -> None:
    """It runs with those that it had."""
    session = ort.InferenceSession(BYTES, providers=[REFERENCE])
    with pytest.raises(ort.InvalidArgument, match="2 entries for 1 providers"):
        session.set_providers([CPU], [{}, {}])
    assert session.get_providers() == [REFERENCE]
    assert session.run(None, FEED)[0].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("options", "message"), [(3, "provider_options is a list"), ([3], "an entry of provider_options is a dict")]
)
def test_options_of_providers_that_are_none_are_a_type_error(options: Any, message: str) -> None:
    """When a session is made as when its providers change."""
    with pytest.raises(TypeError, match=message):
        ort.InferenceSession(BYTES, providers=[CPU], provider_options=options)
    with pytest.raises(TypeError, match=message):
        ort.InferenceSession(BYTES).set_providers([CPU], options)


def test_a_model_that_is_not_kept_is_said() -> None:
    """That of a file object is not; the advice is a path."""
    session = ort.InferenceSession(io.BytesIO(BYTES))
    with pytest.raises(
        ort.Fail, match="set_providers reads the model again, which this session has not kept: give the session a path"
    ):
        session.set_providers([REFERENCE])


def test_attributes_that_packages_read(tmp_path: Path) -> None:
    """The path or the bytes, the options, the providers, and the compiled form."""
    save(model("graph(x: float[n]) -> (y: float[n]) {\ny = Exp(x)\n}"), tmp_path / "m.onnx")
    by_path, by_bytes = ort.InferenceSession(tmp_path / "m.onnx"), ort.InferenceSession(BYTES, enable_fallback=0)
    assert (by_path._model_path, by_path._model_bytes) == (str(tmp_path / "m.onnx"), None)
    assert (by_bytes._model_path, by_bytes._model_bytes) == (None, BYTES)
    assert [argument.name for argument in by_bytes._inputs_meta] == [argument.name for argument in by_bytes.get_inputs()]
    assert [argument.name for argument in by_bytes._outputs_meta] == [argument.name for argument in by_bytes.get_outputs()]
    assert by_bytes._overridable_initializers == by_bytes.get_overridable_initializers()
    assert by_bytes._model_meta.graph_name == by_bytes.get_modelmeta().graph_name
    assert by_path._sess_options is by_path.get_session_options()
    assert by_path._providers == [CPU, REFERENCE]
    assert isinstance(by_path._sess, NativeSession)
    assert by_path._sess.run(["y"], FEED)[0].tolist() == [1, 1]


def test_fallback_is_switched() -> None:
    """The attribute follows; runs are as they were."""
    session = ort.InferenceSession(BYTES, enable_fallback=0)
    assert not session._enable_fallback
    session.enable_fallback()
    assert session._enable_fallback
    session.disable_fallback()
    assert not session._enable_fallback


def test_a_session_is_pickled_by_its_model() -> None:
    """Options and providers come along."""
    options = ort.SessionOptions()
    options.add_free_dimension_override_by_name("n", 2)
    again = pickle.loads(pickle.dumps(ort.InferenceSession(BYTES, options, [REFERENCE])))
    assert (again.get_providers(), again.get_inputs()[0].shape) == ([REFERENCE], [2])
    assert again.run(None, FEED)[0].tolist() == [1, 1]


def test_a_pickled_session_runs_in_another_process(tmp_path: Path) -> None:
    """By the path of its model."""
    save(model("graph(x: float[n]) -> (y: float[n]) {\ny = Exp(x)\n}"), tmp_path / "m.onnx")
    (tmp_path / "s.pickle").write_bytes(pickle.dumps(ort.InferenceSession(tmp_path / "m.onnx")))
    code = "import pickle, sys; print(pickle.load(open(sys.argv[1], 'rb')).run(None, {'x': [0.0]})[0].tolist())"
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "s.pickle")], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[1.0]"


@pytest.mark.parametrize("given", [3, None, {}])
def test_what_holds_no_model_is_a_type_error(given: object) -> None:
    """As in onnxruntime."""
    with pytest.raises(TypeError, match="a model cannot be loaded from"):
        ort.InferenceSession(given)


def test_what_holds_a_model_passes() -> None:
    """Bytes stay what they are."""
    assert model_of(BYTES) is BYTES


def test_options_of_another_type_are_a_type_error() -> None:
    """A number is none."""
    with pytest.raises(TypeError, match="sess_options is a SessionOptions or None, got int"):
        ort.InferenceSession(BYTES, 5)  # type: ignore[arg-type]


def test_arguments_take_other_providers() -> None:
    """The rest stays."""
    arguments = with_providers(Arguments(ort.SessionOptions(), ("a",), None, None), [CPU], [{"use_arena": 1}])
    assert (arguments.providers, arguments.provider_options, arguments.disabled_optimizers) == ((CPU,), ({"use_arena": 1},), ("a",))


def test_run_options_of_another_type_are_a_type_error() -> None:
    """A number is none."""
    with pytest.raises(TypeError, match="run_options is a RunOptions or None, got int"):
        ort.InferenceSession(BYTES).run(None, FEED, 5)  # type: ignore[arg-type]


def test_a_provider_that_nobody_knows_cannot_be_set() -> None:
    """The session stays as it is; one of onnxruntime's builds is passed over with a warning."""
    session = ort.InferenceSession(to_bytes(model("graph(x: float[2]) -> (y) { y = Neg(x) }")), providers=[CPU])
    with pytest.raises(RuntimeError, match="Unknown Provider Type: FooExecutionProvider"):
        session.set_providers(["FooExecutionProvider"])
    with pytest.warns(UserWarning, match="'CUDAExecutionProvider' is not available"):
        session.set_providers(["CUDAExecutionProvider"])
    assert session.get_providers()[0] == CPU
