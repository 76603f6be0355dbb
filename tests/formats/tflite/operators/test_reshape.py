"""Shapes and orders of TensorFlow Lite."""

from __future__ import annotations

import numpy as np
import pytest
from formats.tflite.running import run
from support.flat_models import Sketch, one

from sardonyx import errors

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_the_shape_is_an_input_or_an_option() -> None:
    """Also one that the run computes."""
    options = ("ReshapeOptions", {"new_shape": [3, -1]})
    assert run(one("RESHAPE", [((2, 3), "FLOAT32")], ((3, 2), "FLOAT32"), options), X)[0].shape == (3, 2)
    data = one("RESHAPE", [((2, 3), "FLOAT32"), ((2,), "INT32")], ((3, 2), "FLOAT32"))
    assert run(data, X, np.array([3, 2], np.int32))[0].shape == (3, 2)


def test_integers_of_one_scale_are_moved_as_they_are() -> None:
    """And of two are quantized anew."""
    for scale, expected in ((0.5, [10, 20]), (0.25, [20, 40])):
        sketch = Sketch()
        x, shape = sketch.input((1, 2), "INT8", (0.5, 0)), sketch.constant(np.array([2], np.int32))
        made = sketch.tensor((2,), "INT8", (scale, 0))
        sketch.operator("RESHAPE", [x, shape], [made])
        assert run(sketch.model([made]), np.array([[10, 20]], np.int8))[0].tolist() == expected


def test_pixels_of_a_block_keep_their_channels_together() -> None:
    """Row by row of the block."""
    x = np.arange(8, dtype=np.float32).reshape(1, 2, 2, 2)
    data = one("SPACE_TO_DEPTH", [((1, 2, 2, 2), "FLOAT32")], ((1, 1, 1, 8), "FLOAT32"), ("SpaceToDepthOptions", {"block_size": 2}))
    assert run(data, x)[0].reshape(-1).tolist() == [0, 1, 2, 3, 4, 5, 6, 7]


def test_a_wrong_order_is_refused() -> None:
    """An axis that occurs twice."""
    with pytest.raises(errors.InvalidFlatBuffer, match=r"\[0, 0\] is no order of 2 axes"):
        run(one("TRANSPOSE", [((2, 3), "FLOAT32"), np.array([0, 0], np.int32)], ((2, 2), "FLOAT32")), X)
