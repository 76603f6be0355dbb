"""Replace each byte of an array by that of a table of 256: any function from 8 bits to 8 bits.

    y[i] = table[x[i]]          bytes as unsigned numbers

With AVX512-VBMI the table lies in four registers: VPERMI2B looks 64 bytes up in 128 of its entries at once, and the highest bit
of a byte chooses between two such halves. Elsewhere bytes are loaded one by one.

Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2 (VPERMI2B).
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
        else:
            x, table, y = (b.buffer(index, U8) for index in range(3))
            with b.loop(first, end) as i:
                y.store(table.load(x.load(i).to(I64)), i)


def has_table_registers(target: Target) -> bool:
    """Return whether tables lie in registers, so that 64 bytes are looked up at once."""
    return target.has_feature(_FEATURE) and target.lanes(I8.bits) == _LANES and not target.emulated


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
