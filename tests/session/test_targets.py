"""Arrays of a caller's that take results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.models import model

import sardonyx as ort
from sardonyx.formats.onnx import to_bytes
from sardonyx.session.targets import fillable_targets

TEXT = "graph(x: float[n, 4]) -> (y: float[n, 4], z: float[n, 4]) {\ny = Exp(x)\nz = Neg(y)\n}"


def session(text: str = TEXT, **options: Any) -> ort.InferenceSession:
    """A session of a model in text form."""
    return ort.InferenceSession(to_bytes(model(text)), **options)


@pytest.mark.parametrize("providers", [None, ["ReferenceExecutionProvider"]])
@pytest.mark.parametrize("size", [1, 3, 2000])
def test_results_lie_in_the_targets(size: int, providers: list[str] | None) -> None:
    """Of every provider, for small and large arrays."""
    x = np.random.default_rng(0).standard_normal((size, 4)).astype(np.float32)
    y, z = np.zeros_like(x), np.zeros_like(x)
    held = session(providers=providers)
    found = held.compute_values(["z", "y"], {"x": x}, None, {"y": y, "z": z})
    assert found[0] is z
    assert found[1] is y
    plain = held.run(["y", "z"], {"x": x})
    np.testing.assert_array_equal(y, plain[0])
    np.testing.assert_array_equal(z, plain[1])


@pytest.mark.parametrize("shift", [1, 2, 3, 13])
def test_a_target_may_lie_at_any_address(shift: int) -> None:
    """Kernels store to addresses that are not aligned."""
    x = np.random.default_rng(0).standard_normal((999, 4)).astype(np.float32)
    buffer = np.zeros(x.nbytes + 64, np.uint8)
    y = buffer[shift : shift + x.nbytes].view(np.float32).reshape(x.shape)
    held = session()
    held.compute_values(["y"], {"x": x}, None, {"y": y})
    np.testing.assert_array_equal(y, held.run(["y"], {"x": x})[0])
    assert not buffer[:shift].any()
    assert not buffer[shift + x.nbytes :].any()


def test_a_target_may_be_an_input() -> None:
    """The results are those of memory of its own."""
    text = "graph(x: float[n]) -> (y) {\na = ReduceSum(x) {keepdims = 0}\nb = Add(x, x)\ny = Add(b, a)\n}"
    x = np.arange(64, dtype=np.float32)
    held = session(text)
    expected = held.run(None, {"x": x})[0]
    held.compute_values(["y"], {"x": x}, None, {"y": x})
    np.testing.assert_array_equal(x, expected)


def test_two_targets_in_one_memory_are_filled_one_after_another() -> None:
    """Only the first is filled while the model runs."""
    memory = np.zeros(8, np.float32)
    assert [item is memory for item in fillable_targets([memory, memory], [])] == [True, False]


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (np.zeros((3, 4), np.float64), "Unexpected output data type. Actual: .tensor.double.., expected: .tensor.float"),
        (np.zeros((2, 4), np.float32), r"memory bound has float32 \(2, 4\), the result is float32 \(3, 4\)"),
        (np.zeros((4, 3), np.float32).T, "writeable, dense array"),
        ([1.0], "writeable, dense array, got list"),
    ],
)
def test_a_target_that_does_not_fit_is_refused(target: Any, message: str) -> None:
    """By the output's name."""
    with pytest.raises(ort.InvalidArgument, match=f"output 'y': (the )?.*{message}"):
        session().compute_values(["y"], {"x": np.ones((3, 4), np.float32)}, None, {"y": target})


def test_an_unknown_output_is_refused() -> None:
    """With the known ones."""
    with pytest.raises(ort.InvalidArgument, match="no output 'q'; its outputs are"):
        session().compute_values(["y"], {"x": np.ones((3, 4), np.float32)}, None, {"q": np.zeros(1)})


def test_an_output_that_is_declared_twice_fills_its_target() -> None:
    """As models do that name their cache again: the memory bound takes the result, also where it is an input's own."""
    graph = "graph(x: float[n, 4]) -> (y: float[n, 4], z: float[n, 4], z: float[n, 4]) {\ny = Exp(x)\nz = Neg(x)\n}"
    held, x = session(graph), np.ones((2, 4), np.float32)
    cache = ort.OrtValue.ortvalue_from_numpy(x.copy())
    binding = held.io_binding()
    binding.bind_ortvalue_input("x", cache)
    binding.bind_output("y")
    binding.bind_ortvalue_output("z", cache)
    held.run_with_iobinding(binding)
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[1], -x)
    np.testing.assert_array_equal(cache.numpy(), -x)


def test_an_array_may_be_input_and_target_where_that_is_allowed() -> None:
    """The same elements, and only for the pair that is named."""
    memory, other = np.zeros(4, np.float32), np.ones(4, np.float32)
    assert fillable_targets([memory], [memory], {(0, 0)})[0] is memory
    assert fillable_targets([memory], [memory, other], {(0, 1)}) == [None]
    assert fillable_targets([memory[:2]], [memory], {(0, 0)}) == [None]
    assert fillable_targets([memory, other], [memory, memory], {(0, 0)})[0] is None
    assert fillable_targets([memory, memory], [memory], {(0, 0), (1, 0)})[1] is None
