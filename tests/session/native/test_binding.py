"""Bound runs that machine code makes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.native_runs import learned, only_native
from support.session_models import MLP, rows, session

import sardonyx as ort
from sardonyx.errors import InvalidArgument

GATHER = "graph(x: float[4], i: int64[n]) -> (y: float[n]) {\n y = Gather(x, i)\n}"

NON_ZERO = "graph(x: float[4]) -> (y: int64[1, m]) { y = NonZero(x) }"


def _bound(held: ort.InferenceSession, size: int = 2) -> tuple[ort.IOBinding, Any, Any]:
    """A binding with arrays of its own, after two runs."""
    binding, x, y = held.io_binding(), rows(size)["x"], np.zeros((size, 3), np.float32)
    binding.bind_cpu_input("x", x)
    binding.bind_ortvalue_output("y", ort.OrtValue.ortvalue_from_numpy(y))
    target = binding.get_outputs()[0].numpy()
    for _ in range(2):
        held.run_with_iobinding(binding)
    return binding, x, target


@pytest.fixture(scope="module")
def held() -> ort.InferenceSession:
    """A session that knows its shapes."""
    return learned(session(MLP), rows(2))


def test_later_runs_read_and_fill_the_same_arrays(held: ort.InferenceSession) -> None:
    """Without Python, and with what the arrays hold then."""
    binding, x, y = _bound(held)
    x[:] = 7 * rows(2)["x"][::-1]
    with only_native(held):
        held.run_with_iobinding(binding)
    np.testing.assert_array_equal(y, held.run(None, {"x": x})[0])
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], y)


def test_results_without_bound_memory_lie_where_the_last_ones_did(held: ort.InferenceSession) -> None:
    """So that these runs need no Python either; copies that were made of results stay as they are."""
    binding, x = held.io_binding(), rows(2)["x"]
    binding.bind_cpu_input("x", x)
    binding.bind_output("y")
    for _ in range(2):
        held.run_with_iobinding(binding)
    (before,) = binding.copy_outputs_to_cpu()
    kept = before.copy()
    x[:] = 7 * rows(2)["x"][::-1]
    with only_native(held):
        held.run_with_iobinding(binding)
    np.testing.assert_array_equal(binding.get_outputs()[0].numpy(), held.run(None, {"x": x})[0])
    np.testing.assert_array_equal(before, kept)


def test_other_shapes_get_memory_of_their_own(held: ort.InferenceSession) -> None:
    """The results of the shapes before stay what they are."""
    binding = held.io_binding()
    binding.bind_output("y")
    for size in (2, 2, 2, 5, 5, 5):
        binding.bind_cpu_input("x", rows(size)["x"])
        held.run_with_iobinding(binding)
        np.testing.assert_array_equal(binding.get_outputs()[0].numpy(), held.run(None, rows(size))[0])


def test_what_is_bound_anew_is_what_runs_use(held: ort.InferenceSession) -> None:
    """Another input, another output, other shapes."""
    binding, _, first = _bound(held)
    kept = first.copy()
    binding.bind_cpu_input("x", rows(5)["x"])
    binding.bind_ortvalue_output("y", ort.OrtValue.ortvalue_from_numpy(np.zeros((5, 3), np.float32)))
    held.run_with_iobinding(binding)
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], held.run(None, rows(5))[0])
    np.testing.assert_array_equal(first, kept)


def test_a_result_whose_size_the_run_shows_fills_no_bound_array() -> None:
    """It may be larger in a later run."""
    held = learned(session(NON_ZERO), {"x": np.float32([0, 1, 0, 2])})
    binding, x, y = held.io_binding(), np.float32([0, 1, 0, 2]), np.zeros((1, 2), np.int64)
    binding.bind_cpu_input("x", x)
    binding.bind_ortvalue_output("y", ort.OrtValue.ortvalue_from_numpy(y))
    for _ in range(3):
        held.run_with_iobinding(binding)
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], [[1, 3]])
    x[:] = 1
    with pytest.raises(InvalidArgument, match="memory bound"):
        held.run_with_iobinding(binding)


def test_a_binding_that_was_cleared_has_no_output(held: ort.InferenceSession) -> None:
    """As without native runs."""
    binding, _, _ = _bound(held)
    binding.clear_binding_outputs()
    with pytest.raises(InvalidArgument, match="no output is bound"):
        held.run_with_iobinding(binding)


def test_another_sessions_binding_is_refused(held: ort.InferenceSession) -> None:
    """Also where it has a native call."""
    binding, _, _ = _bound(held)
    with pytest.raises(InvalidArgument, match="must be used with the session"):
        learned(session(MLP), rows(2)).run_with_iobinding(binding)


def test_other_arguments_go_to_python(held: ort.InferenceSession) -> None:
    """Run options, keywords, and what is no binding."""
    binding, _, y = _bound(held)
    y[:] = 0
    held.run_with_iobinding(binding, ort.RunOptions())
    held.run_with_iobinding(iobinding=binding)
    assert y.any()
    with pytest.raises(TypeError, match="iobinding is an IOBinding, got 42"):
        held.run_with_iobinding(42)  # type: ignore[arg-type]


def test_a_bound_array_cannot_be_resized(held: ort.InferenceSession) -> None:
    """Its address is written down."""
    binding, x, _ = _bound(held)
    with pytest.raises(ValueError, match="resize"):
        x.resize(100_000, refcheck=False)
    del binding


def test_an_output_that_overlaps_an_input_is_computed_beside_it() -> None:
    """In Python, each time."""
    square = learned(session("graph(x: float[n]) -> (y: float[n]) {\n y = Mul(x, x)\n}"), {"x": np.ones(3, np.float32)})
    array = np.array([1, 2, 3], np.float32)
    value = ort.OrtValue.ortvalue_from_numpy(array)
    binding = square.io_binding()
    binding.bind_ortvalue_input("x", value)
    binding.bind_ortvalue_output("y", value)
    for expected in ([1, 4, 9], [1, 16, 81], [1, 256, 6561]):
        square.run_with_iobinding(binding)
        assert value.numpy().tolist() == expected


def test_a_failing_run_is_worded_by_python() -> None:
    """An index that goes out of range after native runs."""
    gather = learned(session(GATHER), {"x": np.arange(4, dtype=np.float32), "i": np.array([1, 2])})
    index = np.array([1, 2])
    binding = gather.io_binding()
    binding.bind_cpu_input("x", np.arange(4, dtype=np.float32))
    binding.bind_cpu_input("i", index)
    binding.bind_ortvalue_output("y", ort.OrtValue.ortvalue_from_numpy(np.zeros(2, np.float32)))
    for _ in range(2):
        gather.run_with_iobinding(binding)
    index[:] = 11
    with pytest.raises(InvalidArgument, match="out of range"):
        gather.run_with_iobinding(binding)


def test_other_providers_end_native_bindings() -> None:
    """A binding that was made before serves what the session is now."""
    changed = learned(session(MLP), rows(2))
    binding, _, _ = _bound(changed)
    changed.set_providers(["ReferenceExecutionProvider"])
    with pytest.raises(AssertionError), only_native(changed):
        changed.run_with_iobinding(binding)
