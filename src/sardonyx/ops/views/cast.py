"""The view of Cast."""

from typing import NamedTuple, Self

from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidGraph
from sardonyx.ir import Operator
from sardonyx.ops.views.element_type import element_type

__all__ = ["Cast"]


class Cast(NamedTuple):
    """A conversion of every element."""

    target: DataType
    """The type that elements become."""

    @classmethod
    def of(cls, node: Operator) -> Self:
        """Read a node; raises InvalidGraph for a type that there is not. Before opset 6 types are named, in capital letters."""
        if "to" not in node.attributes:
            raise InvalidGraph("to is missing; expected the type to cast to")
        if node.version < 6 and not node.domain:
            return cls(element_type(_OLD_NAMES.get(node.text("to", "").upper(), 0), "to"))
        return cls(element_type(node.integer("to", 0), "to"))


_OLD_NAMES = {
    "FLOAT": 1,
    "UINT8": 2,
    "INT8": 3,
    "UINT16": 4,
    "INT16": 5,
    "INT32": 6,
    "INT64": 7,
    "STRING": 8,
    "BOOL": 9,
    "FLOAT16": 10,
    "DOUBLE": 11,
    "UINT32": 12,
    "UINT64": 13,
    "COMPLEX64": 14,
    "COMPLEX128": 15,
}
