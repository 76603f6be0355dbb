"""The axes that a window slides on, as kernels of convolution and pooling read them from their parameters."""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.module import Kernel
from sardonyx.codegen.emit.values import Register
from sardonyx.lazy_dataclasses import dataclass

__all__ = ["AXIS_WORDS", "AxisValues", "WindowAxis", "axis_words", "blocks", "least", "read_axes", "taps_inside"]


@dataclass(frozen=True, slots=True)
class WindowAxis:
    """One spatial axis: on it, tap t of place p reads element p * stride + t * dilation - begin of the input."""

    size: int
    """Elements of the input."""
    places: int
    """Places of the output."""
    stride: int
    dilation: int
    begin: int
    """Padding before the first element; negative where elements are skipped."""
    taps: int
    in_step: int
    """From one element of the input to the next along this axis, in numbers."""
    out_step: int
    """From one place of the output to the next, in numbers."""


_FIELDS = tuple(WindowAxis.__dataclass_fields__)
AXIS_WORDS = len(_FIELDS)
"""Parameters of one axis."""

AxisValues = dict[str, Register]
"""The fields of a WindowAxis as values of a kernel."""


def axis_words(axes: Sequence[WindowAxis]) -> list[int]:
    """Return the axes as a kernel reads them, outermost first."""
    return [getattr(axis, name) for axis in axes for name in _FIELDS]


def read_axes(b: Kernel, first: int, rank: int) -> list[AxisValues]:
    """Return the axes whose parameters begin at number `first`."""
    starts = [first + axis * AXIS_WORDS for axis in range(rank)]
    return [{name: b.param(start + place) for place, name in enumerate(_FIELDS)} for start in starts]


def taps_inside(b: Function, place: Register, axis: AxisValues, *, dilated: bool = True) -> tuple[Register, Register, Register]:
    """Return which taps of a window at `place` meet the input.

    Args:
        b: the function to write into.
        place: the place along the axis.
        axis: the axis.
        dilated: whether its dilation may be other than 1; a division is saved where it is not.

    Returns:
        The first of these taps, the one after the last, and the element that the first one meets.
    """
    start = place * axis["stride"] - axis["begin"]
    before, room = -start, axis["size"] - start
    if dilated:
        before, room = blocks(before, axis["dilation"]), blocks(room, axis["dilation"])
    first = least(b, b.select(start < 0, before, 0), axis["taps"])
    last = least(b, b.max(b.select(start < axis["size"], room, 0), first), axis["taps"])
    return first, last, start + (first * axis["dilation"] if dilated else first)


def least(b: Function, left: Register, right: Register) -> Register:
    """Return the lesser of two integers."""
    return b.select(left < right, left, right)


def blocks(length: Register, block: Register) -> Register:
    """Return how many blocks cover a length."""
    return (length + block - 1) // block
