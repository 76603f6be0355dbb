"""Parts of tensors of TensorFlow Lite."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from formats.tflite.running import run
from support.flat_models import Sketch, one

from sardonyx import errors
from sardonyx.formats.models import load

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
@pytest.mark.parametrize("computed", [(), (1,), (0, 1), (2,), (0, 1, 2)])
def test_masks_mean_what_they_mean_in_numpy(
    begin: list[int], end: list[int], step: list[int], masks: dict[str, int], index: Any, computed: tuple[int, ...]
) -> None:
    """With bounds and steps of the file or of the run."""
    bounds = [np.array(numbers, np.int32) for numbers in (begin, end, step)]
    given = [((len(begin),), "INT32") if place in computed else bound for place, bound in enumerate(bounds)]
    expected = X[index]
    data = one(
        "STRIDED_SLICE",
        [((3, 4, 5), "FLOAT32"), *given],
        (expected.shape, "FLOAT32"),
        ("StridedSliceOptions", masks),
    )
    np.testing.assert_array_equal(run(data, X, *(bounds[place] for place in computed))[0], expected)


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


def _replaced(step: int) -> bytes:
    """Return a model that joins the rows before i, a row, and the rows from i + `step` on."""
    sketch = Sketch()
    x, row, index = sketch.input((4, 2)), sketch.input((1, 2)), sketch.input((), "INT32")
    one, shape = sketch.constant(np.array(step, np.int32)), sketch.constant(np.array([1], np.int32))
    rest, none = sketch.constant(np.array([-1], np.int32)), sketch.constant(np.array([0], np.int32))
    zeros, all_of_it = sketch.constant(np.zeros(2, np.int32)), sketch.constant(np.array([-1, -1], np.int32))
    after = sketch.tensor((), "INT32")
    sketch.operator("ADD", [index, one], [after], ("AddOptions", {}))
    bounds = []
    for number, others in ((index, rest), (after, none)):
        listed, joined = sketch.tensor((1,), "INT32"), sketch.tensor((2,), "INT32")
        sketch.operator("RESHAPE", [number, shape], [listed])
        sketch.operator("CONCATENATION", [listed, others], [joined], ("ConcatenationOptions", {}))
        bounds.append(joined)
    before, behind, made = sketch.tensor((1, 2)), sketch.tensor((1, 2)), sketch.tensor((4, 2))
    sketch.operator("SLICE", [x, zeros, bounds[0]], [before])
    sketch.operator("SLICE", [x, bounds[1], all_of_it], [behind])
    sketch.operator("CONCATENATION", [before, row, behind], [made], ("ConcatenationOptions", {}))
    return sketch.model([made])


@pytest.mark.parametrize("index", [0, 2, 3])
def test_a_row_that_is_put_between_slices_is_written(index: int) -> None:
    """As loops write lists of tensors."""
    x = np.arange(8, dtype=np.float32).reshape(4, 2)
    data = _replaced(1)
    assert "ScatterND" in {node.op_type for node in load(data).graph}
    expected = x.copy()
    expected[index] = -1
    found = run(data, x, np.full((1, 2), -1, np.float32), np.array(index, np.int32))[0]
    np.testing.assert_array_equal(found, expected)


def test_rows_between_other_slices_are_joined() -> None:
    """Where the second slice begins elsewhere than behind the row."""
    assert "ScatterND" not in {node.op_type for node in load(_replaced(2)).graph}
