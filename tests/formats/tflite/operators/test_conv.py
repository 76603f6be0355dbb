"""Convolutions of TensorFlow Lite."""

from __future__ import annotations

import numpy as np
import pytest
from formats.tflite.running import run
from support.flat_models import Sketch, one

from sardonyx import errors
from sardonyx.dtypes import Array
from sardonyx.formats.tflite.operators.conv import pads_of


def _naive(x: Array, w: Array, stride: int) -> Array:
    """Return the convolution of x (N, H, W, C) by w (M, KH, KW, C) without padding, in float64."""
    height, width = (x.shape[1] - w.shape[1]) // stride + 1, (x.shape[2] - w.shape[2]) // stride + 1
    y = np.zeros((x.shape[0], height, width, w.shape[0]))
    for row in range(height):
        for column in range(width):
            window = x[:, row * stride : row * stride + w.shape[1], column * stride : column * stride + w.shape[2]]
            y[:, row, column] = np.tensordot(window.astype(np.float64), w, ([1, 2, 3], [1, 2, 3]))
    return y


def test_filters_are_by_output_row_column_and_channel() -> None:
    """As the file has them."""
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(2, 6, 5, 3)).astype(np.float32), rng.normal(size=(4, 3, 2, 3)).astype(np.float32)
    options = ("Conv2DOptions", {"padding": "VALID", "stride_h": 2, "stride_w": 2})
    data = one("CONV_2D", [((2, 6, 5, 3), "FLOAT32"), w], ((2, 2, 2, 4), "FLOAT32"), options)
    np.testing.assert_allclose(run(data, x)[0], _naive(x, w, 2), atol=1e-5)


@pytest.mark.parametrize(
    ("size", "window", "stride", "pads"), [(5, 3, 1, (1, 1)), (6, 3, 2, (0, 1)), (5, 2, 1, (0, 1)), (4, 1, 2, (0, 0))]
)
def test_the_odd_pixel_of_padding_comes_last(size: int, window: int, stride: int, pads: tuple[int, int]) -> None:
    """SAME padding makes as many results as strides fit."""
    assert pads_of([size], [window], [stride]) == pads


def test_no_transpose_stands_between_convolutions() -> None:
    """Nor is one run: the CPU provider has the channels last."""
    from sardonyx.formats import models

    sketch = Sketch()
    options = ("Conv2DOptions", {"padding": "SAME", "stride_h": 1, "stride_w": 1, "fused_activation_function": "RELU6"})
    value = sketch.input((1, 8, 8, 4))
    for _ in range(3):
        made = sketch.tensor((1, 8, 8, 4))
        sketch.operator(
            "CONV_2D",
            [value, sketch.constant(np.ones((4, 3, 3, 4), np.float32)), sketch.constant(np.ones(4, np.float32))],
            [made],
            options,
        )
        value = made
    graph = models.load(sketch.model([value])).graph
    assert [node.op_type for node in graph] == ["Transpose", "Conv", "Clip", "Conv", "Clip", "Conv", "Clip", "Transpose"]


@pytest.mark.parametrize(
    ("shape", "options", "message"),
    [
        ((4, 3, 3, 5), {"stride_h": 1, "stride_w": 1}, "do not go with filters"),
        ((4, 3, 3, 3), {"stride_h": 0, "stride_w": 1}, "must be 1 or more"),
        ((4, 3, 3), {"stride_h": 1, "stride_w": 1}, "do not go with filters"),
    ],
)
def test_what_does_not_fit_is_refused(shape: tuple[int, ...], options: dict[str, int], message: str) -> None:
    """With the operator's place."""
    data = one(
        "CONV_2D", [((1, 8, 8, 3), "FLOAT32"), np.ones(shape, np.float32)], ((1, 8, 8, 4), "FLOAT32"), ("Conv2DOptions", options)
    )
    with pytest.raises(errors.InvalidFlatBuffer, match=message):
        run(data, np.zeros((1, 8, 8, 3), np.float32))
