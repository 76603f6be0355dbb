"""Elements by index of TensorFlow Lite."""

from __future__ import annotations

import numpy as np
import pytest
from formats.tflite.running import run
from support.flat_models import one

from sardonyx import errors

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def test_indices_may_share_the_first_axes_of_the_data() -> None:
    """Each row has indices of its own."""
    indices = np.array([[3, 0], [1, 1]], np.int32)
    options = ("GatherOptions", {"axis": 2, "batch_dims": 1})
    found = run(one("GATHER", [((2, 3, 4), "FLOAT32"), indices], ((2, 3, 2), "FLOAT32"), options), X)[0]
    np.testing.assert_array_equal(found, np.stack([X[row][:, indices[row]] for row in range(2)]))


def test_ids_below_0_count_nowhere() -> None:
    """And ids without rows get the neutral element."""
    data = one(
        "UNSORTED_SEGMENT_SUM", [((3,), "FLOAT32"), np.array([2, -1, 2], np.int32), np.array(4, np.int32)], ((4,), "FLOAT32")
    )
    assert run(data, np.array([1, 2, 4], np.float32))[0].tolist() == [0, 0, 5, 0]


def test_indices_out_of_range_have_no_place() -> None:
    """In ONE_HOT, where ONNX would count from the end."""
    inputs = [np.array([-1, 1, 9], np.int32), np.array(2, np.int32), np.array(5, np.float32), np.array(0, np.float32)]
    data = one("ONE_HOT", [((3,), "INT32"), *inputs[1:]], ((3, 2), "FLOAT32"), ("OneHotOptions", {"axis": -1}))
    assert run(data, inputs[0])[0].tolist() == [[0, 0], [0, 5], [0, 0]]


def test_a_slice_is_kept_within_the_tensor() -> None:
    """Its place is moved where it would reach out."""
    data = one("DYNAMIC_UPDATE_SLICE", [((4,), "FLOAT32"), ((2,), "FLOAT32"), ((1,), "INT32")], ((4,), "FLOAT32"))
    assert run(data, np.zeros(4, np.float32), np.ones(2, np.float32), np.array([9], np.int32))[0].tolist() == [0, 0, 1, 1]


def test_what_does_not_fit_is_refused() -> None:
    """A part that is larger than the whole."""
    data = one("DYNAMIC_UPDATE_SLICE", [((2,), "FLOAT32"), ((4,), "FLOAT32"), ((1,), "INT32")], ((2,), "FLOAT32"))
    with pytest.raises(errors.InvalidFlatBuffer, match="does not lie within"):
        run(data)


def test_a_constant_beyond_all_measure_is_refused() -> None:
    """Before it is made."""
    with pytest.raises(errors.NotImplemented, match="a constant of 1152921504606846976 elements would be made"):
        run(one("MATRIX_DIAG", [((2, 3), "FLOAT32")], ((2, 3, 1 << 30), "FLOAT32")))
