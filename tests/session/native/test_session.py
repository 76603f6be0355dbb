"""Sessions in two steps."""

from __future__ import annotations

import numpy as np
import pytest
from support.models import model

import sardonyx as ort
from sardonyx.capi import _pybind_state as state
from sardonyx.formats.onnx import to_bytes

BYTES = to_bytes(model("graph(x: float[n]) -> (y) {\ny = Exp(x)\n}"))
X = np.zeros(2, np.float32)


def test_a_session_is_made_and_then_initialized() -> None:
    """Its methods take what those of the compiled class take."""
    held = state.InferenceSession(state.get_default_session_options(), BYTES, False, False)
    with pytest.raises(ort.NoModel, match="initialize_session"):
        held.get_providers()
    held.initialize_session(["CPUExecutionProvider"], [{}], set())
    assert held.run(["y"], {"x": X}, None)[0].tolist() == [1, 1]
    assert held.run_with_ort_values({"x": ort.OrtValue.ortvalue_from_numpy(X)}, ["y"])[0].numpy().tolist() == [1, 1]
    assert ([item.name for item in held.inputs_meta], [item.name for item in held.outputs_meta]) == (["x"], ["y"])
    assert held.model_meta.graph_name == "main"


def test_a_binding_of_the_compiled_form_is_run() -> None:
    """By the session of that form."""
    held = state.InferenceSession(state.SessionOptions(), BYTES, False, False)
    held.initialize_session([], [])
    binding = state.SessionIOBinding(held)
    binding.bind_input("x", X)
    binding.bind_output("y")
    held.run_with_iobinding(binding, None)
    assert binding.get_outputs()[0].numpy().tolist() == [1, 1]
