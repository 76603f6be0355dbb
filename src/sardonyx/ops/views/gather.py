"""Operators that read or write at places that an input names."""

from typing import NamedTuple, Self

from sardonyx.errors import InvalidGraph
from sardonyx.ir import Operator
from sardonyx.ops.views.axes import normalize_axis

__all__ = ["REDUCTIONS", "Compress", "Gather", "OneHot", "Scatter"]

REDUCTIONS = ("add", "max", "min", "mul", "none")


class Gather(NamedTuple):
    """Gather, GatherElements or GatherND."""

    axis: int
    """The axis along which indices count, as the node gives it; without meaning for GatherND."""
    batch_axes: int
    """How many leading axes the data of GatherND has in common with its indices."""
    wraps: bool
    """Whether a negative index counts from the end: from opset 11 on."""

    @classmethod
    def of(cls, node: Operator) -> Self:
        """Read a node."""
        return cls(node.integer("axis", 0), node.integer("batch_dims", 0), bool(node.domain) or node.version >= 11)

    def place(self, rank: int) -> int:
        """Return the axis counted from the front; raises InvalidGraph where a tensor of `rank` lacks it."""
        return normalize_axis(self.axis, rank)


class Scatter(NamedTuple):
    """Scatter, ScatterElements or ScatterND."""

    axis: int
    """The axis along which indices count, as the node gives it; without meaning for ScatterND."""
    reduction: str
    """What an element and its update become: none (the update), add, mul, max or min."""

    @classmethod
    def of(cls, node: Operator) -> Self:
        """Read a node; raises InvalidGraph for an unknown reduction."""
        reduction = node.text("reduction", "none")
        if reduction not in REDUCTIONS:
            raise InvalidGraph(f"reduction={reduction!r}, expected one of {', '.join(REDUCTIONS)}")
        return cls(node.integer("axis", 0), reduction)

    def place(self, rank: int) -> int:
        """Return the axis counted from the front; raises InvalidGraph where a tensor of `rank` lacks it."""
        return normalize_axis(self.axis, rank)


class OneHot(NamedTuple):
    """A new axis along which the place that an index names has one value, and all others have another."""

    axis: int
    """The place of the new axis among those of the output, as the node gives it."""
    wraps: bool
    """Whether a negative index counts from the end: from opset 11 on."""

    @classmethod
    def of(cls, node: Operator) -> Self:
        """Read a node."""
        return cls(node.integer("axis", -1), node.version >= 11)

    def place(self, rank: int) -> int:
        """Return the axis counted from the front; raises InvalidGraph where an output of `rank` lacks it."""
        return normalize_axis(self.axis, rank)


class Compress(NamedTuple):
    """The slices of an axis, or the elements, where a condition holds."""

    axis: int | None
    """The axis, as the node gives it; None for all elements in one row."""

    @classmethod
    def of(cls, node: Operator) -> Self:
        """Read a node."""
        return cls(node.integer("axis", 0) if "axis" in node.attributes else None)

    def place(self, rank: int) -> int | None:
        """Return the axis counted from the front, None for all elements; raises InvalidGraph where a tensor of `rank` lacks it."""
        return None if self.axis is None else normalize_axis(self.axis, rank)
