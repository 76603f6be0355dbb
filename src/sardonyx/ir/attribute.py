"""Attributes of nodes: a kind, as AttributeProto numbers them, and a Python value.

    FLOAT float   INT int   STRING str (bytes that are no UTF-8 survive by surrogateescape)   TENSOR Tensor   GRAPH Graph
    SPARSE_TENSOR SparseTensor   TYPE ValueType   and FLOATS, INTS, …: tuples of these

Inside a function body an attribute may have a `reference` instead of a value: the name of the attribute of the calling node
whose value it takes.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from types import UnionType
from typing import Any, TypeAlias

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import Array
from sardonyx.ir.tensor import Tensor
from sardonyx.ir.types import MapType, OptionalType, SequenceType, SparseTensorType, TensorType

__all__ = ["ArrayAttribute", "Attribute", "AttributeKind", "AttributeValue", "SparseTensor"]

AttributeValue: TypeAlias = Any
"""The value of an attribute, of the type that its kind decides: a number, a str, a Tensor, a Graph, a type, or a tuple of these."""


class AttributeKind(enum.IntEnum):
    """The kind of an attribute; the value is its number in AttributeProto.AttributeType."""

    FLOAT = 1
    INT = 2
    STRING = 3
    TENSOR = 4
    GRAPH = 5
    FLOATS = 6
    INTS = 7
    STRINGS = 8
    TENSORS = 9
    GRAPHS = 10
    SPARSE_TENSOR = 11
    SPARSE_TENSORS = 12
    TYPE = 13
    TYPES = 14


@dataclasses.dataclass(frozen=True, slots=True)
class SparseTensor:
    """A tensor that is zero but for the elements listed."""

    values: Tensor
    """The non-zero elements, (NNZ,)."""
    indices: Tensor
    """Their places, int64: (NNZ,) in the flattened tensor, or (NNZ, rank)."""
    shape: tuple[int, ...]
    """The dense shape."""


class Attribute:
    """One attribute of a node; treat as immutable and put a new one in its place."""

    __slots__ = ("kind", "reference", "value")

    def __init__(self, kind: AttributeKind, value: AttributeValue, reference: str | None = None) -> None:
        """Make an attribute; its name is its key in `Node.attributes`. `kind` decides the type of `value`."""
        self.kind, self.value, self.reference = kind, value, reference

    @staticmethod
    def of(value: AttributeValue) -> Attribute:
        """Make an attribute of the kind that a Python value suggests; raises TypeError for an empty or mixed list."""
        if isinstance(value, (list, tuple)):
            kinds = {_kind_of(item) for item in value}
            if kinds == {AttributeKind.INT, AttributeKind.FLOAT}:
                kinds, value = {AttributeKind.FLOAT}, [float(item) for item in value]
            if len(kinds) != 1:
                raise TypeError(f"an attribute list needs elements of one kind, got {value!r}; use Attribute(kind, value)")
            return Attribute(_PLURAL[kinds.pop()], tuple(value))
        return Attribute(_kind_of(value), int(value) if isinstance(value, bool) else value)

    def __repr__(self) -> str:
        return f"@{self.reference}" if self.reference else repr(self.value)


class ArrayAttribute(Attribute):
    """A long list of numbers or texts that was read as an array; `value` is made when it is asked for."""

    __slots__ = ("_list", "array", "texts")

    def __init__(self, kind: AttributeKind, array: Array, texts: Sequence[str] = ()) -> None:
        """Make an attribute of the kind INTS (of int64), FLOATS (of float32), or STRINGS, where `array` are places in `texts`."""
        self.kind, self.reference = kind, None
        self.array, self.texts = array, texts
        self._list: tuple[Any, ...] | None = None
        array.flags.writeable = False

    @property
    def value(self) -> AttributeValue:
        """The list."""
        if self._list is None:
            numbers = self.array.tolist()
            self._list = tuple(map(self.texts.__getitem__, numbers) if self.texts else numbers)
        return self._list


_PLURAL = {
    AttributeKind.FLOAT: AttributeKind.FLOATS,
    AttributeKind.INT: AttributeKind.INTS,
    AttributeKind.STRING: AttributeKind.STRINGS,
    AttributeKind.TENSOR: AttributeKind.TENSORS,
    AttributeKind.GRAPH: AttributeKind.GRAPHS,
    AttributeKind.SPARSE_TENSOR: AttributeKind.SPARSE_TENSORS,
    AttributeKind.TYPE: AttributeKind.TYPES,
}


def _kind_of(value: AttributeValue) -> AttributeKind:
    table: tuple[tuple[type | UnionType, AttributeKind], ...] = (
        (int, AttributeKind.INT),
        (float, AttributeKind.FLOAT),
        (str, AttributeKind.STRING),
        (Tensor, AttributeKind.TENSOR),
        (SparseTensor, AttributeKind.SPARSE_TENSOR),
        (TensorType | SparseTensorType | SequenceType | OptionalType | MapType, AttributeKind.TYPE),
    )
    for python_type, kind in table:
        if isinstance(value, python_type):
            return kind
    if type(value).__name__ == "Graph":
        return AttributeKind.GRAPH
    raise TypeError(f"no kind of attribute holds {value!r}; expected int, float, str, Tensor, Graph or a value type")
