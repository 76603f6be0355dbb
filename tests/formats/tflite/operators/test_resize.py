"""Sizes of images, blocks and norms of TensorFlow Lite."""

from __future__ import annotations

import numpy as np
import pytest
from formats.tflite.running import run
from support.flat_models import Sketch, one

from sardonyx import errors


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [0, 0.5, 1, 1.5, 2, 2]),
        ({"align_corners": True}, [0, 0.4, 0.8, 1.2, 1.6, 2]),
        ({"half_pixel_centers": True}, [0, 0.25, 0.75, 1.25, 1.75, 2]),
    ],
)
def test_places_between_pixels(options: dict[str, bool], expected: list[float]) -> None:
    """Of the three ways to count them."""
    x = np.array([0, 1, 2], np.float32).reshape(1, 1, 3, 1)
    data = one(
        "RESIZE_BILINEAR",
        [((1, 1, 3, 1), "FLOAT32"), np.array([1, 6], np.int32)],
        ((1, 1, 6, 1), "FLOAT32"),
        ("ResizeBilinearOptions", options),
    )
    np.testing.assert_allclose(run(data, x)[0].reshape(-1), expected, atol=1e-6)


@pytest.mark.parametrize(("kind", "largest"), [("INT8", 127), ("INT16", 32767)])
@pytest.mark.parametrize("is_open", [False, True])
def test_integers_are_resized_with_places_of_10_bits(kind: str, largest: int, is_open: bool) -> None:
    """As in LiteRT: a third is 341 of 1024 parts, so that the last place of many is not where it should be."""
    x = np.array([-largest, largest], kind.lower()).reshape(1, 1, 2, 1)
    sketch = Sketch()
    given = sketch.input((1, 1, 2, 1), kind, (0.1, 0))
    if is_open:
        sketch.subgraphs[0]["tensors"][given]["shape_signature"] = np.array([1, 1, -1, 1], np.int32)
    made = sketch.tensor((1, 1, 6, 1), kind, (0.1, 0))
    sizes = sketch.constant(np.array([1, 6], np.int32))
    sketch.operator("RESIZE_BILINEAR", [given, sizes], [made], ("ResizeBilinearOptions", {}))
    parts = np.minimum(np.arange(6) * 341, 1024)
    expected = [int(np.trunc(largest * (2 * part - 1024) / 1024 + np.sign(2 * part - 1024) / 2)) for part in parts]
    assert run(sketch.model([made]), x)[0].reshape(-1).tolist() == expected


def test_blocks_go_to_the_batch_and_come_back() -> None:
    """With padding that is cropped again."""
    x = np.arange(24, dtype=np.float32).reshape(1, 4, 6, 1)
    blocks, around = np.array([3, 2], np.int32), np.array([[1, 1], [0, 0]], np.int32)
    sketch = Sketch()
    there, back = sketch.tensor((6, 2, 3, 1)), sketch.tensor((1, 4, 6, 1))
    sizes, pads = sketch.constant(blocks), sketch.constant(around)
    sketch.operator("SPACE_TO_BATCH_ND", [sketch.input((1, 4, 6, 1)), sizes, pads], [there])
    sketch.operator("BATCH_TO_SPACE_ND", [there, sizes, pads], [back])
    found = run(sketch.model([there, back]), x)
    np.testing.assert_array_equal(found[0][0, :, :, 0], np.pad(x[0, :, :, 0], ((1, 1), (0, 0)))[::3, ::2])
    np.testing.assert_array_equal(found[1], x)


def test_blocks_that_do_not_divide_are_refused() -> None:
    """With the sizes."""
    data = one(
        "SPACE_TO_BATCH_ND", [((1, 3, 1), "FLOAT32"), np.array([2], np.int32), np.array([[0, 0]], np.int32)], ((2, 1, 1), "FLOAT32")
    )
    with pytest.raises(errors.InvalidFlatBuffer, match=r"\[3\] elements are not cut into blocks of \[2\]"):
        run(data)


def test_a_norm_of_zeros_is_small() -> None:
    """Not zero."""
    data = one("L2_NORMALIZATION", [((2, 2), "FLOAT32")], ((2, 2), "FLOAT32"), ("L2NormOptions", {}))
    np.testing.assert_allclose(run(data, np.array([[3, 4], [0, 0]], np.float32))[0], [[0.6, 0.8], [0, 0]], rtol=1e-6)


def test_elements_between_elements() -> None:
    """As many as the step leaves."""
    inputs = [((2, 2), "FLOAT32"), np.array([1, 3], np.int32), np.array(-1, np.float32)]
    data = one("DILATE", inputs, ((2, 4), "FLOAT32"), ("DilateOptions", {}))
    assert run(data, np.array([[1, 2], [3, 4]], np.float32))[0].tolist() == [[1, -1, -1, 2], [3, -1, -1, 4]]
