"""Views of Slice, Split, Concat and Pad."""

from __future__ import annotations

import pytest
from support.view_node import node

from sardonyx.errors import InvalidGraph
from sardonyx.ops.views.inputs import COMPUTED, constants
from sardonyx.ops.views.slice import Concat, Pad, ReverseSequence, Slice, Split


def test_a_slice_had_attributes() -> None:
    """Before opset 10, without steps."""
    view = Slice.of(node("Slice", 9, starts=[1, 0], ends=[2, 3]))
    assert (view.starts, view.ends, view.axes, view.steps, view.takes_inputs) == ((1, 0), (2, 3), None, None, False)
    assert (view.length, view.places(3)) == (2, (0, 1))


def test_a_slice_has_inputs() -> None:
    """From opset 10 on; what is computed is not known."""
    given = node("Slice", 13, ["x", [1], "ends", [-1]])
    view = Slice.of(given, constants(given))
    assert (view.starts, view.ends, view.axes, view.steps, view.takes_inputs) == ((1,), COMPUTED, (-1,), None, True)
    assert view.places(3) == (2,)


def test_axes_of_a_slice_may_be_computed() -> None:
    """Or not be known, as their number is computed."""
    given, open_ = node("Slice", 13, ["x", [1], [2], "axes"]), node("Slice", 13, ["x", "starts", "ends"])
    assert Slice.of(given, constants(given)).places(3) is None
    assert Slice.of(open_, constants(open_)).places(3) is None


@pytest.mark.parametrize(("version", "expected"), [(10, True), (11, False)])
def test_the_greatest_end_was_open_backwards(version: int, expected: bool) -> None:
    """Before opset 11."""
    assert Slice.of(node("Slice", version)).opens_backwards is expected


def test_the_sizes_of_a_split() -> None:
    """They are an attribute before opset 13 and an input since; without them parts are equal."""
    given = node("Split", 13, ["x", [1, 2]])
    assert Split.of(given, constants(given)).sizes == (1, 2)
    assert Split.of(node("Split", 11, split=[1, 2])).sizes == (1, 2)
    assert Split.of(node("Split", 13, ["x"]), constants(node("Split", 13, ["x"]))).sizes is None
    assert (Split.takes_sizes_input(12), Split.takes_sizes_input(13)) == (False, True)


def test_a_split_is_along_the_first_axis() -> None:
    """By default."""
    assert (Split.of(node("Split", 13)).axis, Split.of(node("Split", 13, axis=-1)).place(3)) == (0, 2)


def test_the_axis_of_a_concat_may_be_left_out_before_4() -> None:
    """Then it is 1."""
    assert Concat.of(node("Concat", 3)).axis == 1
    assert Concat.of(node("Concat", 4, axis=-1)).place(2) == 1
    with pytest.raises(InvalidGraph, match="axis is missing"):
        Concat.of(node("Concat", 4))


@pytest.mark.parametrize(("version", "name"), [(1, "paddings"), (2, "pads"), (10, "pads")])
def test_pads_were_an_attribute(version: int, name: str) -> None:
    """Of another name in the first version; the value is one too, 0 by default."""
    view = Pad.of(node("Pad", version, **{name: [1, 0, 2, 0]}))
    assert (view.by_axis(2), view.value, view.pads_attribute) == ([(1, 2), (0, 0)], 0.0, name)


def test_pads_are_an_input() -> None:
    """From opset 11 on, and in com.microsoft; from 18 on for some axes only."""
    given = node("Pad", 18, ["x", [1, 2], None, [-1]])
    view = Pad.of(given, constants(given))
    assert (view.by_axis(3), view.value, view.pads_attribute) == ([(0, 0), (0, 0), (1, 2)], None, None)
    microsoft = node("Pad", 1, ["x", [1, 2]], domain="com.microsoft")
    assert Pad.of(microsoft, constants(microsoft)).by_axis(1) == [(1, 2)]


def test_computed_pads_are_not_known() -> None:
    """Nor are pads along computed axes."""
    for inputs in (["x", "pads"], ["x", [1, 2], None, "axes"]):
        given = node("Pad", 18, inputs)
        assert Pad.of(given, constants(given)).by_axis(1) is None


def test_another_number_of_pads_is_refused() -> None:
    """Each axis has two."""
    with pytest.raises(InvalidGraph, match="pads has 3 elements for 2 axes, expected 4"):
        Pad.of(node("Pad", 2, pads=[1, 2, 3])).by_axis(2)


def test_an_unknown_mode_is_refused() -> None:
    """The message lists what there is."""
    with pytest.raises(InvalidGraph, match="mode='mirror', expected one of constant, edge, reflect, wrap"):
        Pad.of(node("Pad", 2, mode="mirror"))


@pytest.mark.parametrize(("version", "expected"), [(13, True), (18, False)])
def test_equal_parts_were_of_one_length(version: int, expected: bool) -> None:
    """Before opset 18."""
    assert Split.of(node("Split", version)).is_even is expected


def test_a_dynamic_slice_has_inputs() -> None:
    """In its only version, which is below Slice-10."""
    given = node("DynamicSlice", 1, ["x", [1], [2], [0]])
    assert Slice.of(given, constants(given)).places(2) == (0,)


def test_an_axis_is_sliced_or_padded_once() -> None:
    """One that is named twice is refused."""
    with pytest.raises(InvalidGraph, match="names an axis twice"):
        Slice.of(node("Slice", 9, starts=[0, 0], ends=[1, 1], axes=[0, -2])).places(2)


def test_sequences_lie_along_either_of_the_first_two_axes() -> None:
    """Steps along the first one by default; other axes are refused."""
    assert ReverseSequence.of(node("ReverseSequence", 10)).time_axis == 0
    assert ReverseSequence.of(node("ReverseSequence", 10, time_axis=1, batch_axis=0)).time_axis == 1
    with pytest.raises(InvalidGraph, match="time_axis=2 and batch_axis=1, expected 0 and 1"):
        ReverseSequence.of(node("ReverseSequence", 10, time_axis=2))
