"""Operators that rank elements."""

from __future__ import annotations

from typing import NamedTuple, Self

from sardonyx.ir import Operator
from sardonyx.ops.views.axes import normalize_axis

__all__ = ["NonMaxSuppression", "TopK", "Unique"]


class TopK(NamedTuple):
    """The k first elements along an axis, in the order of their size."""

    axis: int
    """The axis, as the node gives it."""
    takes_largest: bool
    """Whether the largest come first, or the smallest: since opset 11."""
    k: int | None
    """How many, as the attribute of before opset 10 says; None where an input holds it."""

    @classmethod
    def of(cls, node: Operator) -> Self:
        """Read a node."""
        if node.version < 10:
            return cls(node.integer("axis", -1), True, node.integer("k", 1))
        return cls(node.integer("axis", -1), bool(node.integer("largest", 1)), None)

    def place(self, rank: int) -> int:
        """Return the axis counted from the front; raises InvalidGraph where a tensor of `rank` lacks it."""
        return normalize_axis(self.axis, rank)


class Unique(NamedTuple):
    """The distinct elements, or the distinct slices along an axis."""

    axis: int | None
    """The axis, as the node gives it; None for the elements."""
    is_sorted: bool
    """Whether they are in ascending order, or in that in which they occur first."""

    @classmethod
    def of(cls, node: Operator) -> Self:
        """Read a node."""
        axis = node.integer("axis", 0) if "axis" in node.attributes else None
        return cls(axis, bool(node.integer("sorted", 1)))


class NonMaxSuppression(NamedTuple):
    """Boxes that survive better ones which they overlap."""

    has_centers: bool
    """Whether a box is its center with width and height, or two corners."""

    @classmethod
    def of(cls, node: Operator) -> Self:
        """Read a node."""
        return cls(node.integer("center_point_box", 0) == 1)
