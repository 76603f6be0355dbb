"""The view of Cast."""

from __future__ import annotations

import pytest
from support.view_node import node

from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidGraph
from sardonyx.ops.views.cast import Cast


def test_types_were_named() -> None:
    """Before opset 6, and numbered since."""
    assert Cast.of(node("Cast", 1, to="INT64")).target is DataType.INT64
    assert Cast.of(node("Cast", 13, to=7)).target is DataType.INT64


def test_a_cast_needs_a_type_that_there_is() -> None:
    """None, or an unknown one, is refused."""
    with pytest.raises(InvalidGraph, match="to is missing"):
        Cast.of(node("Cast", 13))
    for version, target in ((13, 99), (1, "REAL")):
        with pytest.raises(InvalidGraph, match="no element type"):
            Cast.of(node("Cast", version, to=target))
