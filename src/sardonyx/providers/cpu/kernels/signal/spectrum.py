"""Fourier transforms: DFT and STFT."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, F64, Type
from sardonyx.codegen.float_words import float_word
from sardonyx.codegen.kernels.signal.fourier import (
    MOST_FACTOR,
    TURNS_BLOCK,
    Lines,
    write_chirp_filter,
    write_fourier,
    write_turns,
)
from sardonyx.codegen.target import Target
from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Dim, Node, Shape, Value
from sardonyx.ir.shape import maximum
from sardonyx.ops.views.signal import Dft
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import constant_of, given, open_or_wrong, shape_of
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer, Plan

_KINDS = {DataType.FLOAT: F32, DataType.DOUBLE: F64}
_TASKS_PER_THREAD = 4
_TASK_ELEMENTS = 1 << 14
_SIDE_ELEMENTS = 1 << 16
"""The most elements of lines that lie side by side."""
_SHORT = 32
"""Up to this length lines are put side by side even where their elements are adjacent."""
_LONG, _PIECES, _MOST_ROUNDS = 1 << 18, 24, 8
"""From this length of the stages on a line is transformed by so many steps: a run can only be ended between tasks. Lines of one
binding that are so long are cut as far as they make so many rounds of the tasks that run at a time."""
_MOST_LENGTH = 1 << 28
"""Offsets in a transform are numbers of 32 bits."""


@functools.lru_cache(maxsize=256)
def _stages(length: int) -> tuple[int, tuple[int, ...]]:
    """Return the length that stages transform, the same or one for a chirp, and its factors."""
    found = _factors(length)
    if found is not None:
        return length, found
    padded = min(_power_from(-(-(2 * length - 1) // odd)) * odd for odd in (1, 3, 5))
    return padded, _factors(padded) or ()


def _power_from(least: int) -> int:
    return 1 << (least - 1).bit_length()


def _factors(length: int) -> tuple[int, ...] | None:
    """Return factors of which stages are made; None if there is a large prime among them."""
    found = []
    for factor in (4, 2, 3, 5, *range(7, MOST_FACTOR + 1, 2)):
        while length % factor == 0:
            found.append(factor)
            length //= factor
    return tuple(found) if length == 1 else None


@dataclasses.dataclass(frozen=True, slots=True)
class TurnsKernel:
    """Roots of unity, or a chirp."""

    dtype: DataType
    """The type of elements."""
    squared: bool
    """Whether it is a chirp."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"turns_{'squared_' if self.squared else ''}{self.dtype}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_turns(module, symbol, _kind(self.dtype), squared=self.squared)


@dataclasses.dataclass(frozen=True, slots=True)
class ChirpFilterKernel:
    """The transform of a chirp."""

    dtype: DataType
    """The type of elements."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"chirp_filter_{self.dtype}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_chirp_filter(module, symbol, _kind(self.dtype))


@dataclasses.dataclass(frozen=True, slots=True)
class FourierKernel:
    """Transforms of lines."""

    dtype: DataType
    """The type of elements."""
    lines: Lines
    """What lines are read and stored as."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"fourier_{self.lines.key}_{self.dtype}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_fourier(module, symbol, _kind(self.dtype), self.lines)


def _kind(dtype: DataType) -> Type:
    return _KINDS[dtype]


@dataclasses.dataclass(frozen=True, slots=True)
class Geometry:
    """Where lines of one binding lie, as `codegen.kernels.signal.fourier` has it."""

    length: int
    """How long the transform is."""
    given: int
    """How many elements of a line there are in x."""
    lines: int
    """How many lines there are."""
    group: int
    """How many of them in a group."""
    source: tuple[int, int, int]
    """From one group, line and element of x to the next."""
    target: tuple[int, int, int]
    """From one group, line and bin of y to the next."""
    bins: int
    """How many bins are stored."""
    is_scattered: bool
    """Whether elements of a line lie apart."""


