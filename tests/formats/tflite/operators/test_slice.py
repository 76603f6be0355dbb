"""Parts of tensors of TensorFlow Lite."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from formats.tflite.running import run
from support.flat_models import Sketch, one

from sardonyx import errors

X = np.arange(60, dtype=np.float32).reshape(3, 4, 5)


@pytest.mark.parametrize(
    ("begin", "end", "step", "masks", "index"),
    [
        ([1, 0, 4], [3, 4, 0], [1, 2, -2], {}, np.s_[1:3, 0:4:2, 4:0:-2]),
        ([1, 1, 1], [2, 2, 2], [1, 1, 1], {"begin_mask": 1, "end_mask": 4}, np.s_[:2, 1:2, 1:]),
        ([1, -1], [2, 0], [1, 1], {"shrink_axis_mask": 3}, np.s_[1, -1]),
        ([0, 0, 2], [0, 0, 4], [1, 1, 1], {"ellipsis_mask": 1, "new_axis_mask": 2}, np.s_[..., None, 2:4]),
    ],
)
@pytest.mark.parametrize("computed", [False, True])
def test_masks_mean_what_they_mean_in_numpy(
    begin: list[int], end: list[int], step: list[int], masks: dict[str, int], index: Any, computed: bool
) -> None:
    """With bounds of the file or of the run."""
    bounds = [np.array(numbers, np.int32) for numbers in (begin, end)]
    given = [((len(begin),), "INT32") if computed else bound for bound in bounds]
    expected = X[index]
    data = one(
        "STRIDED_SLICE",
        [((3, 4, 5), "FLOAT32"), *given, np.array(step, np.int32)],
        (expected.shape, "FLOAT32"),
        ("StridedSliceOptions", masks),
    )
    np.testing.assert_array_equal(run(data, X, *(bounds if computed else []))[0], expected)


def test_integers_are_padded_with_what_stands_for_zero() -> None:
    """Their zero point."""
    sketch = Sketch()
    made = sketch.tensor((4,), "INT8", (0.5, 7))
    sketch.operator("PAD", [sketch.input((2,), "INT8", (0.5, 7)), sketch.constant(np.array([[1, 1]], np.int32))], [made])
    assert run(sketch.model([made]), np.array([1, 2], np.int8))[0].tolist() == [7, 1, 2, 7]


def test_a_step_of_0_is_refused() -> None:
    """When the model is read."""
    bounds = [np.array(numbers, np.int32) for numbers in ([0], [3], [0])]
    with pytest.raises(errors.InvalidFlatBuffer, match="a step is 0"):
        run(one("STRIDED_SLICE", [((3, 4, 5), "FLOAT32"), *bounds], ((3, 4, 5), "FLOAT32")), X)
