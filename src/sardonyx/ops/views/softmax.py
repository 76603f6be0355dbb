"""Softmax, LogSoftmax and Hardmax, and QLinearSoftmax, which names the opset of the Softmax that it stands for."""

from typing import NamedTuple, Self

from sardonyx.ir import Operator
from sardonyx.ops.views.axes import normalize_axis

__all__ = ["Softmax"]

_ONE_AXIS_SINCE = 13


class Softmax(NamedTuple):
    """A normalization of rows."""

    axis: int
    """The axis, as the node gives it."""
    is_flat: bool
    """Whether a row goes over all axes from `axis` on, as before opset 13, rather than along `axis` alone."""

    @classmethod
    def of(cls, node: Operator) -> Self:
        """Read a node."""
        if node.op_type == "QLinearSoftmax":
            return cls(node.integer("axis", -1), node.integer("opset", _ONE_AXIS_SINCE) < _ONE_AXIS_SINCE)
        is_flat = node.version < _ONE_AXIS_SINCE
        return cls(node.integer("axis", 1 if is_flat else -1), is_flat)

    def first(self, rank: int) -> int:
        """Return the first axis of a row, counted from the front; raises InvalidGraph where a tensor of `rank` lacks it."""
        return normalize_axis(self.axis, rank)

    def row(self, rank: int) -> range:
        """Return the axes that a row goes over, counted from the front; raises InvalidGraph where there are none."""
        first = self.first(rank)
        return range(first, rank if self.is_flat else first + 1)
