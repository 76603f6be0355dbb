"""Element types that attributes name by number."""

from __future__ import annotations

from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidGraph

__all__ = ["element_type"]


def element_type(number: int, attribute: str) -> DataType:
    """Return the element type with this number in TensorProto.DataType; raises InvalidGraph where there is none."""
    if number not in _NUMBERS:
        raise InvalidGraph(
            f"attribute {attribute!r} is {number!r}, which is no element type; expected a number of TensorProto.DataType"
        )
    return DataType(number)


_NUMBERS = {int(item) for item in DataType} - {int(DataType.UNDEFINED)}
