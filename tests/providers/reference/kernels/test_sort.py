"""Facts about the operators that rank."""

import ml_dtypes
import numpy as np
import pytest
from support.cancelling import checks_of
from support.run_op import run_op

from sardonyx.errors import InvalidArgument


def ints(*values):
    return np.array(values, np.int64)


@pytest.mark.parametrize("length", [4, 1000])
@pytest.mark.parametrize("largest", [0, 1])
def test_top_k_prefers_the_lower_position_of_equals(length, largest):
    """Whether it sorts all or selects first, equals come in the order of their positions."""
    data = np.random.default_rng(0).integers(0, 4, (3, length)).astype(np.float32)
    values, positions = run_op("TopK", data, ints(4), largest=largest, outputs=2)
    order = np.argsort(-data if largest else data, axis=-1, kind="stable")[:, :4]
    np.testing.assert_array_equal(positions, order)
    np.testing.assert_array_equal(values, np.take_along_axis(data, order, -1))


def test_top_k_ranks_along_any_axis():
    """Until opset 9 k is an attribute."""
    data = np.array([[1, 5], [3, 2]], np.float64)
    values, positions = run_op("TopK", data, version=1, k=1, axis=0, outputs=2)
    assert (values.tolist(), positions.tolist()) == ([[3, 5]], [[1, 0]])


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.uint64, np.float16, ml_dtypes.bfloat16])
def test_top_k_of_every_type(dtype):
    """Unsigned integers are not negated, halves rank as their values do."""
    values, positions = run_op("TopK", np.array([0, 7, 3]).astype(dtype), ints(3), outputs=2)
    assert values.dtype == dtype
    assert positions.tolist() == [1, 2, 0]


def test_top_k_of_extreme_integers():
    """The least int64 has no negative, and ranks last all the same."""
    least = np.iinfo(np.int64).min
    assert run_op("TopK", ints(0, least, 5), ints(3), outputs=2)[1].tolist() == [2, 0, 1]


def test_top_k_ranks_nan_last():
    """A number is preferred to NaN, in short axes and in long ones."""
    data = np.full(100, np.nan, np.float32)
    data[[70, 90]] = 1, 2
    assert run_op("TopK", data, ints(3), outputs=2)[1].tolist() == [90, 70, 0]


@pytest.mark.parametrize("k", [-1, 4])
def test_top_k_rejects_more_than_there_are(k):
    """The number k lies between 0 and the length."""
    assert run_op("TopK", np.zeros(3, np.float32), ints(0), outputs=2)[0].shape == (0,)
    with pytest.raises(InvalidArgument, match=f"k={k}"):
        run_op("TopK", np.zeros(3, np.float32), ints(k), outputs=2)


def test_unique_gives_first_positions_places_and_counts():
    """In ascending order, or in that of first occurrence."""
    data = np.array([2, 1, 1, 3, 4, 3], np.float32)
    ascending = run_op("Unique", data, outputs=4)
    assert [part.tolist() for part in ascending] == [[1, 2, 3, 4], [1, 0, 3, 4], [1, 0, 0, 2, 3, 2], [2, 1, 2, 1]]
    as_met = run_op("Unique", data, sorted=0, outputs=4)
    assert [part.tolist() for part in as_met] == [[2, 1, 3, 4], [0, 1, 3, 4], [0, 1, 1, 2, 3, 2], [1, 2, 2, 1]]


def test_unique_slices_along_an_axis():
    """Columns are compared whole."""
    data = np.array([[1, 0, 1], [2, 5, 2]])
    values, firsts, places, counts = run_op("Unique", data, axis=-1, outputs=4)
    assert values.tolist() == [[0, 1], [5, 2]]
    assert (firsts.tolist(), places.tolist(), counts.tolist()) == ([1, 0], [1, 0, 1], [1, 2])


def test_unique_of_strings_and_of_nothing():
    """Strings are ordered by code points; an empty tensor has no element."""
    values, _, places, _ = run_op("Unique", np.array(["b", "a", "b"], object), outputs=4)
    assert (values.tolist(), places.tolist()) == (["a", "b"], [1, 0, 1])
    assert [part.shape for part in run_op("Unique", np.zeros((0, 2), np.float32), outputs=4)] == [(0,)] * 4


