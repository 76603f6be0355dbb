"""Tensors of other packages by DLPack."""

from __future__ import annotations

import ctypes

import ml_dtypes
import numpy as np
import pytest

import sardonyx as ort
from sardonyx.dtypes import Array
from sardonyx.values.dlpack import from_dlpack, is_dlpack_uint8_tensor, to_dlpack


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "uint8", "bool", "complex64"])
def test_numpy_reads_and_writes_the_same_memory(dtype: str) -> None:
    """Both ways without a copy."""
    array = np.ones((2, 3), dtype)
    value = ort.OrtValue.ortvalue_from_numpy(array)
    assert np.from_dlpack(value).ctypes.data == array.ctypes.data == ort.OrtValue.from_dlpack(array).data_ptr()


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2])
def test_narrow_floats_travel_under_their_own_type(dtype: type) -> None:
    """What comes back has the type and the memory of what was sent."""
    array: Array = np.array([1, -2, 0.5], dtype)
    back = from_dlpack(to_dlpack(array))
    assert (back.dtype, back.ctypes.data, back.tolist()) == (array.dtype, array.ctypes.data, array.tolist())


def test_a_capsule_keeps_its_memory() -> None:
    """The array that it was made of may go."""
    array = np.arange(1000.0)
    back = from_dlpack(to_dlpack(array))
    del array
    assert back.sum() == 499500


def test_a_tensor_that_is_not_dense_is_refused() -> None:
    """Its strides are shown."""
    with pytest.raises(ort.InvalidArgument, match="dense tensors in row-major order, got strides"):
        from_dlpack(np.ones((2, 3)).T)


@pytest.mark.parametrize("given", [1, "text", None, object()])
def test_what_is_no_tensor_is_refused(given: object) -> None:
    """As onnxruntime refuses it."""
    with pytest.raises(TypeError, match="expected a valid DLPack capsule named 'dltensor'"):
        from_dlpack(given)


def test_a_capsule_is_taken_once() -> None:
    """A second reader finds a used capsule."""
    capsule = to_dlpack(np.ones(3))
    from_dlpack(capsule)
    with pytest.raises(TypeError, match="valid DLPack capsule"):
        from_dlpack(capsule)


def test_a_tensor_of_another_device_is_refused() -> None:
    """Before its memory is touched."""

    class OnGpu:
        """A tensor that says that it lies on a GPU."""

        def __dlpack__(self) -> object:
            """Never reached."""
            raise AssertionError

        def __dlpack_device__(self) -> tuple[int, int]:
            """KDLCUDA."""
            return 2, 0

    with pytest.raises(ort.InvalidArgument, match="host's memory, got DLPack device"):
        from_dlpack(OnGpu())


def test_text_has_no_capsule() -> None:
    """Nor have types of less than a byte."""
    for array in (np.array(["a"], dtype=object), np.zeros(2, ml_dtypes.int4)):
        with pytest.raises(ort.InvalidArgument, match="DLPack has no type"):
            to_dlpack(array)


def test_a_capsule_is_named_as_the_protocol_says() -> None:
    """`dltensor`, before it is used."""
    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, (ctypes.py_object,)
    assert name(to_dlpack(np.ones(3))) == b"dltensor"


def test_a_capsule_of_bytes_is_known() -> None:
    """Exporters without a boolean type write bytes; `from_dlpack` makes booleans of them where it is asked to."""
    flags = np.array([1, 0], np.uint8)
    assert is_dlpack_uint8_tensor(to_dlpack(flags))
    assert not is_dlpack_uint8_tensor(to_dlpack(flags.astype(np.int8)))
    assert ort.OrtValue.from_dlpack(to_dlpack(flags), True).numpy().tolist() == [True, False]
    with pytest.raises(TypeError, match="valid DLPack capsule"):
        is_dlpack_uint8_tensor(flags)


def test_memory_of_another_package_can_be_written() -> None:
    """What is written through one is seen through the other, also after the exporter's name is gone."""
    torch = pytest.importorskip("torch")
    tensor = torch.arange(3.0)
    taken = from_dlpack(tensor)
    taken[0] = 9
    assert tensor.tolist() == [9, 1, 2]
    assert taken.ctypes.data == tensor.data_ptr()
    kept = from_dlpack(torch.full((1000,), 7.0))
    assert kept.tolist() == [7.0] * 1000
