"""Places of an output as rows of a product: where each begins in the input and the output, and its address tap by tap.

A task puts its places down in a table, column by column; tiles take as many as they compute at a time.
"""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.codegen.emit.builder import Variable
from sardonyx.codegen.emit.module import Kernel
from sardonyx.codegen.emit.types import BOOL, I64, PTR, U64
from sardonyx.codegen.emit.values import Pointer, Register
from sardonyx.codegen.emit.window import AxisValues
from sardonyx.lazy_dataclasses import dataclass

__all__ = ["BLOCK_ROWS", "MOST_ROWS", "Rows", "Steps", "fill_table", "result_of", "row_table"]

BLOCK_ROWS = 480
"""Most rows of one task, whose addresses it keeps in a table: a multiple of every tile's height."""

MOST_ROWS = 8
"""Rows whose addresses are computed at a time: no tile is higher."""

_TABLE_ROWS = BLOCK_ROWS + MOST_ROWS
_FROM, _TO, _FIRST_COORDINATE = range(3)
"""Columns of the table: where a row begins in the input and in the output, then where it begins along each axis."""


@dataclass(frozen=True, slots=True)
class Steps:
    """How far images and groups lie apart."""

    image: Register
    group: Register
    """From one group's input channels to the next group's."""
    out_image: Register
    out_group: Register
    out_begin: Register
    """Where the first place lies in the output."""


def row_table(b: Kernel, rank: int) -> Pointer:
    """Return memory for the table of one task."""
    return b.stack(I64, (2 + rank) * _TABLE_ROWS, align=64)


def result_of(table: Pointer, row: Register | int) -> Register:
    """Return where a row of the table begins in the output."""
    return table.load(row + _TO * _TABLE_ROWS)


def fill_table(
    b: Kernel, table: Pointer, steps: Steps, axes: Sequence[AxisValues], top: Register, bottom: Register, group: Register
) -> None:
    """Put down for each row of the task where it begins; places are counted, not divided."""
    rest = top
    starts: list[Register] = []
    for axis in reversed(axes):
        starts.insert(0, rest % axis["places"])
        rest = rest // axis["places"]
    image, places = b.variable(rest), [b.variable(start) for start in starts]
    with b.loop(top, bottom) as row:
        at = row - top
        source = image.value * steps.image + group * steps.group
        result = image.value * steps.out_image + group * steps.out_group + steps.out_begin
        for number, (axis, place) in enumerate(zip(axes, places, strict=True)):
            coordinate = place.value * axis["stride"] - axis["begin"]
            table.store(coordinate, at + (_FIRST_COORDINATE + number) * _TABLE_ROWS)
            source, result = source + coordinate * axis["in_step"], result + place.value * axis["out_step"]
        table.store(source, at + _FROM * _TABLE_ROWS)
        table.store(result, at + _TO * _TABLE_ROWS)
        _count(b, [*reversed(places), image], [axis["places"] for axis in reversed(axes)])


def _count(b: Kernel, digits: Sequence[Variable], limits: Sequence[Register]) -> None:
    """Count up a number whose digits, lowest first, run up to `limits`; the last has none."""
    carry = b.const(BOOL, True)
    for digit, limit in zip(digits, limits, strict=False):
        following = digit.value + b.select(carry, b.const(I64, 1), 0)
        full = following.eq(limit)
        digit.set(b.select(full, b.const(I64, 0), following))
        carry = carry & full
    if len(digits) > len(limits):
        digits[-1].add(b.select(carry, b.const(I64, 1), 0))


class Rows:
    """The addresses of a tile's rows, run by run."""

    def __init__(
        self, b: Kernel, table: Pointer, height: int, axes: Sequence[AxisValues], source: Pointer, zeros: Pointer | None
    ) -> None:
        """Take the first `height` rows of a table; those that fall into the padding are led to `zeros`, if there may be any."""
        self._b = b
        self._height = height
        self._axes = axes
        self._input = source
        self._zeros = zeros
        if zeros is not None:
            self._starts = table.load(_FROM * _TABLE_ROWS, MOST_ROWS)
            self._coordinates = [table.load((_FIRST_COORDINATE + axis) * _TABLE_ROWS, MOST_ROWS) for axis in range(len(axes))]
        else:
            self._pointers = [self._input.at(table.load(_FROM * _TABLE_ROWS + row)) for row in range(height)]

    def at(self, run: Register, k: Register) -> list[Pointer]:
        """Return each row's address at element `k` of a run."""
        taps = self._taps(run)
        steps = [tap * axis["dilation"] for tap, axis in zip(taps, self._axes, strict=True)]
        offset = k
        for step, axis in zip(steps, self._axes, strict=True):
            offset = offset + step * axis["in_step"]
        if self._zeros is None:
            return [pointer.at(offset) for pointer in self._pointers]
        return self._checked(steps, offset, self._zeros)

    def _taps(self, run: Register) -> list[Register]:
        taps: list[Register] = []
        rest = run
        for axis in reversed(self._axes[1:]):
            taps.insert(0, rest % axis["taps"])
            rest = rest // axis["taps"]
        return [rest, *taps]

    def _checked(self, steps: Sequence[Register], offset: Register, zeros: Pointer) -> list[Pointer]:
        """Return the addresses of the rows; rows outside of the input lead to the zeros."""
        b = self._b
        inside = b.const(BOOL.vector(MOST_ROWS), True)
        for step, coordinates, axis in zip(steps, self._coordinates, self._axes, strict=True):
            inside = inside & ((coordinates + step).to(U64) < axis["size"].to(U64))
        addresses = (self._starts + offset) * self._input.element.size_bytes + self._input.to(I64)
        chosen = b.select(inside, addresses, zeros.to(I64).splat(MOST_ROWS))
        return [Pointer(b, chosen.lane(row).to(PTR).ref, self._input.element) for row in range(self._height)]
