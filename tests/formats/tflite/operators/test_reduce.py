"""Reductions of TensorFlow Lite."""

from __future__ import annotations

import numpy as np
import pytest
from formats.tflite.running import run
from support.flat_models import one

from sardonyx import errors


@pytest.mark.parametrize("keeps", [False, True])
def test_no_axes_reduce_nothing(keeps: bool) -> None:
    """Where ONNX would reduce all."""
    x = np.array([[1, 2], [3, 4]], np.float32)
    data = one("SUM", [((2, 2), "FLOAT32"), np.zeros(0, np.int32)], ((2, 2), "FLOAT32"), ("ReducerOptions", {"keep_dims": keeps}))
    np.testing.assert_array_equal(run(data, x)[0], x)


def test_any_and_all() -> None:
    """Of truth values."""
    x = np.array([[True, False], [True, True]])
    for code, expected in (("REDUCE_ANY", [True, True]), ("REDUCE_ALL", [False, True])):
        data = one(code, [((2, 2), "BOOL"), np.array([1], np.int32)], ((2,), "BOOL"), ("ReducerOptions", {}))
        assert run(data, x)[0].tolist() == expected


def test_the_first_of_equals_is_the_place() -> None:
    """In the type that the output has."""
    x = np.array([[1, 5, 5]], np.float32)
    found = run(one("ARG_MAX", [((1, 3), "FLOAT32"), np.array([1], np.int32)], ((1,), "INT32")), x)[0]
    assert (found.tolist(), found.dtype) == ([1], np.int32)


def test_an_axis_out_of_range_is_refused() -> None:
    """When the model is read."""
    with pytest.raises(errors.InvalidFlatBuffer, match="axis 7 is none of a tensor of rank 2"):
        run(one("ARG_MAX", [((1, 3), "FLOAT32"), np.array([7], np.int32)], ((1,), "INT32")), np.zeros((1, 3), np.float32))
