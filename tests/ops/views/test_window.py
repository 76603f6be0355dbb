"""How windows slide."""

from __future__ import annotations

import pytest
from support.view_node import node

from sardonyx.errors import InvalidGraph
from sardonyx.ir import symbol
from sardonyx.ops.views.window import Sliding, Window


def test_defaults_follow_from_the_kernel() -> None:
    """Steps and dilations are 1 and pads 0 along each axis."""
    assert Sliding.of(node("Conv", 11)).over((3, 5)) == Window((3, 5), (1, 1), (1, 1), (0, 0, 0, 0), "NOTSET", False)


def test_a_kernel_may_be_symbolic() -> None:
    """The taps of filters of unknown size are symbols."""
    size = symbol("k")
    assert Sliding.of(node("Conv", 11)).over((size,)).kernel == (size,)


def test_no_auto_pad_is_notset() -> None:
    """An empty text means NOTSET, as in ONNX Runtime."""
    assert Sliding.of(node("Conv", 11, auto_pad="")).auto_pad == "NOTSET"


def test_pads_count_under_notset_only() -> None:
    """Where `auto_pad` says how to pad, `pads` says nothing."""
    assert Sliding.of(node("Conv", 11, auto_pad="SAME_UPPER", pads=[1, 1])).over((3,)).pads == (0, 0)
    assert Sliding.of(node("Conv", 11, auto_pad="SAME_LOWER")).over((3,)).is_same


def test_the_extent_counts_dilation() -> None:
    """From the first tap to behind the last one."""
    assert Window((3, 1), (1, 1), (2, 9), (0, 0, 0, 0)).extents == (5, 1)


def test_an_unknown_auto_pad_is_refused() -> None:
    """The message lists what there is."""
    with pytest.raises(InvalidGraph, match="auto_pad='SAME', expected NOTSET, VALID, SAME_UPPER or SAME_LOWER"):
        Sliding.of(node("Conv", 11, auto_pad="SAME"))


@pytest.mark.parametrize(("name", "value"), [("strides", 0), ("dilations", 0), ("kernel_shape", 0), ("pads", -1), ("pads", 2**50)])
def test_numbers_out_of_range_are_refused(name: str, value: int) -> None:
    """Steps, dilations and taps are at least 1, pads at least 0, and none is beyond any memory."""
    with pytest.raises(InvalidGraph, match=rf"{name}=\[{value}, {value}\] has an element below"):
        Sliding.of(node("MaxPool", 11, **{name: [value, value]}))


def test_lists_of_another_length_are_refused() -> None:
    """Each list needs an element for each spatial axis, pads two."""
    with pytest.raises(InvalidGraph, match=r"strides=\[1, 1\] has 2 elements, expected 1 for 1 spatial axes"):
        Sliding.of(node("Conv", 11, strides=[1, 1])).over((3,))
    with pytest.raises(InvalidGraph, match=r"pads=\[1\] has 1 elements, expected 2 for 1 spatial axes"):
        Sliding.of(node("Conv", 11, pads=[1])).over((3,))