def _lower(
    low: Lowering,
    group: Group,
    buffers: tuple[Buffer, Buffer, Buffer | None],
    spec: Lines,
    length: Dim,
    find: Callable[[Sizes], Geometry],
) -> None:
    """Add the steps of transforms of `length` elements, whose lines `find` finds."""
    x, result, window = buffers
    dtype, lanes = x.dtype, low.target.lanes(_kind(x.dtype).bits)
    together = 1 if low.threads == 1 else _TASKS_PER_THREAD * low.threads
    table = low.temporary(dtype, (_table_elements(length),))
    work = low.temporary(dtype, (together, _work_elements(length)))

    def words_of(found: Geometry, side: int, first_task: int, turns: tuple[int, int]) -> list[int]:
        padded, factors = _stages(found.length)
        sets = -(-_TASK_ELEMENTS // (padded * side))
        is_chirped = int(padded != found.length)
        scale = float_word(1 / found.length)
        lines = [found.given, found.lines, found.group, *found.source, *found.target, found.bins]
        return [padded, side, found.length, *lines, together, sets, scale, is_chirped, first_task, *turns, len(factors), *factors]

    def plan_roots(sizes: Sizes) -> tuple[list[int], int]:
        padded, _ = _stages(_checked(sizes(length)))
        return [padded, padded, 0], -(-padded // TURNS_BLOCK)

    def plan_chirp(sizes: Sizes) -> tuple[list[int], int]:
        padded, _ = _stages(sizes(length))
        return [sizes(length), 2 * sizes(length), 2 * padded], 0 if padded == sizes(length) else -(-sizes(length) // TURNS_BLOCK)

    def plan_filter(piece: int) -> Plan:
        def plan(sizes: Sizes) -> tuple[list[int], int]:
            found = find(sizes)
            padded, factors = _stages(found.length)
            turns = _turns_of(len(factors), piece, is_cut=padded >= _LONG)
            return words_of(found, 1, 0, turns), int(padded != found.length and turns[0] < turns[1])

        return plan

    def plan_lines(turn: int, piece: int) -> Plan:
        def plan(sizes: Sizes) -> tuple[list[int], int]:
            found = find(sizes)
            padded, factors = _stages(found.length)
            wide = found.lines >= lanes and (found.is_scattered or found.length <= _SHORT) and padded * lanes <= _SIDE_ELEMENTS
            side = lanes if wide else 1
            sets = -(-_TASK_ELEMENTS // (padded * side))
            tasks = -(-found.lines // (side * sets))
            is_cut = padded >= _LONG and tasks <= rounds * together
            first = turn * together if is_cut else 0
            turns = _turns_of(len(factors) * (1 + int(padded != found.length)), piece, is_cut=is_cut)
            mine = max(min(tasks - first, together), 0) if is_cut else tasks * int(turn == 0)
            return words_of(found, side, first, turns), mine if turns[0] < turns[1] else 0

        return plan

    pieces = _PIECES if not isinstance(length, int) or _stages(max(length, 1))[0] >= _LONG else 1
    rounds = 1 if pieces == 1 or not _may_be_made(length) else _rounds(x.shape, find, together)
    low.step(group, low.kernel(TurnsKernel(dtype, squared=False)), [table], writes=[0], plan=plan_roots)
    if _may_be_chirped(length):
        low.step(group, low.kernel(TurnsKernel(dtype, squared=True)), [table], writes=[0], plan=plan_chirp)
        for place in range(pieces):
            low.step(group, low.kernel(ChirpFilterKernel(dtype)), [table, work], writes=[0, 1], plan=plan_filter(place))
    every = [x, table, work, result, *([] if window is None else [window])]
    symbol = low.kernel(FourierKernel(dtype, spec))
    for turn, piece in itertools.product(range(rounds), range(pieces)):
        low.step(group, symbol, every, writes=[3, 2], plan=plan_lines(turn, piece), together=together)


def _rounds(shape: Shape, find: Callable[[Sizes], Geometry], together: int) -> int:
    """Return in how many rounds of so many tasks long lines are transformed piece by piece, where there are not too many."""
    if not all(isinstance(dim, int) for dim in shape):
        return 1
    return min(-(-find(Sizes({})).lines // together), _MOST_ROUNDS)


def _turns_of(count: int, piece: int, *, is_cut: bool) -> tuple[int, int]:
    """Return the first of `count` turns that a piece makes, and the one behind its last; the first makes all if nothing is cut."""
    if not is_cut:
        return (0, count + 1) if piece == 0 else (0, 0)
    each = -(-count // _PIECES)
    return piece * each, min((piece + 1) * each, count)


def _may_be_made(length: Dim) -> bool:
    """Say whether a transform can have such a length; a run of one that cannot is an error, a model that never runs it is none."""
    return not isinstance(length, int) or 1 <= length <= _MOST_LENGTH


def _checked(length: int) -> int:
    if not _may_be_made(length):
        raise InvalidArgument(f"dft_length = {length}, expected 1 to {_MOST_LENGTH} elements")
    return length


def _may_be_chirped(length: Dim) -> bool:
    return not isinstance(length, int) or length < 1 or _stages(length)[0] != length


def _table_elements(length: Dim) -> Dim:
    """Return how many elements the table of `codegen.kernels.signal.fourier` has at most."""
    if not isinstance(length, int):
        return length * 18
    padded, _ = _stages(max(length, 1))
    return 2 * padded if padded == length else 4 * padded + 2 * length


def _work_elements(length: Dim) -> Dim:
    """Return how many elements the planes of one task have at most."""
    longest = length * 4 if not isinstance(length, int) else _stages(max(length, 1))[0]
    return maximum(longest, _SIDE_ELEMENTS) * 4


@dataclasses.dataclass(frozen=True, slots=True)
class DftSpec:
    """A DFT."""

    axis: int
    """Along which axis."""
    length: Dim
    """How long the transform is."""
    lines: Lines
    """What lines are read and stored as."""


def claim_dft(node: Node) -> DftSpec | str:
    """Return what a DFT computes, or why it cannot be compiled."""
    x, view = given(node.inputs[0]), Dft.of(node)
    shape = shape_of(x)
    if x.dtype not in _KINDS:
        return f"elements of type {x.dtype}"
    if view.axis is None:
        return "its axis is computed"
    if shape[-1] not in (1, 2):
        return f"that the last dimension has a real part, or an imaginary one too, {open_or_wrong(shape)}"
    is_complex = shape[-1] == 2
    if view.onesided and not view.inverse and is_complex:
        return "half of the bins of a complex signal"
    length = _length_of(node.input(1), view, shape[view.axis], shape_of(node.output)[view.axis])
    if isinstance(length, str):
        return length
    return DftSpec(view.axis, length, Lines(is_complex, view.inverse, view.onesided and view.inverse, windowed=False))


def _length_of(wanted: Value | None, view: Dft, given_length: Dim, stored: Dim) -> Dim | str:
    """Return how long a transform is, or why that is not known."""
    if wanted is None:
        return (given_length - 1) * 2 if view.onesided and view.inverse else given_length
    number = constant_of(wanted)
    if number is None:
        return "its length is computed, and half of the bins stored" if view.onesided and not view.inverse else stored
    return f"a length of {number.size} numbers" if number.size != 1 else int(number.reshape(()))


@lowers("DFT", claim=claim_dft)
def dft(low: Lowering, group: Group, spec: DftSpec) -> None:
    """Transform along an axis, whatever lies around it."""
    x, result, axis = low.of(group.node.inputs[0]), low.result(group.node.output), spec.axis
    parts, kept = 2 if spec.lines.is_complex else 1, 1 if spec.lines.mirrored else 2

    def find(sizes: Sizes) -> Geometry:
        length, there, bins = _checked(sizes(spec.length)), sizes(x.shape[axis]), sizes(result.shape[axis])
        inner = sizes.product(x.shape[axis + 1 : -1])
        return Geometry(
            length,
            min(there, length // 2 + 1 if spec.lines.mirrored else length),
            sizes.product(x.shape[:axis]) * inner,
            inner,
            (there * inner * parts, parts, inner * parts),
            (bins * inner * kept, kept, inner * kept),
            bins,
            inner > 1,
        )

    _lower(low, group, (x, result, None), spec.lines, spec.length, find)


@dataclasses.dataclass(frozen=True, slots=True)
class StftSpec:
    """An STFT."""

    step: int
    """From one frame to the next."""
    length: Dim
    """How long a frame is."""
    lines: Lines
    """What frames are read and stored as."""


def claim_stft(node: Node) -> StftSpec | str:
    """Return what an STFT computes, or why it cannot be compiled."""
    signal, window, wanted = given(node.inputs[0]), node.input(2), node.input(3)
    shape, step, length = shape_of(signal), constant_of(node.inputs[1]), constant_of(wanted)
    if signal.dtype not in _KINDS or (window is not None and window.dtype is not signal.dtype):
        return f"a signal of type {signal.dtype}, or a window of another one"
    if len(shape) not in (2, 3) or (len(shape) == 3 and shape[2] not in (1, 2)):
        return f"that a signal is (N, T, 1) or (N, T, 2) {open_or_wrong(shape)}"
    if window is not None and len(shape_of(window)) != 1:
        return f"a window of {len(shape_of(window))} dimensions"
    if step is None or step.size != 1 or step.reshape(()) < 1:
        return "no frame_step that is a constant above 0"
    if wanted is not None and (length is None or length.size != 1):
        return "a frame_length that is computed"
    size = shape[1] if window is None else shape_of(window)[0]
    lines = Lines(len(shape) == 3 and shape[2] == 2, inverse=False, mirrored=False, windowed=window is not None)
    return StftSpec(int(step.reshape(())), size if length is None else int(length.reshape(())), lines)


@lowers("STFT", claim=claim_stft, inputs=2)
def stft(low: Lowering, group: Group, spec: StftSpec) -> None:
    """Transform frame after frame, the window applied as they are read."""
    node = group.node
    x, result = low.of(node.inputs[0]), low.result(node.output)
    window = low.of(node.inputs[2]) if spec.lines.windowed else None
    parts = 2 if spec.lines.is_complex else 1

    def find(sizes: Sizes) -> Geometry:
        length, there = sizes(spec.length), sizes(x.shape[1])
        if not 1 <= length <= min(there, _MOST_LENGTH):
            raise InvalidArgument(f"frame_length = {length}; expected 1 to {there} elements, the signal's length")
        if window is not None and sizes.shape(window.shape) != (length,):
            raise InvalidArgument(f"window has shape {sizes.shape(window.shape)} and frame_length is {length}; expected one length")
        frames, bins = sizes(result.shape[1]), sizes(result.shape[2])
        return Geometry(
            length,
            length,
            sizes(x.shape[0]) * frames,
            frames,
            (there * parts, spec.step * parts, parts),
            (frames * bins * 2, bins * 2, 2),
            bins,
            is_scattered=False,
        )

    _lower(low, group, (x, result, window), spec.lines, spec.length, find)
