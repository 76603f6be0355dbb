"""Facts about element types by number."""

from __future__ import annotations

import pytest

from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidGraph
from sardonyx.ops.views.element_type import element_type


def test_known_number() -> None:
    """A number of TensorProto.DataType is a type."""
    assert element_type(7, "to") is DataType.INT64


@pytest.mark.parametrize("number", [0, -1, 999])
def test_unknown_number_is_refused(number: int) -> None:
    """UNDEFINED and unknown numbers name the attribute."""
    with pytest.raises(InvalidGraph, match="attribute 'to' is"):
        element_type(number, "to")
