"""Lists of OrtValues."""

from __future__ import annotations

import numpy as np
import pytest

import sardonyx as ort
from sardonyx.values.dlpack import to_dlpack


def test_values_and_capsules_are_appended() -> None:
    """Both share their memory."""
    array = np.ones(3, np.float32)
    vector = ort.OrtValueVector()
    vector.push_back(ort.OrtValue.ortvalue_from_numpy(array))
    vector.push_back(to_dlpack(array))
    assert [value.data_ptr() for value in vector] == [array.ctypes.data] * 2
    assert (len(vector), vector.element_type_at(1), bool(vector)) == (2, 1, True)


def test_a_batch_is_appended_by_address() -> None:
    """The owners stay as long as the values."""
    array = np.arange(4, dtype=np.int64)
    vector = ort.OrtValueVector()
    vector.push_back_batch([array], [array.ctypes.data], [np.int64], [[2, 2]], [ort.OrtDevice.make("cpu", 0)])
    assert vector[0].numpy().tolist() == [[0, 1], [2, 3]]
    with pytest.raises(ort.InvalidArgument, match="as many tensors as addresses"):
        vector.push_back_batch([array], [], [np.int64], [[2, 2]], [ort.OrtDevice.make("cpu", 0)])


def test_capsules_are_handed_out() -> None:
    """As they are, or as a function makes tensors of them."""
    vector = ort.OrtValueVector([ort.OrtValue.ortvalue_from_numpy(np.ones(2))])
    (found,) = vector.to_dlpacks(ort.OrtValue.from_dlpack)
    assert isinstance(found, ort.OrtValue)
    assert found.numpy().tolist() == [1, 1]


@pytest.mark.parametrize("index", [-1, 1])
def test_an_index_outside_is_an_index_error(index: int) -> None:
    """As for a C++ vector, negative ones too."""
    with pytest.raises(IndexError):
        ort.OrtValueVector([ort.OrtValue.of(None)])[index]
