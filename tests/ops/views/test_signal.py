"""The view of DFT."""

from __future__ import annotations

import pytest
from support.view_node import node

from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidGraph
from sardonyx.ir import Node
from sardonyx.ir.types import TensorType
from sardonyx.ops.views.signal import Dft


def _dft(version: int, *more: int | str | None, **attributes: int) -> Node:
    made = node("DFT", version, ["x", None, *more], **attributes)
    x = made.input(0)
    assert x is not None
    x.type = TensorType(DataType.FLOAT, (2, 3, 5, 2))
    return made


def test_the_axis_became_an_input() -> None:
    """With opset 20; before it is the second one by default, then the last but one."""
    assert Dft.of(_dft(19, axis=-3)) == Dft(1, False, False)
    assert Dft.of(_dft(17)) == Dft(1, False, False)
    assert Dft.of(_dft(20, inverse=1)) == Dft(2, True, False)
    assert Dft.of(_dft(20, 0, onesided=1)) == Dft(0, False, True)
    assert Dft.of(_dft(20, "a")) == Dft(None, False, False)


def test_parts_are_no_axis() -> None:
    """Real and imaginary parts lie in the last dimension."""
    with pytest.raises(InvalidGraph, match="name an axis of the signal"):
        Dft.of(_dft(19, axis=3))
