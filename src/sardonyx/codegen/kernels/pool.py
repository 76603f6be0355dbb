"""Pooling over channels-last data: the greatest element, the sum, the mean or a norm of each window, vectors along the channels.

A window is gone through tap by tap, those in the padding left out, for several vectors of channels at a time. A fold is one chain
in the order of taps, for every element by itself: no block, thread or position changes bits. What is folded of an element, and what
is stored of the result, may be expressions: integers of 8 bits are averaged as the floats that they stand for, and stored as such
integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack

from sardonyx.codegen.emit.builder import Function, Variable
from sardonyx.codegen.emit.expr import ElementExpr, argument
from sardonyx.codegen.emit.expr_llvm import write_expressions
from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import F32, Kind, Type
from sardonyx.codegen.emit.values import Pointer, Register, Span
from sardonyx.codegen.emit.window import AXIS_WORDS, AxisValues, WindowAxis, axis_words, blocks, least, read_axes, taps_inside
from sardonyx.lazy_dataclasses import dataclass

__all__ = ["FLOATS", "FOLDS", "Fold", "PoolParams", "PoolTypes", "fold_of", "write_pool"]

_X = argument(0, F32)

INPUT, OUTPUT = range(2)
"""The buffers of the kernel."""

WIDE = 4
"""Vectors of channels that go at a time."""

TASKS_PER_THREAD = 4

_LEAST_LANES = 4
"""Of a part of a vector; fewer channels go one by one."""

_MOST_ELEMENTS = 1 << 26
"""Elements of the windows of one task at most: a run can only be ended between tasks."""


@dataclass(frozen=True, slots=True)
class PoolParams:
    """The integer parameters of the kernel, in their order; then those of each axis, then its declared end."""

    images: int
    channels: int
    block_rows: int
    """Rows of places in one task, counted through all images and outer axes."""
    block_places: int
    """Places of a row in one task."""
    axes: tuple[WindowAxis, ...]
    ends: tuple[int, ...]
    """Padding after the last element of each axis, as declared: a window may hang over it, but what it counts does not."""

    @staticmethod
    def blocked(images: int, channels: int, axes: Sequence[WindowAxis], ends: Sequence[int], *, threads: int = 1) -> PoolParams:
        """Return the parameters with blocks that suit `threads`."""
        rows = images * math.prod(axis.places for axis in axes[:-1])
        wanted = TASKS_PER_THREAD * threads if threads > 1 else 1
        pieces = -(-wanted // max(rows, 1))
        most = _MOST_ELEMENTS // max(channels * axes[-1].places * math.prod(axis.taps for axis in axes), 1)
        return PoolParams(
            images=images,
            channels=channels,
            block_rows=max(min(-(-rows // wanted), most), 1),
            block_places=max(-(-axes[-1].places // pieces), 1),
            axes=tuple(axes),
            ends=tuple(ends),
        )

    def words(self) -> list[int]:
        """Return the parameters as the kernel reads them."""
        return [getattr(self, name) for name in _PARAMS] + axis_words(self.axes) + list(self.ends)

    def tasks(self) -> int:
        """Return how many tasks the pooling is."""
        rows = self.images * math.prod(axis.places for axis in self.axes[:-1])
        return -(-rows // self.block_rows) * -(-self.axes[-1].places // self.block_places)


_PARAMS = tuple(PoolParams.__dataclass_fields__)[:-2]


@dataclass(frozen=True, slots=True)
class Fold:
    """How the elements of a window become one number."""

    begin: tuple[float, ...]
    """What its variables hold before the first element."""
    step: Callable[[Function, Sequence[Variable], Register], None]
    """Take one element up."""
    end: Callable[[Function, Sequence[Register], Register], Register]
    """The result, of the variables and of how many elements count."""


def _take_greatest(b: Function, state: Sequence[Variable], x: Register) -> None:
    """Take the greatest, with NaN kept apart so that the chain of comparisons stays short."""
    greatest, missing = state
    greatest.set(b.max(x, greatest.value))
    missing.set(b.select(b.is_nan(x), x, missing.value))


def _give_greatest(b: Function, state: Sequence[Register], count: Register) -> Register:
    greatest, missing = state
    return b.select(b.is_nan(missing), missing, greatest)


def _add(part: Callable[[Function, Register], Register]) -> Callable[[Function, Sequence[Variable], Register], None]:
    def step(b: Function, state: Sequence[Variable], x: Register) -> None:
        state[0].add(part(b, x))

    return step


def _give_mean(b: Function, state: Sequence[Register], count: Register) -> Register:
    return state[0] / count.to(F32)


def _give_first(b: Function, state: Sequence[Register], count: Register) -> Register:
    return state[0]


def _take_greatest_integer(b: Function, state: Sequence[Variable], x: Register) -> None:
    state[0].set(b.max(x, state[0].value))


def fold_of(name: str, kind: Type) -> Fold:
    """Return a fold of FOLDS for elements of a type; integers have no NaN, and a least number that is no infinity."""
    if name != "max" or kind.is_float:
        return FOLDS[name]
    least_integer = -(1 << (kind.bits - 1)) if kind.kind is Kind.SIGNED else 0
    return Fold((least_integer,), _take_greatest_integer, _give_first)


FOLDS: Mapping[str, Fold] = {
    "max": Fold((-math.inf, 0.0), _take_greatest, _give_greatest),
    "mean": Fold((0.0,), _add(lambda b, x: x), _give_mean),
    "norm1": Fold((0.0,), _add(lambda b, x: b.abs(x)), _give_first),
    "norm2": Fold((0.0,), _add(lambda b, x: x * x), lambda b, state, count: b.sqrt(state[0])),
    "sum": Fold((0.0,), _add(lambda b, x: x), _give_first),
}
"""How a window is folded; NaN in it gives NaN."""


@dataclass(frozen=True, slots=True)
class PoolTypes:
    """What is folded of the elements that are read, and what is stored."""

    read: Type = F32
    """The type of the elements in memory."""
    before: ElementExpr = _X
    """What is folded, of argument 0, an element."""
    after: ElementExpr = _X
    """What is stored, of argument 0, the result of the fold, and argument 1, how many elements count, as a float."""


FLOATS = PoolTypes()
"""Elements of float32, of which the result of the fold is stored."""


def write_pool(
    module: Module,
    symbol: str,
    fold: str,
    rank: int,
    *,
    dilated: bool,
    counts_padding: bool = False,
    types: PoolTypes = FLOATS,
) -> None:
    """Write the kernel `symbol`: buffers input and output, params as in PoolParams.

    Args:
        module: where to write.
        symbol: the name of the kernel.
        fold: a name in FOLDS.
        rank: the number of spatial axes.
        dilated: whether taps may lie apart.
        counts_padding: whether elements of the declared padding count for a mean.
        types: what is folded of the elements, and what is stored.
    """
    kinds = {types.read, types.before.type, types.after.type}
    lanes = module.target.lanes(types.read.bits if len(kinds) == 1 else 32)
    with module.kernel(symbol) as b:
        p = {name: b.param(place) for place, name in enumerate(_PARAMS)}
        axes = read_axes(b, len(_PARAMS), rank)
        ends = [b.param(len(_PARAMS) + rank * AXIS_WORDS + axis) for axis in range(rank)]
        rows = p["images"]
        for axis in axes[:-1]:
            rows = rows * axis["places"]
        columns = blocks(axes[-1]["places"], p["block_places"])
        with b.loop(b.begin, b.end) as task:
            first, left = task // columns * p["block_rows"], task % columns * p["block_places"]
            right = least(b, left + p["block_places"], axes[-1]["places"])
            with b.loop(first, least(b, first + p["block_rows"], rows)) as row, b.loop(left, right) as place:
                window = _place_window(b, axes, ends, row, place, dilated=dilated, counts_padding=counts_padding)
                for c, vectors, span in _channels(b, p["channels"], lanes):
                    _fold_window(b, fold_of(fold, types.before.type), window, axes, types, c, [span] * vectors)


@dataclass(frozen=True, slots=True)
class _WindowValues:
    """One window: where it begins in the input and the output, the taps of each axis that it has there, and how many count."""

    source: Register
    result: Register
    taps: Sequence[Register]
    count: Register


def _place_window(
    b: Kernel,
    axes: Sequence[AxisValues],
    ends: Sequence[Register],
    row: Register,
    place: Register,
    *,
    dilated: bool,
    counts_padding: bool,
) -> _WindowValues:
    places, rest = [place], row
    for axis in reversed(axes[:-1]):
        places.insert(0, rest % axis["places"])
        rest = rest // axis["places"]
    source, result = rest * (axes[0]["size"] * axes[0]["in_step"]), rest * (axes[0]["places"] * axes[0]["out_step"])
    taps: list[Register] = []
    count = place.like(1)
    for axis, end, at in zip(axes, ends, places, strict=True):
        first, last, start = taps_inside(b, at, axis, dilated=dilated)
        source, result = source + start * axis["in_step"], result + at * axis["out_step"]
        taps.append(last - first)
        if counts_padding:
            room = axis["size"] + end - (at * axis["stride"] - axis["begin"])
            count = count * least(b, axis["taps"], b.max(blocks(room, axis["dilation"]), room.like(0)))
        else:
            count = count * (last - first)
    return _WindowValues(source, result, taps, count)


def _channels(b: Kernel, channels: Register, lanes: int) -> Iterator[tuple[Register, int, Span]]:
    """Yield several vectors at a time, then one; the last under a mask, or where masks are not free by halves of it."""
    wide = lanes * WIDE
    whole_wide, whole = channels // wide * wide, channels // lanes * lanes
    with b.loop(0, whole_wide, wide) as c:
        yield c, WIDE, Span(lanes)
    with b.loop(whole_wide, whole, lanes) as c:
        yield c, 1, Span(lanes)
    if b.target.has_masks:
        with b.when(whole < channels):
            yield whole, 1, Span(lanes, b.tail_mask(channels - whole, lanes))
        return
    first = whole
    for part in (lanes // 2, lanes // 4, 1):
        if part >= _LEAST_LANES or part == 1:
            last = channels // part * part
            with b.loop(first, last, part) as c:
                yield c, 1, Span(part)
            first = last


def _fold_window(
    b: Kernel, fold: Fold, window: _WindowValues, axes: Sequence[AxisValues], types: PoolTypes, c: Register, spans: Sequence[Span]
) -> None:
    lanes, kind = spans[0].lanes, types.before.type
    states = [[b.variable(b.const(kind.vector(lanes), number)) for number in fold.begin] for _ in spans]
    with ExitStack() as loops:
        source: Pointer = b.buffer(INPUT, types.read).at(window.source + c)
        for axis, taps in zip(axes, window.taps, strict=True):
            tap = loops.enter_context(b.loop(0, taps))
            source = source.at(tap * (axis["dilation"] * axis["in_step"]))
        for vector, (state, span) in enumerate(zip(states, spans, strict=True)):
            fold.step(b, state, write_expressions(b, [types.before], [source.load(vector * lanes, span)])[0])
    result = b.buffer(OUTPUT, types.after.type).at(window.result + c)
    count = window.count.to(F32)
    for vector, (state, span) in enumerate(zip(states, spans, strict=True)):
        folded = fold.end(b, [variable.value for variable in state], window.count)
        result.store(write_expressions(b, [types.after], [folded, count])[0], vector * lanes, span)
