"""Pools: AveragePool, LpPool, MaxPool, MaxUnpool, and QLinearAveragePool and NhwcMaxPool of com.microsoft."""

from typing import NamedTuple, Self

from sardonyx.errors import InvalidGraph
from sardonyx.ir import Operator
from sardonyx.ops.views.window import Sliding, Window

__all__ = ["Norm", "Pool"]


class Pool(NamedTuple):
    """A fold of what a window shows at each of its places."""

    sliding: Sliding
    """How the window slides; its kernel shape is never empty."""
    counts_padding: bool
    """Whether a mean is over the whole window, padding included."""
    order: float
    """The p of a norm."""
    counts_by_column: bool
    """Whether the indices of MaxPool count the spatial axes from the first, rather than from the last."""

    @classmethod
    def of(cls, node: Operator) -> Self:
        """Read a node; raises InvalidGraph for a window that cannot be."""
        sliding = Sliding.of(node)
        if not sliding.kernel_shape:
            raise InvalidGraph("kernel_shape is missing; expected the size of the window along each spatial axis")
        return cls(sliding, node.flag("count_include_pad"), Norm.of(node).order, node.flag("storage_order"))

    @property
    def window(self) -> Window[int]:
        """The window, with defaults filled in; raises InvalidGraph where the attributes do not fit its axes."""
        return self.sliding.over(self.sliding.kernel_shape)


class Norm(NamedTuple):
    """The norm of LpPool or GlobalLpPool."""

    order: float
    """Its p, a float before opset 2."""

    @classmethod
    def of(cls, node: Operator) -> Self:
        """Read a node; raises InvalidGraph for an order of 0 or less."""
        order = node.number("p", 2.0) if node.version < 2 else node.integer("p", 2)
        if not order > 0:
            raise InvalidGraph(f"p={order}, expected a number above 0")
        return cls(float(order))
