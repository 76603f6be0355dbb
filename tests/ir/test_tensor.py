"""Constant tensors."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from sardonyx.dtypes import Array, DataType
from sardonyx.errors import InvalidGraph
from sardonyx.ir import KeptSource, Tensor


def test_an_array_is_held_without_a_copy() -> None:
    """A tensor made from an array views it, read-only, and leaves the array itself writable."""
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    tensor = Tensor.from_array(array, "w")
    assert (tensor.dtype, tensor.shape, tensor.name) == (DataType.FLOAT, (2, 3), "w")
    assert np.shares_memory(tensor.numpy(), array)
    assert not tensor.numpy().flags.writeable
    assert array.flags.writeable


@pytest.mark.parametrize(
    ("value", "dtype", "shape"),
    [(3, DataType.INT64, ()), ([1.5, 2], DataType.DOUBLE, (2,)), (True, DataType.BOOL, ()), (["a", "b"], DataType.STRING, (2,))],
)
def test_python_values_become_arrays(value: Any, dtype: DataType, shape: tuple[int, ...]) -> None:
    """What NumPy makes an array of, a tensor can hold."""
    tensor = Tensor.from_array(value)
    assert (tensor.dtype, tensor.shape) == (dtype, shape)
    assert tensor.numpy().dtype == dtype.numpy


def test_a_dtype_that_onnx_lacks_is_a_key_error() -> None:
    """Dates are no element type."""
    with pytest.raises(KeyError):
        Tensor.from_array(np.zeros(1, "datetime64[s]"))


def test_the_source_is_asked_once_and_late() -> None:
    """Data is read when first asked for, and then kept."""
    asked = []

    def source() -> np.ndarray:
        asked.append(1)
        return np.zeros(2, np.float32)

    tensor = Tensor(DataType.FLOAT, (2,), source)
    assert not asked
    assert tensor.numpy() is tensor.numpy()
    assert len(asked) == 1


def test_a_source_that_fails_is_asked_again() -> None:
    """An error of the source passes, and does not spoil the tensor."""
    answers = iter([InvalidGraph("lost"), np.zeros(2, np.float32)])

    def source() -> np.ndarray:
        answer = next(answers)
        if isinstance(answer, InvalidGraph):
            raise answer
        return answer

    tensor = Tensor(DataType.FLOAT, (2,), source)
    with pytest.raises(InvalidGraph):
        tensor.numpy()
    assert tensor.numpy().tolist() == [0, 0]


def test_many_threads_may_ask_at_once() -> None:
    """Each gets an array with the same elements."""
    tensor = Tensor(DataType.INT64, (3,), lambda: np.arange(3))
    barrier = threading.Barrier(8)
    found: list[list[int]] = []

    def ask() -> None:
        barrier.wait()
        found.append(tensor.numpy().tolist())

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[0, 1, 2]] * 8


@pytest.mark.parametrize(
    ("dtype", "shape", "size_bytes"),
    [
        (DataType.FLOAT, (2, 3), 24),
        (DataType.INT4, (3,), 2),
        (DataType.UINT2, (5,), 2),
        (DataType.FLOAT6E2M3, (4,), 3),
        (DataType.COMPLEX128, (), 16),
        (DataType.FLOAT, (0, 3), 0),
        (DataType.STRING, (3,), 0),
    ],
)
def test_sizes_are_those_in_a_file(dtype: DataType, shape: tuple[int, ...], size_bytes: int) -> None:
    """Sub-byte types are packed; strings have no fixed size."""
    tensor = Tensor(dtype, shape, lambda: np.zeros(shape))
    assert tensor.size_bytes == size_bytes
    assert tensor.size == int(np.prod(shape))


def test_a_tensor_prints_its_type_and_shape() -> None:
    """Messages show type, shape and name, not data."""
    assert repr(Tensor.from_array(np.zeros((2, 3), np.float16), "w")) == "Tensor(float16[2, 3] w)"


class Numbers(KeptSource):
    """0 to 9, and how often they were asked for."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self) -> Array:
        self.asked += 1
        return np.arange(10)


def test_a_released_tensor_asks_its_source_again() -> None:
    """The elements leave memory, and are the same when they are read again."""
    source = Numbers()
    held = Tensor(DataType.INT64, (10,), source)
    for _ in range(2):
        assert held.numpy().tolist() == list(range(10))
        assert not held.numpy().flags.writeable
        held.release()
    assert source.asked == 2


def test_a_widened_tensor_knows_the_narrow_one() -> None:
    """Which has the same numbers in less memory; others have none."""
    narrow = Tensor.from_array(np.array([1.5, 2], np.float16), "w")
    wide = Tensor.widened(narrow)
    assert wide.narrow is narrow
    assert (wide.dtype, wide.name, wide.numpy().dtype) == (DataType.FLOAT, "w", np.float32)
    assert narrow.narrow is None


def test_a_detached_tensor_never_asks_again() -> None:
    """Its elements are its own, whatever becomes of the source."""
    source = Numbers()
    held = Tensor(DataType.INT64, (10,), source)
    held.detach()
    held.release()
    assert held.numpy()[-1] == 9
    assert source.asked == 1


def test_rows_are_those_of_the_elements() -> None:
    """Of a tensor in memory they are a part of its array; a source that has no better way gives a part of all."""
    held = Tensor.from_array(np.arange(12).reshape(4, 3))
    assert held.rows(1, 3).tolist() == [[3, 4, 5], [6, 7, 8]]
    assert Tensor(DataType.INT64, (10,), Numbers()).rows(8, 10).tolist() == [8, 9]


def test_releasing_a_tensor_that_is_no_file_does_nothing() -> None:
    """There is nowhere to read it again."""
    held = Tensor.from_array(np.arange(10_000))
    held.release()
    assert held.numpy()[-1] == 9_999
    lazy = Tensor(DataType.INT64, (2,), lambda: np.arange(2))
    first = lazy.numpy()
    lazy.release()
    assert lazy.numpy() is first
