"""Filters of 8 bits that a run computes, packed as `dot_filters` packs constants, with the sum of each beside them.

filters (M, C, taps)  ->  bytes [group][panel][run][depth / 4][width][4], and sums (int32) [group][panel][width]

Words may be cut (`pairs`).

Groups that are computed together are one here; where a filter has no channel of its own lies what stands for 0 in it. Sums are
of its own channels only.
"""

from __future__ import annotations

from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import I8, I32, U8
from sardonyx.codegen.emit.values import Pointer, Register
from sardonyx.lazy_dataclasses import dataclass

__all__ = ["PackFiltersParams", "write_pack_filters"]


@dataclass(frozen=True, slots=True)
class PackFiltersParams:
    """The integer parameters of the kernel; a task is a panel."""

    columns: int
    """Filters of a group."""
    each: int
    """Filters of one of the groups that it is made of."""
    C: int
    """Channels of one of these."""
    channels: int
    """Channels of a group."""
    taps: int
    """Taps of a filter."""
    together: int
    """Taps of a run."""
    width: int
    """Columns of a panel."""
    spare: int = 0
    """Zeros behind the last panel."""
    groups: int = 1
    """How many groups there are."""

    def words(self) -> list[int]:
        """Return the parameters as the kernel reads them."""
        panels, depth = -(-self.columns // self.width), self.together * self.channels
        quads = self.taps // self.together * -(-depth // 4)
        filled, bytes_ = 0 if self.channels == self.C else self.channels, self.groups * panels * quads * 4 * self.width
        shape = [self.columns, self.each, self.C, self.channels, self.taps, self.together]
        return [*shape, panels, quads, -(-depth // 4), filled, bytes_, bytes_ + self.spare]

    def tasks(self) -> int:
        """Return the number of tasks."""
        return self.groups * -(-self.columns // self.width)


_COLUMNS, _EACH, _C, _CHANNELS, _TAPS, _TOGETHER, _PANELS, _QUADS, _RUN_QUADS, _FILLED, _BYTES, _END = range(12)


def write_pack_filters(module: Module, symbol: str, width: int, *, flips: bool, signed: bool, cut: int = 0) -> None:
    """Write the kernel `symbol`: buffers filters, what stands for 0 in each of M, as bytes that are packed, sums, and packed bytes.

    Parameters as PackFiltersParams.

    Args:
        module: where to write.
        symbol: the name of the kernel.
        width: columns of a panel.
        flips: whether the highest bit of each byte is turned.
        signed: whether the sums are of int8; of uint8 else.
        cut: how many words are cut together: the target's `cut_lanes`, or 0 for depthwise convolutions.
    """
    with module.kernel(symbol) as b, b.loop(b.begin, b.end) as task:
        sums, panel = b.buffer(2, I32).at(task * width), b.buffer(3, U8).at(task * b.param(_QUADS) * (4 * width))
        with b.loop(0, b.param(_QUADS) * (4 * width)) as place:
            panel.store(0, place)
        with b.loop(0, width) as place:
            sums.store(0, place)
        with b.when(task.eq(0)), b.loop(b.param(_BYTES), b.param(_END)) as place:
            b.buffer(3, U8).store(0, place)
        first = task % b.param(_PANELS) * width
        with b.loop(0, b.min(b.param(_COLUMNS) - first, width)) as column:
            row = task // b.param(_PANELS) * b.param(_COLUMNS) + first + column
            place, member = panel.at(_start(column, cut)), (first + column) // b.param(_EACH)
            total = _write_filter(b, place, row, member, width, flips=flips, signed=signed, cut=cut)
            sums.store(total, column)


def _write_filter(
    b: Kernel, panel: Pointer, row: Register, member: Register, width: int, *, flips: bool, signed: bool, cut: int
) -> Register:
    """Write the column of one filter, which is of the `member`-th group of those together; return the sum of what it has itself."""
    C, taps, run = b.param(_C), b.param(_TAPS), b.param(_TOGETHER)
    source, fill, total = b.buffer(0, U8).at(row * C * taps), b.buffer(1, U8).load(row), b.variable(b.const(I32, 0))
    with b.loop(0, taps) as tap:
        part, first = panel.at(tap // run * b.param(_RUN_QUADS) * (4 * width)), tap % run * b.param(_CHANNELS)
        with b.loop(0, b.param(_FILLED)) as channel:
            part.store(fill, _place(first + channel, width, cut))
        with b.loop(0, C) as channel:
            number = source.load(channel * taps + tap)
            number = number ^ 0x80 if flips else number
            part.store(number, _place(first + member * C + channel, width, cut))
            total.set(total.value + (number.bits_as(I8) if signed else number).to(I32))
    return total.value


def _start(column: Register, cut: int) -> Register:
    """Return where the first element of a column lies in a panel whose words are cut by so many."""
    return column // cut * (4 * cut) + column % cut * 2 if cut else column * 4


def _place(depth: Register, width: int, cut: int) -> Register:
    """Return where an element of a run lies, from the first of its column on."""
    group, place = depth // 4 * (4 * width), depth % 4
    return group + place // 2 * (2 * cut) + place % 2 if cut else group + place
