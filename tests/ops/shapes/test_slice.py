"""Facts about parts of tensors and tensors put together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.infer_op import UNKNOWN_DIM, A, B, error_of, floats, infer_op, infer_shape, ints

from sardonyx.dtypes import DataType
from sardonyx.ir import Dim, Expr
from sardonyx.ir.shape import evaluate, is_anonymous, maximum, minimum
from sardonyx.ops.fact import UNKNOWN, tensor

FAR = 2**63 - 1


@pytest.mark.parametrize(
    ("dim", "start", "end", "step", "expected"),
    [
        (A, 0, FAR, 1, A),
        (A, 1, FAR, 1, maximum(A - 1, 0)),
        (A, -1, FAR, 1, minimum(A, 1)),
        (A, 0, 3, 1, minimum(A, 3)),
        (A, 0, -1, 1, maximum(A - 1, 0)),
        (A + 4, 0, 4, 1, 4),
        (A + B, A, A + B, 1, B),
        (A + B, 0, A, 1, A),
        (512, 0, A, 1, minimum(A, 512)),
        (1024, A, A + B, 1, minimum(B, maximum(1024 - A, 0))),
        (2 * A, 0, FAR, 2, A),
        (A, -1, -FAR, -1, A),
        (10, 8, 2, -2, 3),
        (10, None, 5, 1, UNKNOWN_DIM),
    ],
)
def test_ranges(dim: Dim, start: Dim | None, end: Dim, step: int, expected: Dim) -> None:
    """The length of a range follows from its bounds, also where they are symbols."""
    assert infer_shape("Slice", floats(dim), ints(start), ints(end), ints(0), ints(step)) == (expected,)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 9), st.integers(-12, 12), st.integers(-12, 12), st.sampled_from([-3, -2, -1, 1, 2, 3]))
def test_slices_agree_with_numpy(size: int, start: int, end: int, step: int) -> None:
    """Sizes and known elements are those of NumPy, but for a start before the axis; a symbolic size evaluates to the same."""
    expected = np.arange(size)[max(start, -size) if step < 0 else start : end : step]
    (fact,) = infer_op("Slice", ints(*range(size)), ints(start), ints(end), ints(0), ints(step))
    assert fact.elements == expected.tolist()
    (dim,) = infer_op("Slice", floats(A), ints(start), ints(end), ints(0), ints(step))[0].shape or ()
    if not isinstance(dim, Expr) or not is_anonymous(dim):
        assert evaluate(dim, {"a": size}) == len(expected)


def test_axes_default_to_the_first() -> None:
    """Without axes the first ones are sliced; attributes serve before opset 10."""
    assert infer_shape("Slice", floats(5, 6, 7), ints(1, 2), ints(3, 4)) == (2, 2, 7)
    assert infer_shape("Slice", floats(5, 6), version=1, starts=(1,), ends=(3,), axes=(1,)) == (5, 2)


def test_unknown_bounds_leave_other_axes() -> None:
    """Only the sliced axis is unknown."""
    bound = tensor(DataType.INT64, (1,))
    assert infer_shape("Slice", floats(5, 6), bound, bound, ints(1)) == (5, UNKNOWN_DIM)
    assert infer_shape("Slice", UNKNOWN, bound, bound) is None


def test_slice_checks_its_lists() -> None:
    """Bounds, axes and steps must be as many, and steps not 0."""
    assert "have 1, 2, 1 and 1 elements" in error_of("Slice", floats(5), ints(0), ints(1, 2), ints(0))
    assert "a step is 0" in error_of("Slice", floats(5), ints(0), ints(1), ints(0), ints(0))


def test_concat_adds_along_the_axis() -> None:
    """One axis is summed, the others must agree."""
    assert infer_shape("Concat", floats(A, 3), floats(B, 3), axis=0) == (A + B, 3)
    assert "dimension 0 of the inputs must be equal, got 2 and 3" in error_of("Concat", floats(2, 1), floats(3, 1), axis=1)
    assert "ranks 1 and 2" in error_of("Concat", floats(2), floats(3, 1), axis=0)


def test_concat_keeps_elements_even_some() -> None:
    """A vector of unknown elements leaves gaps in the joined one."""
    assert infer_op("Concat", ints(A), ints(2, 3), axis=0)[0].elements == [A, 2, 3]
    assert infer_op("Concat", ints(A), tensor(DataType.INT64, (1,)), ints(3), axis=0)[0].elements == [A, None, 3]


def test_split_by_lengths() -> None:
    """The second input, or the attribute, gives the lengths."""
    assert [fact.shape for fact in infer_op("Split", floats(5, A), ints(2, 3), outputs=2)] == [(2, A), (3, A)]
    assert [fact.shape for fact in infer_op("Split", floats(5), version=2, outputs=2, split=(1, 4))] == [(1,), (4,)]
    assert [fact.elements for fact in infer_op("Split", ints(7, 8, 9), ints(1, 2), outputs=2)] == [[7], [8, 9]]
    assert "do not add up to 5" in error_of("Split", floats(5), ints(2, 2), outputs=2)


def test_split_evenly() -> None:
    """Without lengths the parts are equal, and the last may be shorter."""
    assert [fact.shape for fact in infer_op("Split", floats(7), outputs=3, num_outputs=3)] == [(3,), (3,), (1,)]
    assert [fact.shape for fact in infer_op("Split", floats(2 * A), version=13, outputs=2)] == [(A,), (A,)]


def test_split_makes_no_part_of_negative_length() -> None:
    """Where the axis has fewer elements than the parts would, the last ones are empty; before Split-18 parts are equal."""
    assert [fact.shape for fact in infer_op("Split", floats(5), outputs=4, num_outputs=4)] == [(2,), (2,), (1,), (0,)]
    parts = [fact.shape[0] for fact in infer_op("Split", floats(A), outputs=4, num_outputs=4) if fact.shape]
    name = A.name if isinstance(A, Expr) and A.name else ""
    for size, expected in ((0, [0, 0, 0, 0]), (2, [1, 1, 0, 0]), (5, [2, 2, 1, 0]), (8, [2, 2, 2, 2])):
        assert [part if isinstance(part, int) else evaluate(part, {name: size}) for part in parts] == expected
    assert "into 2 equal parts" in error_of("Split", floats(5), version=13, outputs=2)
    assert "names an axis twice" in error_of("Pad", floats(2, 3), ints(0, 1, 0, 1), None, ints(1, -1))


def test_concat_has_its_axis_where_one_input_is_unknown_too() -> None:
    """The others show that there is none such."""
    assert "255" in error_of("Concat", UNKNOWN, floats(2, 3), axis=255)


def test_split_has_as_many_outputs_as_it_says() -> None:
    """Another `num_outputs` is refused, whoever would run the node."""
    assert "num_outputs=2, but the node has 3 outputs" in error_of("Split", floats(8), outputs=3, num_outputs=2)


def test_pad_grows_axes() -> None:
    """Begins and ends are added, to all axes or the named ones."""
    assert infer_shape("Pad", floats(A, 3), ints(1, 0, 2, -1)) == (A + 3, 2)
    assert infer_shape("Pad", floats(A, 3), ints(1, B), None, ints(0)) == (A + B + 1, 3)
    assert infer_shape("Pad", floats(2, 3), version=2, pads=(0, 1, 0, 1)) == (2, 5)
    assert infer_shape("Pad", floats(2, 3), tensor(DataType.INT64, (4,))) == (UNKNOWN_DIM, UNKNOWN_DIM)
    assert "leave -1 of axis 0" in error_of("Pad", floats(2), ints(-2, -1))
    assert "expected begin and end of each, 4" in error_of("Pad", floats(2, 3), ints(1, 1))


def test_shape_preserving_operators() -> None:
    """Trilu and ReverseSequence keep the shape."""
    assert infer_shape("Trilu", floats(A, B)) == (A, B)
    assert infer_shape("ReverseSequence", floats(A, B), ints(1)) == (A, B)


def test_center_crop_pad_sets_sizes() -> None:
    """The named axes get the target's sizes."""
    assert infer_shape("CenterCropPad", floats(A, 3, 4), ints(8, B), axes=(0, 2)) == (8, 3, B)
    assert "has 1 elements for 2 axes" in error_of("CenterCropPad", floats(2, 3), ints(8))


def test_backwards_a_range_is_clamped_as_the_standard_says() -> None:
    """A start before the axis is its first element; a far end is no end, but of Slice-10."""
    inputs = (floats(5), ints(-10), ints(-100), ints(0), ints(-1))
    assert infer_shape("Slice", *inputs) == (1,)
    for end in (2**31 - 1, 2**63 - 1):
        inputs = (floats(5), ints(4), ints(end), ints(0), ints(-1))
        assert infer_shape("Slice", *inputs) == (0,)
        assert infer_shape("Slice", *inputs, version=10) == (5,)
