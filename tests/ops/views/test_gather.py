"""Views of operators that read or write at places."""

from __future__ import annotations

import pytest
from support.view_node import node

from sardonyx.errors import InvalidGraph
from sardonyx.ops.views.gather import Compress, Gather, OneHot, Scatter


def test_defaults() -> None:
    """Indices count along the first axis, and updates replace."""
    assert Gather.of(node("Gather", 13)) == Gather(0, 0, wraps=True)
    assert Scatter.of(node("ScatterElements", 18)) == Scatter(0, "none")
    assert OneHot.of(node("OneHot", 11)) == OneHot(-1, wraps=True)


def test_negative_axes_count_from_the_end() -> None:
    """An axis is counted from the front, and refused where it is not there."""
    assert Gather.of(node("Gather", 13, axis=-1)).place(3) == Scatter.of(node("Scatter", 9, axis=2)).place(3) == 2
    with pytest.raises(InvalidGraph, match=r"axis=3 is outside \[-3, 2\]"):
        Gather.of(node("Gather", 13, axis=3)).place(3)


@pytest.mark.parametrize(("version", "expected"), [(10, False), (11, True)])
def test_negative_indices_count_from_the_end_since_11(version: int, expected: bool) -> None:
    """Before, an index is at least 0."""
    assert Gather.of(node("Gather", version)).wraps is expected
    assert OneHot.of(node("OneHot", version)).wraps is expected


def test_an_unknown_reduction_is_refused() -> None:
    """The message lists what there is."""
    with pytest.raises(InvalidGraph, match="reduction='mean', expected one of add, max, min, mul, none"):
        Scatter.of(node("ScatterND", 18, reduction="mean"))


def test_the_new_axis_of_one_hot_is_one_of_the_output() -> None:
    """It may be the last one, and no further one."""
    assert OneHot.of(node("OneHot", 11)).place(3) == OneHot.of(node("OneHot", 11, axis=2)).place(3) == 2
    with pytest.raises(InvalidGraph, match="axis=3 is outside"):
        OneHot.of(node("OneHot", 11, axis=3)).place(3)


def test_compress_without_an_axis_takes_elements() -> None:
    """Else slices of the axis, counted from the front."""
    assert Compress.of(node("Compress", 11)).place(3) is None
    assert Compress.of(node("Compress", 11, axis=-1)).place(3) == 2
