"""Custom operators of MediaPipe's models, against loops over pixels."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

import numpy as np
import pytest
from formats.tflite.running import run
from support.flat_models import Sketch
from support.flexible import flexible

import sardonyx
from sardonyx import errors
from sardonyx.dtypes import Array

RNG = np.random.default_rng(0)


def model(code: str, inputs: Sequence[Array | tuple[int, ...]], outputs: Sequence[tuple[int, ...]], options: bytes) -> bytes:
    """A model of one operator; arrays are constants, shapes are fed."""
    sketch = Sketch()
    given = [sketch.constant(item) if isinstance(item, np.ndarray) else sketch.input(item) for item in inputs]
    made = [sketch.tensor(shape) for shape in outputs]
    sketch.operator(code, given, made, custom_options=np.frombuffer(options, np.uint8))
    return sketch.model(made)


def drawn(*shape: int) -> Array:
    """Numbers between -1 and 1."""
    return RNG.uniform(-1, 1, shape).astype(np.float32)


@pytest.mark.parametrize("is_same", [True, False])
@pytest.mark.parametrize(
    ("size", "window", "stride"), [((4, 6), (2, 2), (2, 2)), ((5, 7), (3, 2), (2, 1)), ((6, 5), (2, 3), (1, 3))]
)
def test_a_pool_says_where_the_greatest_is(
    size: tuple[int, int], window: tuple[int, int], stride: tuple[int, int], is_same: bool
) -> None:
    """By its number in the window, and a tenth."""
    x = drawn(2, *size, 3)
    counts = [-(-s // t) if is_same else (s - w) // t + 1 for s, w, t in zip(size, window, stride, strict=True)]
    totals = [max((c - 1) * t + w - s, 0) if is_same else 0 for c, t, w, s in zip(counts, stride, window, size, strict=True)]
    wide = np.pad(x, [(0, 0), *((t // 2, t) for t in totals), (0, 0)], constant_values=-np.inf)
    best, places = np.zeros((2, *counts, 3), np.float32), np.zeros((2, *counts, 3), np.float32)
    for row in range(counts[0]):
        for column in range(counts[1]):
            part = wide[:, row * stride[0] :, column * stride[1] :][:, : window[0], : window[1]].reshape(2, -1, 3)
            best[:, row, column], places[:, row, column] = part.max(1), part.argmax(1) + np.float32(0.1)
    options = struct.pack("<6i", 1 if is_same else 2, stride[1], stride[0], window[1], window[0], 0)
    found = run(model("MaxPoolingWithArgmax2D", [x.shape], [best.shape, places.shape], options), x)
    np.testing.assert_array_equal(found[0], best)
    np.testing.assert_array_equal(found[1], places)


def test_elements_go_back_where_they_were_the_greatest() -> None:
    """All else is zero; places outside of the image count for nothing."""
    x, places = drawn(2, 2, 3, 2), RNG.integers(0, 4, (2, 2, 3, 2)).astype(np.float32) + np.float32(0.1)
    places[0, 0, 0, 0] = 99
    expected = np.zeros((2, 4, 6, 2), np.float32)
    for n, row, column, channel in np.ndindex(x.shape):
        down, across = divmod(int(places[n, row, column, channel]), 2)
        if row * 2 + down < 4:
            expected[n, row * 2 + down, column * 2 + across, channel] = x[n, row, column, channel]
    data = model("MaxUnpooling2D", [x.shape, x.shape], [expected.shape], struct.pack("<6i", 2, 2, 2, 2, 2, 0))
    np.testing.assert_array_equal(run(data, x, places)[0], expected)


@pytest.mark.parametrize("is_same", [True, False])
def test_a_transposed_convolution_adds_its_bias(is_same: bool) -> None:
    """Each pixel spreads over a window of the result."""
    x, weights, biases = drawn(1, 3, 4, 2), drawn(5, 3, 3, 2), drawn(5)
    wide = np.zeros((1, 7, 9, 5)) + biases
    for row, column in np.ndindex(3, 4):
        wide[0, 2 * row : 2 * row + 3, 2 * column : 2 * column + 3] += np.einsum("mhwc,c->hwm", weights, x[0, row, column])
    cut = [max(3 - (size - 1) % 2 - 1, 0) if is_same else 0 for size in (3, 4)]
    expected = wide[:, cut[0] // 2 : 7 - (cut[0] - cut[0] // 2), cut[1] // 2 : 9 - (cut[1] - cut[1] // 2)]
    data = model(
        "Convolution2DTransposeBias", [x.shape, weights, biases], [expected.shape], struct.pack("<3i", 1 if is_same else 2, 2, 2)
    )
    np.testing.assert_allclose(run(data, x)[0], expected, rtol=1e-5, atol=1e-5)


def _between(image: Array, x: float, y: float) -> Array:
    """A pixel read between four; zeros outside."""
    total = np.zeros(image.shape[2])
    for row in (math.floor(y), math.floor(y) + 1):
        for column in (math.floor(x), math.floor(x) + 1):
            if 0 <= row < image.shape[0] and 0 <= column < image.shape[1]:
                total += image[row, column] * (1 - abs(x - column)) * (1 - abs(y - row))
    return total


@pytest.mark.parametrize(("code", "half"), [("TransformTensor", 0.0), ("TransformTensorBilinear", 0.5)])
def test_an_image_is_read_through_a_matrix(code: str, half: float) -> None:
    """The second version counts from the middles of pixels; outside there is nothing."""
    image, matrix = drawn(1, 5, 6, 2), np.zeros((1, 4, 4), np.float32)
    matrix[0, 0, :], matrix[0, 1, :] = (0.8, 0.3, 7, 0.4), (-0.2, 0.9, 7, 0.6)
    expected = np.zeros((1, 4, 7, 2))
    for row, column in np.ndindex(4, 7):
        x, y = (matrix[0, i, 0] * (column + half) + matrix[0, i, 1] * (row + half) + matrix[0, i, 3] - half for i in (0, 1))
        if 0 <= x <= 5 and 0 <= y <= 4:
            expected[0, row, column] = _between(image[0], x, y)
    data = model(code, [image.shape, matrix.shape], [(1, 4, 7, 2)], flexible({"output_size": [4, 7]}))
    np.testing.assert_allclose(run(data, image, matrix)[0], expected, atol=1e-5)


def test_images_are_read_at_places() -> None:
    """Of each of a batch; what lies outside is zero, also where a place is no number."""
    images, places = drawn(2, 4, 3, 2), RNG.uniform(-2, 5, (2, 4, 3, 2)).astype(np.float32)
    places[0, 0, 0] = np.nan
    expected = np.zeros(images.shape)
    for n, row, column in np.ndindex(2, 4, 3):
        if not np.isnan(places[n, row, column]).any():
            expected[n, row, column] = _between(images[n], *places[n, row, column])
    found = run(model("Resampler", [images.shape, places.shape], [images.shape], b""), images, places)[0]
    np.testing.assert_allclose(np.nan_to_num(found), expected, atol=1e-5)


@pytest.mark.parametrize("dimensions", [2, 3])
@pytest.mark.parametrize("rank", [3, 4])
def test_points_are_transformed(dimensions: int, rank: int) -> None:
    """In the channels of an image, where the shift is scaled, or on rows."""
    shape = (1, 5, dimensions) if rank == 3 else (1, 1, 2, 2 * dimensions)
    points, matrix, scale = drawn(*shape), drawn(1, 4, 4), 1.0 if rank == 3 else 2.5
    flat = points.reshape(-1, dimensions).astype(np.float64)
    expected = flat.copy()
    for axis in (0, 1):
        expected[:, axis] = flat[:, :2] @ matrix[0, axis, :2] + matrix[0, axis, 3] * scale
    options = flexible({"dimensions": dimensions, "scale": 2.5})
    data = model("TransformLandmarks", [shape, matrix.shape], [shape], options)
    np.testing.assert_allclose(run(data, points, matrix)[0], expected.reshape(shape), atol=1e-5)


def _box(points: Array, angle: float) -> tuple[Array, Array]:
    """Size and middle of the box around points that are turned, turned back."""
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    turned = points @ turn.T
    return turned.max(0) - turned.min(0), (turned.max(0) + turned.min(0)) / 2 @ turn


def _turned(angle: float) -> Array:
    return np.array([[math.cos(angle), -math.sin(angle), 0], [math.sin(angle), math.cos(angle), 0], [0, 0, 1]])


def _as_output(matrix: Array) -> Array:
    made = np.eye(4)
    made[:2, :2], made[:2, 3] = matrix[:2, :2], matrix[:2, 2]
    return made[None]


def test_the_first_matrix_around_landmarks() -> None:
    """Between places from -1 to 1."""
    points = RNG.uniform(0, 100, (1, 1, 1, 30)).astype(np.float32)
    plane = points.reshape(10, 3)[:, :2].astype(np.float64)
    rise = plane[5] - plane[2]
    angle = -math.atan(rise[1] / rise[0])
    size, middle = _box(plane[[0, 4, 7, 8]], angle)
    scale = np.diag([*(size * 1.5 / 100), 1])
    turn = _turned(-angle)
    turn[:2, 2] = middle / 100 * 2 - 1
    relative = np.array([[2 / 15, 0, -1], [0, 2 / 11, -1], [0, 0, 1]])
    absolute = np.array([[31.5, 0, 31.5], [0, 23.5, 23.5], [0, 0, 1]])
    given = {"dimensions": 3, "landmarks_range": 100, "left_rotation_idx": 2, "right_rotation_idx": 5, "bbox_size_multiplier": 1.5}
    options = flexible(given | {"input_hw": [48, 64], "output_hw": [12, 16], "subset": [0, 4, 7, 8]})
    expected = _as_output(absolute @ turn @ scale @ relative)
    found = run(model("Landmarks2TransformMatrix", [points.shape], [(1, 4, 4)], options), points)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_the_second_matrix_around_landmarks() -> None:
    """Between pixels."""
    points = RNG.uniform(0, 100, (1, 10, 3)).astype(np.float32)
    plane = points[0, :, :2].astype(np.float64)
    rise = plane[5] - plane[2]
    angle = 0.3 - math.atan2(rise[1], rise[0])
    size, middle = _box(plane[[0, 4, 7]], angle)
    to_crop, back = np.eye(3), np.eye(3)
    to_crop[:2, 2], back[:2, 2] = middle, (-8, -6)
    expected = _as_output(to_crop @ _turned(-angle) @ np.diag([size[0] * 1.5 / 16, size[1] * 2.0 / 12, 1]) @ back)
    given = {"left_rotation_idx": 2, "right_rotation_idx": 5, "target_rotation_radians": 0.3, "scale_x": 1.5, "scale_y": 2.0}
    options = flexible(given | {"output_height": 12, "output_width": 16, "subset_idxs": [0, 4, 7]})
    found = run(model("Landmarks2TransformMatrix", [points.shape], [(1, 4, 4)], options), points)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("code", "inputs", "options", "message"),
    [
        ("MaxPoolingWithArgmax2D", [(1, 4, 4, 1)], struct.pack("<6i", 2, 0, 1, 2, 2, 0), "strides"),
        ("MaxPoolingWithArgmax2D", [(1, 1, 1, 1)], struct.pack("<6i", 2, 1, 1, 2, 2, 0), "do not fit"),
        ("MaxUnpooling2D", [(1, 4, 4, 1), (1, 4, 4, 1)], b"", "expected 24 or more"),
        ("TransformLandmarks", [(1, 5, 4), (1, 4, 4)], b"", "expected two or three"),
        ("Landmarks2TransformMatrix", [(1, 10, 3)], flexible({"left_rotation_idx": 2}), "subset_idxs is None"),
    ],
)
def test_options_that_do_not_fit_are_refused(code: str, inputs: list[tuple[int, ...]], options: bytes, message: str) -> None:
    """With what was found."""
    outputs = [(1, 1, 1, 1)] * (2 if code.startswith("MaxPooling") else 1)
    with pytest.raises(errors.InvalidFlatBuffer, match=message):
        sardonyx.InferenceSession(model(code, inputs, outputs, options))
