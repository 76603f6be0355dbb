"""Sample images at given positions; ONNX GridSample.

For a block of positions the neighbours along each axis and their weights are found once; then every channel is sampled there, a
vector of positions at a time:

    y[n, c, p] = sum over neighbours i of axis 0, j of axis 1, …:  w0[i, p] * w1[j, p] * … * x[n, c, at0[i, p] + at1[j, p] + …]

A position from -1 to 1 is counted in elements; NaN counts as 0, and what lies beyond 2^40 elements as 2^40. An index beyond an axis
is 0 with the weight 0, moved to the border, or reflected; so no element outside is read. An element of weight 0 counts for nothing,
even if it is not finite.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import F32, F64, I32, I64, Type
from sardonyx.codegen.emit.values import Pointer, Register, Span

__all__ = ["BLOCK", "MODES", "PADDINGS", "Sampling", "write_grid_sample"]

X, GRID, Y = range(3)
"""The buffers of the kernel."""
MODES = {"nearest": 1, "linear": 2, "cubic": 4}
"""Name -> neighbours along an axis."""
PADDINGS = ("border", "reflection", "zeros")
BLOCK = 64
"""Positions in one task."""
_FARTHEST = float(1 << 40)
_CUBIC = -0.75


@dataclasses.dataclass(frozen=True, slots=True)
class Sampling:
    """How images are sampled."""

    mode: str
    """A name in MODES."""
    padding: str
    """A name in PADDINGS."""
    align_corners: bool
    """Whether -1 and 1 are the centres of the outer elements, or their edges."""
    rank: int
    """How many spatial axes there are."""
    kind: Type = F32
    """The type of elements, of positions and of what is computed between: F32 or F64."""

    @property
    def key(self) -> str:
        """A name that no other way has."""
        ends = "corners" if self.align_corners else "edges"
        return f"{self.mode}_{self.padding}_{ends}_{self.rank}_{self.kind}"


@dataclasses.dataclass(frozen=True, slots=True)
class _Taps:
    """The neighbours along one axis: for each BLOCK offsets in elements, and as many weights."""

    offsets: Pointer
    weights: Pointer


def write_grid_sample(module: Module, symbol: str, sampling: Sampling) -> None:
    """Write the kernel `symbol`; a task is a block of positions of an image.

    Parameters: positions of an image, channels, elements of a channel, then size and stride of each axis.
    """
    with module.kernel(symbol) as b:
        positions, channels, plane = (b.param(place) for place in range(3))
        blocks = (positions + (BLOCK - 1)) // BLOCK
        count, kind = MODES[sampling.mode] * BLOCK, sampling.kind
        taps = [_Taps(b.stack(I32, count, align=64), b.stack(kind, count, align=64)) for _ in range(sampling.rank)]
        with b.loop(b.begin, b.end) as task:
            image, first = task // blocks, task % blocks * BLOCK
            length = b.min(positions - first, BLOCK)
            grid = b.buffer(GRID, kind).at((image * positions + first) * sampling.rank)
            for axis, found in enumerate(taps):
                _find_taps(b, sampling, axis, grid, length, found)
            with b.loop(0, channels) as channel:
                row = image * channels + channel
                x, y = b.buffer(X, kind).at(row * plane), b.buffer(Y, kind).at(row * positions + first)
                for i, span in b.vectors(0, length, kind):
                    y.store(_sampled(b, x, taps, MODES[sampling.mode], i, span), i, span)


def _sampled(b: Function, x: Pointer, taps: Sequence[_Taps], count: int, i: Register, span: Span) -> Register:
    loaded = [
        [(axis.offsets.load(i + BLOCK * tap, span.lanes), axis.weights.load(i + BLOCK * tap, span.lanes)) for tap in range(count)]
        for axis in taps
    ]
    total: Register | None = None
    for neighbours in itertools.product(*loaded):
        offset, weight = neighbours[0]
        for more, factor in neighbours[1:]:
            offset, weight = offset + more, weight * factor
        element = b.select(weight.ne(0.0), _gathered(x, offset, span), 0.0)
        term = element if count == 1 else element * weight
        total = term if total is None else total + term
    assert total is not None, "an axis has neighbours"
    return total


def _gathered(x: Pointer, offset: Register, span: Span) -> Register:
    return x.load(offset) if span.lanes == 1 else x.gather(offset, span.mask)


def _find_taps(b: Kernel, sampling: Sampling, axis: int, grid: Pointer, length: Register, taps: _Taps) -> None:
    """Store the neighbours of a block of positions along an axis; the grid has the innermost axis first."""
    size, stride = b.param(3 + 2 * axis), b.param(4 + 2 * axis)
    column = sampling.rank - 1 - axis
    for i, span in b.vectors(0, length, sampling.kind):
        place = (b.iota(I32, span.lanes) + i.to(I32).splat(span.lanes)) * sampling.rank + column
        at = _element_position(b, _gathered(grid, place, span), size.to(sampling.kind), align_corners=sampling.align_corners)
        for tap, (index, weight) in enumerate(_neighbours(b, sampling.mode, at)):
            inner, kept = _padded(b, sampling, index, weight, size.splat(span.lanes))
            taps.offsets.store((inner * stride).to(I32), i + BLOCK * tap, Span(span.lanes))
            taps.weights.store(kept, i + BLOCK * tap, Span(span.lanes))


def _element_position(b: Function, position: Register, size: Register, *, align_corners: bool) -> Register:
    at = (position + 1.0) / 2.0 * (size - 1.0) if align_corners else ((position + 1.0) * size - 1.0) / 2.0
    at = b.select(b.is_nan(at), 0.0, at)
    return b.max(b.min(at, _FARTHEST), -_FARTHEST)


def _neighbours(b: Function, mode: str, at: Register) -> list[tuple[Register, Register]]:
    """Return the indices of the neighbours, as int64, and their weights."""
    if mode == "nearest":
        return [(b.round_even(at).to(I64), at.like(1.0))]
    index = at.to(I64)
    index = b.select(index.to(at.type.scalar) > at, index - 1, index)
    t = at - index.to(at.type.scalar)
    if mode == "linear":
        return [(index, 1.0 - t), (index + 1, t)]
    near = [((_CUBIC + 2) * d - (_CUBIC + 3)) * d * d + 1.0 for d in (t, 1.0 - t)]
    far = [((d - 5.0) * d + 8.0) * d * _CUBIC - 4 * _CUBIC for d in (t + 1.0, 2.0 - t)]
    return [(index - 1, far[0]), (index, near[0]), (index + 1, near[1]), (index + 2, far[1])]


def _padded(b: Function, sampling: Sampling, index: Register, weight: Register, size: Register) -> tuple[Register, Register]:
    """Return an index inside the axis, and its weight."""
    if sampling.padding == "zeros":
        inside = (index >= 0) & (index < size)
        return b.select(inside, index, 0), b.select(inside, weight, 0.0)
    if sampling.padding == "border":
        return b.max(b.min(index, size - 1), 0), weight
    period = b.max((size - 1) * 2, 1) if sampling.align_corners else size * 2
    around = _modulo(b, index, period)
    mirrored = period - around - (0 if sampling.align_corners else 1)
    return b.select(around < size, around, mirrored), weight


def _modulo(b: Function, index: Register, period: Register) -> Register:
    """Return the index modulo the period, not negative: doubles divide exactly enough up to 2^41, and in vectors."""
    quotient = (index.to(F64) / period.to(F64)).to(I64)
    rest = index - quotient * period
    return b.select(rest < 0, rest + period, rest)
