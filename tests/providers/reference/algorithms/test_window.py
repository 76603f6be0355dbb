"""Windows over spatial axes: padding, lengths and what is refused."""

from __future__ import annotations

import pytest
from support.placing import place

from sardonyx.errors import InvalidArgument, InvalidGraph
from sardonyx.providers.reference.algorithms.window import resolve_axes_values, split_padding


def test_defaults_are_single_steps_without_padding() -> None:
    """Without attributes a window moves by one element over the bare input."""
    window = place((7, 5), (3, 2))
    assert (window.strides, window.dilations, window.begins, window.ends) == ((1, 1), (1, 1), (0, 0), (0, 0))
    assert window.output == (5, 4)


def test_pads_list_all_beginnings_before_all_ends() -> None:
    """`pads` is [h_begin, w_begin, h_end, w_end]."""
    window = place((7, 5), (3, 3), pads=(1, 0, 2, 1))
    assert (window.begins, window.ends, window.output) == ((1, 0), (2, 1), (8, 4))


@pytest.mark.parametrize(("auto_pad", "begin"), [("SAME_UPPER", 0), ("SAME_LOWER", 1)])
def test_same_puts_the_odd_element_on_its_side(auto_pad: str, begin: int) -> None:
    """An odd total padding is larger at the end for SAME_UPPER and at the beginning for SAME_LOWER."""
    window = place((4,), (2,), auto_pad=auto_pad)
    assert (window.begins, window.output) == ((begin,), (4,))


def test_same_with_a_stride_beyond_the_kernel_pads_nothing() -> None:
    """A total padding below zero counts as zero."""
    window = place((10,), (1,), strides=(3,), auto_pad="SAME_UPPER")
    assert (window.begins, window.ends, window.output) == ((0,), (0,), (4,))


def test_ceil_mode_keeps_a_partial_window() -> None:
    """ceil_mode adds the window that the input fills in part only."""
    assert place((6,), (3,), strides=(2,), ceil_mode=1).output == (3,)
    assert place((6,), (3,), strides=(2,)).output == (2,)


def test_ceil_mode_drops_a_window_that_starts_in_the_end_padding() -> None:
    """A last window that would read no element of the input is dropped."""
    assert place((3,), (1,), strides=(2,), pads=(0, 1), ceil_mode=1).output == (2,)


@pytest.mark.parametrize(("pads", "length"), [(1, 0), (2, 2), (3, 4)])
def test_an_empty_axis_has_the_places_of_its_padding(pads: int, length: int) -> None:
    """As the standard's formula counts them."""
    assert place((0, 4), (3, 3), pads=(pads, 0, pads, 0)).output == (length, 2)


def test_a_window_does_not_fit_an_empty_axis_with_little_padding() -> None:
    """The formula would give fewer than no places."""
    with pytest.raises(InvalidArgument, match="does not fit"):
        place((0, 4), (3, 3))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"strides": (1,)}, "expected 2 for 2 spatial axes"),
        ({"strides": (0, 1)}, "an element below 1"),
        ({"pads": (0, 0, 0, -1)}, "an element below 0"),
        ({"dilations": (1 << 50, 1)}, "above 2"),
        ({"auto_pad": "SAME"}, "auto_pad"),
    ],
)
def test_wrong_attributes_are_refused(arguments: dict[str, object], message: str) -> None:
    """Attributes that fit no window raise InvalidGraph that says why."""
    with pytest.raises(InvalidGraph, match=message):
        place((5, 5), (3, 3), **arguments)


@pytest.mark.parametrize(
    ("spatial", "kernel", "dilations", "message"),
    [((5, 5), (3, 3), (9, 1), "does not fit"), ((5, 5), (3,), (1,), "a window of .3. taps for an input of spatial shape .5, 5.")],
)
def test_windows_that_do_not_fit_the_input_are_refused(
    spatial: tuple[int, ...], kernel: tuple[int, ...], dilations: tuple[int, ...], message: str
) -> None:
    """A window larger than the padded input, or of another rank, raises InvalidArgument that says why."""
    with pytest.raises(InvalidArgument, match=message):
        place(spatial, kernel, dilations=dilations)


def test_left_out_values_take_the_default() -> None:
    """An attribute that is left out has its default on every axis."""
    assert resolve_axes_values("strides", (), 3, 1, 1) == (1, 1, 1)


def test_split_padding_covers_the_total() -> None:
    """Both sides add up to the total."""
    assert split_padding(5, "SAME_UPPER") == (2, 3)
    assert split_padding(5, "NOTSET") == (3, 2)
