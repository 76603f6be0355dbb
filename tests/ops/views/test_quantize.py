"""The view of QuantizeLinear and DequantizeLinear."""

from __future__ import annotations

import pytest
from support.view_node import node

from sardonyx.errors import InvalidGraph
from sardonyx.ops.views.quantize import Quantization


def test_scales_change_along_axis_1() -> None:
    """By default, and not in blocks."""
    assert Quantization.of(node("DequantizeLinear", 13)) == Quantization(1, names_axis=False, block=0)


def test_an_axis_may_be_named() -> None:
    """It counts from the front."""
    view = Quantization.of(node("QuantizeLinear", 21, axis=-1, block_size=32))
    assert (view.names_axis, view.place(4), view.block) == (True, 3, 32)


def test_an_axis_that_is_not_there_is_refused() -> None:
    """The message says the range."""
    with pytest.raises(InvalidGraph, match=r"axis=1 is outside \[-1, 0\]"):
        Quantization.of(node("QuantizeLinear", 13)).place(1)
