"""What a value may hold: a tensor, a sparse tensor, a sequence, an optional or a map.

`str` of a type is the string that onnxruntime's NodeArg.type has: tensor(float), seq(tensor(int64)), map(int64,tensor(float)).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import DataType
from sardonyx.ir.shape import Shape

__all__ = ["DENOTATIONS", "MapType", "OptionalType", "SequenceType", "SparseTensorType", "TensorType", "ValueType"]

DENOTATIONS = "dimension_denotations"
"""The key of `Value.metadata` for what its dimensions mean, one word each (DATA_BATCH, DATA_CHANNEL …), separated by commas."""


@dataclasses.dataclass(frozen=True, slots=True)
class TensorType:
    """A dense tensor."""

    dtype: DataType
    """Its element type."""
    shape: Shape | None = None
    """Its dimensions; None where not even the rank is known."""

    def allows(self, sizes: Sequence[int]) -> bool:
        """Return whether a tensor of these sizes can have this shape; a symbolic dimension may be of any."""
        if self.shape is None:
            return True
        if len(self.shape) != len(sizes):
            return False
        for dim, size in zip(self.shape, sizes, strict=True):  # noqa: SIM110  a generator takes 1.7 times as long, in every run
            if type(dim) is int and dim != size:
                return False
        return True

    def __str__(self) -> str:
        return f"tensor({self.dtype})"


@dataclasses.dataclass(frozen=True, slots=True)
class SparseTensorType:
    """A sparse tensor."""

    dtype: DataType
    """Its element type."""
    shape: Shape | None = None
    """Its dimensions as a dense tensor."""

    def __str__(self) -> str:
        return f"sparse_tensor({self.dtype})"


@dataclasses.dataclass(frozen=True, slots=True)
class SequenceType:
    """A list of values of one type."""

    element: ValueType | None
    """The type of each element; None where the model leaves it open."""

    def __str__(self) -> str:
        return f"seq({self.element or ''})"


@dataclasses.dataclass(frozen=True, slots=True)
class OptionalType:
    """A value that may be absent."""

    element: ValueType | None
    """The type of the value where present; None where the model leaves it open."""

    def __str__(self) -> str:
        return f"optional({self.element or ''})"


@dataclasses.dataclass(frozen=True, slots=True)
class MapType:
    """A dictionary."""

    key: DataType
    """The type of the keys: an integer type or STRING."""
    value: ValueType | None
    """The type of the values; None where the model leaves it open."""

    def __str__(self) -> str:
        return f"map({self.key},{self.value or ''})"


ValueType: TypeAlias = TensorType | SparseTensorType | SequenceType | OptionalType | MapType
"""The type of any value."""
