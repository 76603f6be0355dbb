"""Inputs and outputs bound in advance."""

from __future__ import annotations

import numpy as np
import pytest
from support.models import model

import sardonyx as ort
from sardonyx.formats.onnx import to_bytes

BYTES = to_bytes(model("graph(x: float[n, 3], w: float[n, 3]) -> (y, z) {\ny = Add(x, w)\nz = Mul(x, x)\n}"))
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def bound() -> tuple[ort.InferenceSession, ort.IOBinding]:
    """A session whose inputs are bound."""
    session = ort.InferenceSession(BYTES)
    binding = session.io_binding()
    binding.bind_cpu_input("x", X)
    binding.bind_ortvalue_input("w", ort.OrtValue.ortvalue_from_numpy(X))
    return session, binding


def test_outputs_lie_in_the_memory_that_is_bound() -> None:
    """A value's, and memory at an address; nothing is copied."""
    session, binding = bound()
    y, z = ort.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32), np.zeros((2, 3), np.float32)
    binding.bind_ortvalue_output("y", y)
    binding.bind_output("z", "cpu", 0, np.float32, [2, 3], z.ctypes.data)
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(y.numpy(), X + X)
    np.testing.assert_array_equal(z, X * X)
    assert [value.data_ptr() for value in binding.get_outputs()] == [y.data_ptr(), z.ctypes.data]


def test_an_output_without_memory_gets_some() -> None:
    """In the order of the bindings; copies are copies."""
    session, binding = bound()
    binding.bind_output("z")
    binding.bind_output("y", "cpu")
    session.run_with_iobinding(binding)
    z, y = binding.copy_outputs_to_cpu()
    np.testing.assert_array_equal(z, X * X)
    np.testing.assert_array_equal(y, X + X)
    assert y.ctypes.data != binding.get_outputs_as_ortvaluevector()[1].data_ptr()


def test_inputs_are_read_by_each_run() -> None:
    """What changes in the bound array changes the result."""
    session, binding = bound()
    x = X.copy()
    binding.bind_cpu_input("x", x)
    binding.bind_output("z")
    session.run_with_iobinding(binding)
    x += 1
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], (X + 1) ** 2)


def test_memory_at_an_address_is_an_input() -> None:
    """By type and shape."""
    session, binding = bound()
    binding.bind_input("x", "cpu", 0, np.float32, [2, 3], X.ctypes.data)
    binding.bind_output("z")
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], X * X)


def test_an_output_can_be_the_next_input() -> None:
    """A loop without copies: the memory of y is bound to x."""
    session, binding = bound()
    state = ort.OrtValue.ortvalue_from_numpy(X.copy())
    binding.bind_ortvalue_input("x", state)
    binding.bind_ortvalue_output("y", state)
    for _ in range(3):
        session.run_with_iobinding(binding)
    np.testing.assert_array_equal(state.numpy(), 4 * X)


@pytest.mark.parametrize("name", ["q", ""])
def test_an_unknown_input_is_refused_when_it_is_bound(name: str) -> None:
    """With the known ones."""
    _, binding = bound()
    with pytest.raises(ort.InvalidArgument, match="Failed to find input name in the model"):
        binding.bind_cpu_input(name, X)


def test_an_unknown_output_is_refused_by_the_run() -> None:
    """As in onnxruntime."""
    session, binding = bound()
    binding.bind_output("q")
    with pytest.raises(ort.InvalidArgument, match="no output 'q'"):
        session.run_with_iobinding(binding)


def test_a_binding_belongs_to_its_session() -> None:
    """Another session refuses it."""
    _, binding = bound()
    binding.bind_output("y")
    with pytest.raises(ort.InvalidArgument, match="session that created it"):
        ort.InferenceSession(BYTES).run_with_iobinding(binding)


def test_bindings_are_forgotten() -> None:
    """Inputs are then missing; without outputs there is nothing to compute."""
    session, binding = bound()
    binding.bind_output("y")
    binding.clear_binding_inputs()
    with pytest.raises(ort.InvalidArgument, match="Required inputs"):
        session.run_with_iobinding(binding)
    binding.clear_binding_outputs()
    with pytest.raises(ort.InvalidArgument, match="no output is bound"):
        session.run_with_iobinding(binding)


def test_memory_without_type_or_shape_is_refused() -> None:
    """And devices that are not the CPU."""
    _, binding = bound()
    with pytest.raises(ort.InvalidArgument, match="`element_type` and `shape` are to be provided"):
        binding.bind_output("y", "cpu", 0, None, None, X.ctypes.data)
    with pytest.raises(ort.NotImplemented, match="cuda"):
        binding.bind_output("y", "cuda")
    with pytest.raises(ort.NotImplemented, match="cuda"):
        binding.bind_input("x", "cuda", 0, np.float32, [2, 3], X.ctypes.data)


def test_outputs_before_a_run_are_empty() -> None:
    """Or the memory that is bound."""
    _, binding = bound()
    binding.bind_output("y")
    assert not binding.get_outputs()[0].has_value()
