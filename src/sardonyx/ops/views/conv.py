"""Convolutions: Conv, ConvTranspose, ConvInteger, QLinearConv, DeformConv, and FusedConv of com.microsoft."""

from collections.abc import Sequence
from typing import NamedTuple, Self

from sardonyx.errors import InvalidGraph
from sardonyx.ir import Operator
from sardonyx.ops.views.window import D, Sliding, Window

__all__ = ["Conv", "ConvTranspose"]


class Conv(NamedTuple):
    """A convolution of data with filters."""

    group: int
    """Into how many groups the channels are divided."""
    sliding: Sliding
    """How the filters slide."""

    @classmethod
    def of(cls, node: Operator) -> Self:
        """Read a node; raises InvalidGraph for a number of groups below 1, or a window that cannot be."""
        return cls(_group(node), Sliding.of(node))

    def window(self, kernel: Sequence[D]) -> Window[D] | Window[int]:
        """Return the window of filters whose spatial sizes are `kernel`; raises InvalidGraph where the attributes do not fit."""
        return _window(self.sliding, kernel)


class ConvTranspose(NamedTuple):
    """A transposed convolution."""

    group: int
    """Into how many groups the channels are divided."""
    sliding: Sliding
    """How the filters slide over the output."""
    output_padding: tuple[int, ...]
    """What is added at the end of each axis of the output; empty for 0."""
    output_shape: tuple[int, ...]
    """The spatial sizes of the output, from which the pads follow; empty where the pads decide."""

    @classmethod
    def of(cls, node: Operator) -> Self:
        """Read a node; raises InvalidGraph for a number of groups below 1, or a window that cannot be."""
        return cls(_group(node), Sliding.of(node), node.integers("output_padding", ()), node.integers("output_shape", ()))

    def window(self, kernel: Sequence[D]) -> Window[D] | Window[int]:
        """Return the window of filters whose spatial sizes are `kernel`; raises InvalidGraph where the attributes do not fit."""
        return _window(self.sliding, kernel)

    def padding(self, rank: int) -> tuple[int, ...]:
        """Return `output_padding` for so many spatial axes; raises InvalidGraph for another number of elements."""
        found = self.output_padding or (0,) * rank
        if len(found) != rank:
            raise InvalidGraph(f"output_padding={list(found)} has {len(found)} elements, expected {rank}")
        return found


def _group(node: Operator) -> int:
    group = node.integer("group", 1)
    if group < 1:
        raise InvalidGraph(f"group={group}, expected at least 1")
    return group


def _window(sliding: Sliding, kernel: Sequence[D]) -> Window[D] | Window[int]:
    given = sliding.kernel_shape
    if given and (len(given) != len(kernel) or any(isinstance(b, int) and a != b for a, b in zip(given, kernel, strict=True))):
        raise InvalidGraph(f"kernel_shape={list(given)} for filters of spatial shape [{', '.join(map(str, kernel))}]")
    return sliding.over(given) if given else sliding.over(kernel)
