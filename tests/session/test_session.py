"""Subclasses of a session, and the private names that they use."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.models import model

import sardonyx as ort
from sardonyx.capi import _pybind_state as state
from sardonyx.capi.onnxruntime_inference_collection import check_and_normalize_provider_args
from sardonyx.formats.onnx import to_bytes
from sardonyx.session.session import Session, Shown

BYTES = to_bytes(model("graph(x: float[n]) -> (y: float[n]) {\ny = Exp(x)\n}"))
FEED = {"x": np.zeros(2, np.float32)}
CPU, REFERENCE = "CPUExecutionProvider", "ReferenceExecutionProvider"


class OnReference(ort.InferenceSession):
    """Opens its model with a provider of its own choice."""

    calls = 0

    def _create_inference_session(self, providers: Any, provider_options: Any, disabled_optimizers: Any = None) -> None:
        self.calls += 1
        self.seen = (self._model_bytes, self._sess_options, self._fallback_providers, self._read_config_from_model, providers)
        super()._create_inference_session([REFERENCE], None, disabled_optimizers)


def test_a_subclass_decides_how_its_model_is_opened() -> None:
    """When it is made and when its providers change; what it was given is there already."""
    session = OnReference(BYTES, providers=[CPU])
    assert (session.seen[0], *session.seen[2:]) == (BYTES, [CPU], False, [CPU])
    assert isinstance(session.seen[1], ort.SessionOptions)
    session.set_providers([CPU])
    assert (session.calls, session.get_providers()) == (2, [REFERENCE])
    assert session.run(None, FEED)[0].tolist() == [1, 1]


class OfCompiledModule(ort.InferenceSession):
    """Makes its session by the compiled module, as onnxruntime's class does."""

    def _create_inference_session(self, providers: Any, provider_options: Any, disabled_optimizers: Any = None) -> None:
        names, options = check_and_normalize_provider_args(providers, provider_options, state.get_available_providers())
        self._register_ep_custom_ops(self._sess_options, names, options, state.get_available_providers())
        made = state.InferenceSession(self._sess_options, self._model_bytes or b"", False, self._read_config_from_model)
        made.initialize_session(names, options, disabled_optimizers or set())
        self._sess = made
        self._sess_options = made.session_options
        self._inputs_meta = made.inputs_meta
        self._providers = made.get_providers()

    def _reset_session(self, providers: Any, provider_options: Any) -> None:
        self._sess_options = self._inputs_meta = self._providers = self._sess = None
        self._sess_options = self._sess_options_initial
        self._create_inference_session(providers, provider_options)


def test_a_subclass_makes_its_session_by_the_compiled_module() -> None:
    """It runs, is bound, and takes other providers."""
    session = OfCompiledModule(BYTES, providers=[CPU])
    assert session.run(None, FEED)[0].tolist() == [1, 1]
    binding = session.io_binding()
    binding.bind_cpu_input("x", FEED["x"])
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    assert binding.copy_outputs_to_cpu()[0].tolist() == [1, 1]
    session.set_providers([REFERENCE])
    assert (session.get_providers(), session._sess.get_providers()) == ([REFERENCE], [REFERENCE])


class Bare(Session):
    """Has onnxruntime's base class, and a session of the compiled module that is initialized late."""

    def __init__(self) -> None:
        super().__init__()
        self._sess = state.InferenceSession(state.SessionOptions(), BYTES, False, False)
        self._sess.initialize_session([CPU], [{}], set())


def test_a_subclass_of_the_base_class_runs() -> None:
    """Its session becomes one of a model once the compiled one is initialized."""
    assert Bare().run(None, FEED)[0].tolist() == [1, 1]


def test_what_a_subclass_assigns_is_opened(tmp_path: Path) -> None:
    """Bytes in place of a path, and options."""

    class Decrypted(ort.InferenceSession):
        def _create_inference_session(self, *given: Any) -> None:
            self._model_bytes, self._model_path = Path(self._model_path or "").read_bytes()[::-1], None
            self._sess_options = ort.SessionOptions()
            self._sess_options.add_free_dimension_override_by_name("n", 2)
            super()._create_inference_session(*given)

    encrypted = tmp_path / "encrypted.onnx"
    encrypted.write_bytes(BYTES[::-1])
    session = Decrypted(encrypted)
    assert (session._model_path, session._model_bytes) == (None, BYTES)
    assert session.get_inputs()[0].shape == [2]


