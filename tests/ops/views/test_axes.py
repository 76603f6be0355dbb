"""Axes counted from the front."""

from __future__ import annotations

import pytest

from sardonyx.errors import InvalidGraph
from sardonyx.ops.views.axes import distinct_axes, normalize_axes, normalize_axis


def test_negative_axes_count_from_the_back() -> None:
    """Axes are counted from the front, whichever way they were given."""
    assert normalize_axis(-1, 3) == 2
    assert normalize_axes((0, -1), 3) == (0, 2)


def test_axis_out_of_range_is_refused() -> None:
    """The message says the range."""
    with pytest.raises(InvalidGraph, match=r"axis=3 is outside \[-3, 2\] for a tensor of rank 3"):
        normalize_axis(3, 3)


def test_distinct_axes_are_named_once() -> None:
    """Counted from the front, in their order."""
    assert distinct_axes([-1, 0], 3) == (2, 0)
    with pytest.raises(InvalidGraph, match="names an axis twice"):
        distinct_axes([-1, 2], 3)
