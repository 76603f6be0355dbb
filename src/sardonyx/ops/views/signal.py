"""The view of DFT."""

from __future__ import annotations

from typing import NamedTuple, Self

from sardonyx.errors import InvalidGraph
from sardonyx.ir import Node
from sardonyx.ops.views.axes import normalize_axis

__all__ = ["Dft"]

_AXIS_BECAME_INPUT = 20


class Dft(NamedTuple):
    """A discrete Fourier transform."""

    axis: int | None
    """Along which axis, counted from the front; None where only the run shows."""
    inverse: bool
    """Whether it is the inverse one."""
    onesided: bool
    """Whether one side of it has only the bins up to the middle: of a real signal."""

    @classmethod
    def of(cls, node: Node) -> Self:
        """Read a node whose first input has a rank; raises InvalidGraph for an axis that is none of the signal's."""
        return cls(_axis_of(node), bool(node.integer("inverse", 0)), bool(node.integer("onesided", 0)))


def _axis_of(node: Node) -> int | None:
    signal, given = node.input(0), node.input(2)
    rank = len(signal.shape) if signal is not None and signal.shape is not None else 0
    if node.version < _AXIS_BECAME_INPUT:
        axis = node.integer("axis", 1)
    elif given is None:
        axis = -2
    elif given.constant is None or given.constant.numpy().size != 1:
        return None
    else:
        axis = int(given.constant.numpy().reshape(()))
    place = normalize_axis(axis, rank)
    if place == rank - 1:
        raise InvalidGraph(
            f"axis={axis} is that of real and imaginary parts of a tensor of rank {rank}; name an axis of the signal"
        )
    return place
