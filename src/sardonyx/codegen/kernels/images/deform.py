"""Gather the moved taps of a deformable convolution as the right side of a product; ONNX DeformConv.

    panels[g][n][p / width][(c, tap)][p % width] = mask[n, tap, p] * x[n, c, place p + tap + offset[n, tap, p]]

Between elements x is interpolated along each axis; outside it is 0, and an element of weight 0 counts for nothing, even if it is
not finite. Offsets that are NaN or infinite lie outside. The result is the product of the filters and the panels.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from math import prod
from typing import TypeAlias

from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import F32, I32, I64, Type
from sardonyx.codegen.emit.values import Pointer, Register, Span
from sardonyx.codegen.emit.window import AxisValues, read_axes
from sardonyx.lazy_dataclasses import dataclass

__all__ = ["FIRST_AXIS", "write_deform"]

X, OFFSET, PANELS, MASK = range(4)
"""The buffers of the kernel."""
IMAGES, CHANNELS, GROUPS, OFFSET_GROUPS, FIRST_AXIS = range(5)
"""The parameters of the kernel; those of the axes follow."""

_Corner: TypeAlias = tuple[Register, Register]
"""Offsets of elements in a channel, as int32, and their weights."""


@dataclass(frozen=True, slots=True)
class _Sizes:
    """Numbers that all tasks share."""

    axes: Sequence[AxisValues]
    places: Register
    plane: Register
    taps: Register


def write_deform(module: Module, symbol: str, rank: int, width: int, *, masked: bool, kind: Type = F32) -> None:
    """Write the kernel `symbol`; a task is one panel of an image, of all groups.

    Args:
        module: where to write.
        symbol: the name of the kernel.
        rank: how many spatial axes there are.
        width: places of a panel, a multiple of the lanes.
        masked: whether each tap has a factor.
        kind: the type of all elements, F32 or F64.
    """
    with module.kernel(symbol) as b:
        axes = read_axes(b, FIRST_AXIS, rank)
        one = b.const(I64, 1)
        sizes = _Sizes(axes, *(prod((axis[name] for axis in axes), start=one) for name in ("places", "size", "taps")))
        panels = (sizes.places + (width - 1)) // width
        begins = b.stack(kind, rank * width, align=64)
        with b.loop(b.begin, b.end) as task:
            image, first = task // panels, task % panels * width
            _store_begins(b, sizes, first, begins, width)
            with b.loop(0, b.param(OFFSET_GROUPS)) as part, b.loop(0, sizes.taps) as tap:
                number = (image * b.param(OFFSET_GROUPS) + part) * sizes.taps + tap
                lanes = b.lanes(kind)
                with b.loop(0, width, lanes) as j:
                    mask = b.tail_mask(b.max(b.min(sizes.places - first - j, lanes), 0), lanes)
                    span = Span(lanes, mask)
                    corners = _corners(b, sizes, begins, (number, tap), (first, j, width), span)
                    factor = b.buffer(MASK, kind).load(number * sizes.places + first + j, span) if masked else None
                    _store_channels(b, sizes, corners, factor, (task, image, part, tap, j, width))


def _store_begins(b: Kernel, sizes: _Sizes, first: Register, begins: Pointer, width: int) -> None:
    """Store where the window of each place of a panel begins, along each axis; behind the last place that is the last one's."""
    with b.loop(0, width) as j:
        rest = b.variable(b.min(first + j, sizes.places - 1))
        for number in reversed(range(len(sizes.axes))):
            axis = sizes.axes[number]
            place = rest.value % axis["places"]
            rest.set(rest.value // axis["places"])
            begins.store((place * axis["stride"] - axis["begin"]).to(begins.element), j + number * width)


def _corners(
    b: Kernel,
    sizes: _Sizes,
    begins: Pointer,
    numbers: tuple[Register, Register],
    places: tuple[Register, Register, int],
    span: Span,
) -> list[_Corner]:
    """Return the elements around one tap of a vector of places."""
    (number, tap), (first, j, width) = numbers, places
    rank = len(sizes.axes)
    found: list[list[_Corner]] = []
    rest = tap
    for count in reversed(range(rank)):
        axis = sizes.axes[count]
        inner = rest % axis["taps"]
        rest = rest // axis["taps"]
        moved = b.buffer(OFFSET, begins.element).load((number * rank + count) * sizes.places + first + j, span)
        at = begins.load(j + count * width, span.lanes) + (inner * axis["dilation"]).to(begins.element) + moved
        found.insert(0, _neighbours(b, at, axis["size"]))
    corners = []
    for choice in itertools.product(*found):
        offset, weight = choice[0]
        for axis, (further, factor) in zip(sizes.axes[1:], choice[1:], strict=True):
            offset, weight = offset * axis["size"].to(I32) + further, weight * factor
        corners.append((offset, weight))
    return corners


def _neighbours(b: Kernel, at: Register, size: Register) -> list[_Corner]:
    """Return the two neighbours of positions along an axis, inside it, and their weights, 0 for those that are not."""
    kind = at.type.scalar
    near = (at > -1.0) & (at < size.to(kind))
    at = b.select(near, at, 0.0)
    below = at.to(I32)
    below = b.select(below.to(kind) > at, below - 1, below)
    fraction = at - below.to(kind)
    pairs = [(below, 1.0 - fraction, near & (below >= 0)), (below + 1, fraction, near & (below + 1 < size.to(I32)))]
    return [(b.select(inside, index, 0), b.select(inside, weight, 0.0)) for index, weight, inside in pairs]


def _store_channels(
    b: Kernel,
    sizes: _Sizes,
    corners: Sequence[_Corner],
    factor: Register | None,
    place: tuple[Register, Register, Register, Register, Register, int],
) -> None:
    """Store one tap of a vector of places, in each channel of a group of offsets."""
    task, image, part, tap, j, width = place
    channels, kind = b.param(CHANNELS), corners[0][1].type.scalar
    shared, own = channels // b.param(OFFSET_GROUPS), channels // b.param(GROUPS)
    panels = (sizes.places + (width - 1)) // width
    with b.loop(part * shared, (part + 1) * shared) as channel:
        x = b.buffer(X, kind).at((image * channels + channel) * sizes.plane)
        total: Register | None = None
        for offset, weight in corners:
            term = b.select(weight.ne(0.0), x.gather(offset), 0.0) * weight
            total = term if total is None else total + term
        assert total is not None, "there are neighbours along an axis"
        total = total if factor is None else total * factor
        matrix = channel // own * (b.param(IMAGES) * panels) + task
        row = channel % own * sizes.taps + tap
        b.buffer(PANELS, kind).store(total, (matrix * (own * sizes.taps) + row) * width + j, b.lanes(kind))
