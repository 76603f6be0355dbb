"""Bindings by devices."""

from __future__ import annotations

import numpy as np
from support.models import model

import sardonyx as ort
from sardonyx.capi import _pybind_state as state
from sardonyx.formats.onnx import to_bytes


def test_places_are_devices_types_shapes_and_addresses() -> None:
    """Or an array; outputs come as a vector."""
    session = ort.InferenceSession(to_bytes(model("graph(x: float[n]) -> (y) {\ny = Exp(x)\n}")))
    x, y, cpu = np.zeros(2, np.float32), np.zeros(2, np.float32), state.OrtDevice(0, 0, 0)
    binding = state.SessionIOBinding(session)
    binding.bind_input("x", cpu, np.float32, [2], x.ctypes.data)
    binding.bind_output("y", cpu, 1, [2], y.ctypes.data)
    session.run_with_iobinding(binding.binding)
    assert y.tolist() == [1, 1]
    binding.bind_input("x", y)
    binding.clear_binding_outputs()
    binding.bind_output("y", cpu)
    session.run_with_iobinding(binding.binding)
    np.testing.assert_allclose(binding.get_outputs()[0].numpy(), np.exp(y))
    np.testing.assert_allclose(binding.copy_outputs_to_cpu()[0], np.exp(y))