BOXES = np.float32([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [0, 10.1, 1, 11.1], [0, 100, 1, 101]])
SCORES = np.float32([0.9, 0.75, 0.6, 0.95, 0.5, 0.3])


def _selected(boxes=BOXES, scores=SCORES, limit=3, iou=0.5, least=0.0, **attributes):
    return run_op(
        "NonMaxSuppression", boxes[None], scores[None, None], ints(limit), np.float32([iou]), np.float32([least]), **attributes
    )[:, 2].tolist()


def test_suppression_keeps_the_best_of_those_that_overlap():
    """The best box of each heap stays, best first, up to the limit."""
    assert _selected() == [3, 0, 5]
    assert _selected(limit=2) == [3, 0]
    assert _selected(least=0.4) == [3, 0]


def test_corners_may_be_flipped():
    """Any diagonal of a box describes it."""
    assert _selected(BOXES[:, [2, 3, 0, 1]]) == [3, 0, 5]


def test_boxes_may_be_given_by_their_centres():
    """center_point_box: x, y, width, height."""
    y, x = (BOXES[:, 0] + BOXES[:, 2]) / 2, (BOXES[:, 1] + BOXES[:, 3]) / 2
    centres = np.stack([x, y, np.ones(6), np.ones(6)], axis=1).astype(np.float32)
    assert _selected(centres, center_point_box=1) == [3, 0, 5]


def test_an_overlap_of_just_the_threshold_is_kept():
    """Suppression needs strictly more than the threshold."""
    halves = np.float32([[0, 0, 1, 1], [0, 0.5, 1, 1.5]])
    assert _selected(halves, SCORES[:2], iou=1 / 3) == [0, 1]
    assert _selected(halves, SCORES[:2], iou=0.33) == [0]


def test_equal_scores_rank_by_position():
    """Many boxes of one score, more than are compared at once, come in their order."""
    boxes = np.zeros((300, 4), np.float32)
    boxes[:, 1] = 2 * np.arange(300)
    boxes[:, 3], boxes[:, 2] = boxes[:, 1] + 1, 1
    assert _selected(boxes, np.full(300, 0.5, np.float32), limit=1000) == list(range(300))
    boxes[::2] = boxes[0]
    assert _selected(boxes, np.full(300, 0.5, np.float32), limit=1000) == [0, *range(1, 300, 2)]


def test_a_flat_box_suppresses_nothing():
    """Boxes without area overlap nothing, not even themselves."""
    assert _selected(np.zeros((2, 4), np.float32), SCORES[:2]) == [0, 1]


def test_without_a_limit_nothing_is_selected():
    """max_output_boxes_per_class is 0 unless given."""
    assert run_op("NonMaxSuppression", BOXES[None], SCORES[None, None]).shape == (0, 3)


def test_batches_and_classes_are_apart():
    """Rows name batch, class and box."""
    boxes, scores = np.stack([BOXES, BOXES[::-1]]), np.stack([np.stack([SCORES, -SCORES]), np.stack([SCORES[::-1], SCORES])])
    rows = run_op("NonMaxSuppression", boxes, scores, ints(1), np.float32([0.5]), np.float32([0.0])).tolist()
    assert rows == [[0, 0, 3], [1, 0, 2], [1, 1, 3]]


def test_suppression_rejects_shapes_and_thresholds():
    """Boxes and scores agree in number, the threshold is a ratio."""
    with pytest.raises(InvalidArgument, match=r"\(N, C, M\)"):
        run_op("NonMaxSuppression", BOXES[None], SCORES[None, None, :2], ints(1))
    with pytest.raises(InvalidArgument, match="iou_threshold"):
        _selected(iou=1.5)


@pytest.mark.parametrize("count", [0, 1, 5000])
def test_unique_of_many_equal_numbers(count):
    """First positions, places and counts as np.unique gives them."""
    x = np.random.default_rng(0).integers(0, 50, count).astype(np.float32)
    expected = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    for found, wanted in zip(run_op("Unique", x, outputs=4), expected, strict=True):
        assert (found == wanted).all()


def test_unique_of_many_strings():
    """As np.unique orders them; it asks whether the run is to end."""
    x = np.random.default_rng(0).integers(0, 60_000, 100_000).astype(str).astype(object)
    expected = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    for found, wanted in zip(run_op("Unique", x, outputs=4), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert checks_of(lambda: run_op("Unique", x, outputs=4)) >= 40
