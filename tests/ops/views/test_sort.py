"""Views of operators that rank."""

from __future__ import annotations

import pytest
from support.view_node import node

from sardonyx.errors import InvalidGraph
from sardonyx.ops.views.sort import NonMaxSuppression, TopK, Unique


def test_defaults() -> None:
    """The largest along the last axis; all distinct elements, ascending; boxes by their corners."""
    assert TopK.of(node("TopK", 11)) == TopK(-1, True, None)
    assert Unique.of(node("Unique", 11)) == Unique(None, True)
    assert NonMaxSuppression.of(node("NonMaxSuppression", 11)) == NonMaxSuppression(False)


def test_top_k_before_opset_10_has_k_as_an_attribute() -> None:
    """And finds the largest, whatever else is there."""
    assert TopK.of(node("TopK", 1, k=3, axis=1)) == TopK(1, True, 3)


def test_attributes_are_read() -> None:
    """Each has its field."""
    assert TopK.of(node("TopK", 11, largest=0)).takes_largest is False
    assert Unique.of(node("Unique", 11, axis=-2, sorted=0)) == Unique(-2, False)
    assert NonMaxSuppression.of(node("NonMaxSuppression", 11, center_point_box=1)).has_centers


def test_an_axis_that_is_not_there_is_refused() -> None:
    """Negative axes count from the end."""
    assert TopK.of(node("TopK", 11)).place(3) == 2
    with pytest.raises(InvalidGraph, match=r"axis=3 is outside \[-3, 2\]"):
        TopK.of(node("TopK", 11, axis=3)).place(3)
