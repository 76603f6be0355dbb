"""Replace each byte of an array by that of a table of 256: any function from 8 bits to 8 bits.

    y[i] = table[x[i]]          bytes as unsigned numbers

With AVX512-VBMI the table lies in four registers: VPERMI2B looks 64 bytes up in 128 of its entries at once, and the highest bit
of a byte chooses between two such halves. With AVX2 each sixteenth of the table is looked up by VPSHUFB, which gives 0 where the
highest bit of a place is set: for all bytes that lie in another sixteenth. Elsewhere bytes are loaded one by one.

Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2 (VPERMI2B, VPSHUFB).
"""

from __future__ import annotations

from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import I8, I64, U8
from sardonyx.codegen.emit.values import Register, Span
from sardonyx.codegen.target import Target
from sardonyx.lazy_dataclasses import dataclass

__all__ = ["ENTRIES", "TableParams", "has_table_registers", "write_byte_table"]

ENTRIES = 256
"""Bytes of a table."""

_TASK_BYTES = 1 << 16
_LANES = 64
_FEATURE = "avx512vbmi"
_SHUFFLED, _TOGETHER = 32, 64
"""Bytes of a register where tables are looked up by sixteenths, and bytes that go at a time."""
_SIXTEENTH, _BEHIND = 16, 112


@dataclass(frozen=True, slots=True)
class TableParams:
    """The integer parameters of the kernel; a task is a block of bytes."""

    count: int
    """Bytes of the array."""

    def words(self) -> list[int]:
        """Return the parameters as the kernel reads them."""
        return [self.count, _TASK_BYTES]

    def tasks(self) -> int:
        """Return how many tasks there are."""
        return -(-self.count // _TASK_BYTES)


def write_byte_table(module: Module, symbol: str) -> None:
    """Write the kernel `symbol`: buffers x, the table and y, all of bytes; parameters as TableParams. x and y may be one."""
    with module.kernel(symbol) as b:
        first, end = b.begin * b.param(1), b.min(b.end * b.param(1), b.param(0))
        if has_table_registers(module.target):
            _look_up_vectors(b, first, end)
            return
        is_wide = module.target.lanes(U8.bits) == _SHUFFLED and not module.target.emulated
        whole = first + ((end - first) & -_TOGETHER) if is_wide else first
        if is_wide:
            _shuffle_vectors(b, first, whole)
        x, table, y = (b.buffer(index, U8) for index in range(3))
        with b.loop(whole, end) as i:
            y.store(table.load(x.load(i).to(I64)), i)


def has_table_registers(target: Target) -> bool:
    """Return whether tables lie in registers, so that 64 bytes are looked up at once."""
    return target.has_feature(_FEATURE) and target.lanes(I8.bits) == _LANES and not target.emulated


def _shuffle_vectors(b: Kernel, first: Register, end: Register) -> None:
    """Look whole vectors up: of x - 16 k plus 112, without overflow, the highest bit is clear in sixteenth k alone."""
    x, table, y = (b.buffer(index, U8) for index in range(3))
    with b.loop(first, end, _TOGETHER) as i:
        places = [x.load(i + at, _SHUFFLED) for at in range(0, _TOGETHER, _SHUFFLED)]
        found = [place.like(0) for place in places]
        for part in range(0, ENTRIES, _SIXTEENTH):
            entries = table.load(part, _SIXTEENTH).shuffle([*range(_SIXTEENTH)] * (_SHUFFLED // _SIXTEENTH))
            for number, place in enumerate(places):
                moved = place - part
                chosen = b.intrinsic("llvm.uadd.sat.v32i8", moved.type, [moved, moved.like(_BEHIND)])
                found[number] = found[number] | b.intrinsic("llvm.x86.avx2.pshuf.b", moved.type, [entries, chosen])
        for number, value in enumerate(found):
            y.store(value, i + number * _SHUFFLED, _SHUFFLED)


def _look_up_vectors(b: Kernel, first: Register, end: Register) -> None:
    x, y = b.buffer(0, I8), b.buffer(2, I8)
    parts = [b.buffer(1, I8).load(_LANES * part, _LANES) for part in range(ENTRIES // _LANES)]
    whole = first + (end - first) // _LANES * _LANES
    for start, stop, is_whole in ((first, whole, True), (whole, end, False)):
        with b.loop(start, stop, _LANES) as i:
            span = Span(_LANES) if is_whole else Span(_LANES, b.tail_mask(end - i, _LANES))
            places = x.load(i, span)
            low, high = (_in_half(b, parts[half], places, parts[half + 1]) for half in (0, 2))
            y.store(b.select(places < 0, high, low), i, span)


def _in_half(b: Kernel, first: Register, places: Register, second: Register) -> Register:
    """Return the entries of half a table that the lower seven bits of `places` name."""
    return b.intrinsic("llvm.x86.avx512.vpermi2var.qi.512", first.type, [first, places, second])