def test_a_failed_attempt_may_be_repeated() -> None:
    """The model is still there."""

    class Repeating(ort.InferenceSession):
        def _create_inference_session(self, providers: Any, provider_options: Any, disabled_optimizers: Any = None) -> None:
            with pytest.raises(ort.InvalidArgument):
                super()._create_inference_session([3], None)  # type: ignore[list-item]
            super()._create_inference_session(None, None)

    assert Repeating(BYTES).run(None, FEED)[0].tolist() == [1, 1]


def test_an_overridden_run_may_use_the_compiled_form() -> None:
    """Which runs the model, not the override; a feed that lacks an input is a ValueError."""

    class Checked(ort.InferenceSession):
        def run(self, output_names: Any, input_feed: Any, run_options: Any = None) -> Any:
            self._validate_input(list(input_feed))
            self._validate_ortvalue_ownership(input_feed.values())
            self._validate_graph_capture_run_api(run_options)
            return self._sess.run(output_names or [output.name for output in self._outputs_meta], input_feed, run_options)

        def get_outputs(self) -> Any:
            return self._outputs_meta

    session = Checked(BYTES)
    assert session.run(None, FEED)[0].tolist() == [1, 1]
    assert session.get_outputs()[0].name == "y"
    with pytest.raises(ValueError, match=r"Required inputs \(\['x'\]\) are missing"):
        session.run(None, {})


def test_a_session_is_one_of_the_base_class() -> None:
    """With the attributes that onnxruntime's has."""
    session = ort.InferenceSession(BYTES, providers=[CPU])
    assert isinstance(session, Session)
    assert session._providers == [CPU, REFERENCE]
    assert [item.name for item in (*session._inputs_meta, *session._outputs_meta)] == ["x", "y"]
    assert (session._captured_graph_bindings, session._from_model_package, session._profiling_start_time_ns) == ({}, False, 0)
    assert len(session._input_meminfos) == len(session._output_meminfos) == len(session._input_epdevices) == 1
    session._check_session_can_be_recreated("set_providers")
    session._release_captured_graphs()


def test_a_bound_session_is_the_compiled_one() -> None:
    """`_bind_session` takes its model and options."""
    made = state.InferenceSession(state.SessionOptions(), BYTES, False, False)
    made.initialize_session([REFERENCE], [{}], set())
    session = ort.InferenceSession(BYTES)
    session._bind_session(made)
    assert session.get_providers() == [REFERENCE]


class Held:
    """An object with an attribute that is computed."""

    double = Shown(lambda held: 2 * held.number)
    number = 3


def test_a_shown_attribute_is_computed_until_it_is_assigned() -> None:
    """By each object for itself."""
    held, other = Held(), Held()
    assert held.double == 6
    held.__dict__["double"] = 1
    assert (held.double, other.double) == (1, 6)
    assert isinstance(Held.double, Shown)


class Reloading(ort.InferenceSession):
    """Is pickled by the path that it remembers, as packages of face recognition do it."""

    def __init__(self, model: bytes) -> None:
        super().__init__(model)
        self.model = model

    def __getstate__(self) -> dict[str, bytes]:
        return {"model": self.model}

    def __setstate__(self, state: dict[str, bytes]) -> None:
        self.__init__(state["model"])  # type: ignore[misc]  # what such a class does


class Named(ort.InferenceSession):
    """Has an attribute of its own."""

    label = ""


def test_subclasses_are_pickled_their_own_way() -> None:
    """By the state that they define, or with the attributes that they add."""
    again = pickle.loads(pickle.dumps(Reloading(BYTES)))
    assert (again.model, again.run(None, FEED)[0].tolist()) == (BYTES, [1, 1])
    named = Named(BYTES)
    named.label = "mine"
    named._inputs_meta = []
    named.run(None, FEED)
    named.run(None, FEED)
    again = pickle.loads(pickle.dumps(named))
    assert (vars(again).keys() - vars(ort.InferenceSession(BYTES)).keys(), again.label) == ({"label"}, "mine")


def test_a_subclass_may_have_methods_of_any_name() -> None:
    """A run calls none of those that a subclass is likely to have."""

    class Mine(ort.InferenceSession):
        def compute(self, x: float) -> float:
            return x

        def explain(self) -> str:  # type: ignore[override]
            return "mine"

        def trim(self) -> str:  # type: ignore[override]
            return "mine"

    held = Mine(BYTES, providers=[CPU])
    for _ in range(4):
        assert held.run(None, FEED)[0].tolist() == [1, 1]
    binding = held.io_binding()
    binding.bind_cpu_input("x", FEED["x"])
    binding.bind_output("y")
    held.run_with_iobinding(binding)
    assert binding.copy_outputs_to_cpu()[0].tolist() == [1, 1]
    assert (held.compute(2.0), held.explain(), held.trim()) == (2.0, "mine", "mine")
