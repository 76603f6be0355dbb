"""Element types as attributes name them: by their number in TensorProto.DataType."""

from __future__ import annotations

from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument

__all__ = ["element_type"]


def element_type(number: int, name: str) -> DataType:
    """Return the element type numbered `number`; `name` is the attribute, for the message."""
    try:
        found = DataType(number)
    except ValueError as error:
        raise InvalidArgument(f"{name}={number} is no element type; expected a number of TensorProto.DataType") from error
    if found is DataType.UNDEFINED:
        raise InvalidArgument(f"{name}=0 is the undefined type; expected a type that a tensor may have")
    return found
