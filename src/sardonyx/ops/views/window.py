"""Windows that slide over the spatial axes of convolutions and pools.

On axis i, tap k of place p reads element p * strides[i] + k * dilations[i] - begin[i] of the input; begins and ends are the pads,
or follow from the sizes where `auto_pad` says so.
"""

from collections.abc import Sequence
from typing import Generic, NamedTuple, Self, TypeVar

from sardonyx.errors import InvalidGraph
from sardonyx.ir import Dim, Operator

__all__ = ["Sliding", "Window"]

_AUTO_PADS = ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")
_LARGEST = 1 << 40
"""Larger numbers are mistakes or attacks."""

D = TypeVar("D", bound=Dim, covariant=True)


class Window(NamedTuple, Generic[D]):
    """A sliding window, with one number for each spatial axis."""

    kernel: tuple[D, ...]
    """The taps along each axis; integers, or symbolic."""
    strides: tuple[int, ...]
    """The step along each axis."""
    dilations: tuple[int, ...]
    """The distance between the taps along each axis."""
    pads: tuple[int, ...]
    """Padding at the begins, then at the ends of the axes, where `auto_pad` is NOTSET."""
    auto_pad: str = "NOTSET"
    """NOTSET, VALID, SAME_UPPER or SAME_LOWER."""
    ceil_mode: bool = False
    """Whether a window may hang over the end, as long as it begins before the padding there."""

    @property
    def is_same(self) -> bool:
        """Whether there are as many places as the input's size divided by the stride, rounded up."""
        return self.auto_pad.startswith("SAME")

    @property
    def extents(self: "Window[int]") -> tuple[int, ...]:
        """From the first tap to behind the last one along each axis."""
        return tuple([(taps - 1) * dilation + 1 for taps, dilation in zip(self.kernel, self.dilations, strict=True)])


class Sliding(NamedTuple):
    """How a window slides, whatever its size: what convolutions and pools have in common. An empty tuple stands for a default."""

    kernel_shape: tuple[int, ...]
    """The taps along each axis; empty where a convolution leaves them to its weights."""
    strides: tuple[int, ...]
    """The step along each axis; empty for 1."""
    dilations: tuple[int, ...]
    """The distance between the taps along each axis; empty for 1."""
    pads: tuple[int, ...]
    """Padding at the begins, then at the ends of the axes; empty for 0, and where `auto_pad` takes their place."""
    auto_pad: str
    """NOTSET, VALID, SAME_UPPER or SAME_LOWER."""
    ceil_mode: bool
    """Whether a window may hang over the end."""

    @classmethod
    def of(cls, node: Operator) -> Self:
        """Read a node; raises InvalidGraph for numbers that fit no number of axes."""
        auto_pad = node.text("auto_pad", "NOTSET") or "NOTSET"
        if auto_pad not in _AUTO_PADS:
            raise InvalidGraph(f"auto_pad={auto_pad!r}, expected NOTSET, VALID, SAME_UPPER or SAME_LOWER")
        found = cls(
            node.integers("kernel_shape", ()),
            node.integers("strides", ()),
            node.integers("dilations", ()),
            node.integers("pads", ()) if auto_pad == "NOTSET" else (),
            auto_pad,
            node.flag("ceil_mode"),
        )
        for name, numbers, least in (
            ("kernel_shape", found.kernel_shape, 1),
            ("strides", found.strides, 1),
            ("dilations", found.dilations, 1),
            ("pads", found.pads, 0),
        ):
            if numbers and not least <= min(numbers) <= max(numbers) <= _LARGEST:
                raise InvalidGraph(f"{name}={list(numbers)} has an element below {least} or above 2^40")
        return found

    def over(self, kernel: Sequence[D]) -> Window[D]:
        """Return the window of these taps, with defaults filled in; raises InvalidGraph for lists of another length."""
        count = len(kernel)
        found = Window(
            tuple(kernel),
            self.strides or (1,) * count,
            self.dilations or (1,) * count,
            self.pads or (0,) * (2 * count),
            self.auto_pad,
            self.ceil_mode,
        )
        lists = (("strides", found.strides, count), ("dilations", found.dilations, count), ("pads", found.pads, 2 * count))
        for name, items, expected in lists:
            if len(items) != expected:
                raise InvalidGraph(f"{name}={list(items)} has {len(items)} elements, expected {expected} for {count} spatial axes")
        return found
