"""Products of small matrices in the tile registers of AMX: a table of instructions, and what each of them computes.

    instruction   of           A           B           C += A B
    TDPBUSD       AMX-INT8     unsigned    signed      bytes into int32, which wraps
    TDPBSSD       AMX-INT8     signed      signed
    TDPBUUD       AMX-INT8     unsigned    unsigned
    TDPBSUD       AMX-INT8     signed      unsigned
    TDPBF16PS     AMX-BF16     bfloat16    bfloat16    into float32

A tile is 16 rows of 16 words of 32 bits. A word of A and of B is what follows one another in K: four bytes, or two bfloat16.

         A: 16 words of K            B: 16 columns               C: 16 columns
        ┌────────────────┐          ┌────────────────┐          ┌────────────────┐
     16 │ a0 a1 … of a   │       16 │ a row for each │       16 │ int32 or       │
   rows │ row of memory  │     rows │ word of K      │     rows │ float32        │
        └────────────────┘          └────────────────┘          └────────────────┘

B lies in memory as panels of dot products have it. TDPBF16PS adds the products of even k to a sum that begins at zero and those of
odd k to another, fused; then both sums, then that to C. Each step is rounded to nearest, ties to even, and denormal operands and
results are zeros, whatever the thread's control word says.

A function that uses tiles runs between `LDTILECFG` and `TILERELEASE` (`configured_tiles`): outside of kernels no tile is in use, so
that neither signals nor switches of threads save them. A target that emulates AMX has its tiles on the stack.

Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2 (TDPBSSD and its like, TDPBF16PS, LDTILECFG).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from sardonyx.codegen.emit.bfloat_dots import flushed, widened
from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.dots import sum_of_bytes
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import BF16, F32, I8, I32, PTR, U8, VOID, Type
from sardonyx.codegen.emit.values import Pointer, Register
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array
from sardonyx.lazy_dataclasses import dataclass

__all__ = ["TILE", "TILE_DOTS", "TileDot", "Tiles", "configured_tiles", "has_byte_tiles", "has_pair_tiles", "tile_dot"]

TILE = 16
"""Rows of a tile, and words of a row."""

_TILES = 8

Meaning = Callable[[Function, Pointer, Pointer, Pointer], None]
"""`meaning(b, total, left, right)`: total += left right, of tiles in memory, row after row."""


@dataclass(frozen=True, slots=True)
class TileDot:
    """A product of tiles that a processor has."""

    name: str
    """Its name in the manual; LLVM's is the same in small letters."""
    feature: str
    """LLVM's name of the feature that it belongs to."""
    left: Type
    """Elements of A."""
    right: Type
    """Elements of B."""
    meaning: Meaning
    """Writes the same in operations that every processor has."""


def _bytes(left: Type, right: Type) -> Meaning:
    add = sum_of_bytes(left, right)

    def write(b: Function, total: Pointer, rows: Pointer, columns: Pointer) -> None:
        with b.loop(0, TILE * TILE, TILE) as row:
            found = b.variable(total.load(row, TILE))
            with b.loop(0, TILE) as k:
                found.set(add(b, found.value, rows.load(row + k).splat(TILE), columns.load(k * TILE, TILE)))
            total.store(found.value, row, TILE)

    return write


def _bfloats(b: Function, total: Pointer, rows: Pointer, columns: Pointer) -> None:
    total = total.of(F32)
    with b.loop(0, TILE * TILE, TILE) as row:
        sums = [b.variable(b.const(F32.vector(TILE), 0.0)) for _ in range(2)]
        with b.loop(0, TILE) as k:
            left, right = widened(b, rows.load(row + k).splat(TILE)), widened(b, columns.load(k * TILE, TILE))
            for found, x, y in zip(sums, left, right, strict=True):
                found.set(flushed(b, b.fma(flushed(b, x), flushed(b, y), found.value)))
        both = flushed(b, sums[0].value + sums[1].value)
        total.store(flushed(b, flushed(b, total.load(row, TILE)) + both), row, TILE)


TILE_DOTS = (
    TileDot("TDPBUSD", "amx-int8", U8, I8, _bytes(U8, I8)),
    TileDot("TDPBSSD", "amx-int8", I8, I8, _bytes(I8, I8)),
    TileDot("TDPBUUD", "amx-int8", U8, U8, _bytes(U8, U8)),
    TileDot("TDPBSUD", "amx-int8", I8, U8, _bytes(I8, U8)),
    TileDot("TDPBF16PS", "amx-bf16", BF16, BF16, _bfloats),
)
"""Products of tiles: one for each pair of types."""


def tile_dot(left: Type, right: Type) -> TileDot:
    """Return the product of elements of these types: U8 and I8 in any combination, or BF16 on both sides."""
    return next(dot for dot in TILE_DOTS if (dot.left, dot.right) == (left, right))


def has_byte_tiles(target: Target) -> bool:
    """Return whether the target has, or emulates, products of tiles of bytes."""
    return target.has_feature("amx-tile") and target.has_feature("amx-int8")


def has_pair_tiles(target: Target) -> bool:
    """Return whether the target has, or emulates, products of tiles of bfloat16."""
    return target.has_feature("amx-tile") and target.has_feature("amx-bf16")


class Tiles:
    """The tile registers 0 to 7 within one function; emulated ones begin with undefined contents in each."""

    def __init__(self, b: Function) -> None:
        self._b = b
        self._stack = [b.stack(I32, TILE * TILE, align=64) for _ in range(_TILES)] if b.target.emulated else []

    def zero(self, tile: int) -> None:
        """Write zeros."""
        if not self._stack:
            self._write("tilezero", tile)
            return
        for row in range(TILE):
            self._stack[tile].store(0, row * TILE, TILE)

    def load(self, tile: int, address: Pointer, stride: Register) -> None:
        """Read 16 rows of 64 bytes, `stride` bytes from one to the next."""
        if not self._stack:
            self._write("tileloadd64", tile, address, stride)
            return
        with self._b.loop(0, TILE) as row:
            words = address.of(U8).at(row * stride).of(I32).load(0, TILE, align=1)
            self._stack[tile].store(words, row * TILE, TILE)

    def store(self, tile: int, address: Pointer, stride: Register) -> None:
        """Write 16 rows of 64 bytes, `stride` bytes from one to the next."""
        if not self._stack:
            self._write("tilestored64", tile, address, stride)
            return
        with self._b.loop(0, TILE) as row:
            words = self._stack[tile].load(row * TILE, TILE)
            address.of(U8).at(row * stride).of(I32).store(words, 0, TILE, align=1)

    def multiply(self, dot: TileDot, total: int, left: int, right: int) -> None:
        """Add the product of two tiles to a third."""
        if not self._stack:
            self._write(dot.name.lower(), total, left, right)
            return
        dot.meaning(self._b, *(self._stack[tile] for tile in (total, left, right)))

    def _write(self, name: str, *operands: int | Register) -> None:
        """Call LLVM's intrinsic, in which numbers of tiles are constants."""
        kinds = ["i8" if isinstance(operand, int) else operand.type.text for operand in operands]
        texts = [str(operand) if isinstance(operand, int) else operand.ref for operand in operands]
        name = f"llvm.x86.{name}"
        self._b.declarations[name] = f"declare void @{name}({', '.join(kinds)})"
        self._b.line(f"call void @{name}({', '.join(f'{kind} {text}' for kind, text in zip(kinds, texts, strict=True))})")


@contextmanager
def configured_tiles(module: Module, b: Function) -> Iterator[None]:
    """Run the block with eight tiles of full size in use, and with none after it."""
    if b.target.emulated:
        yield
        return
    table = b.pointer(module.table(f"{b.symbol}_tiles", _configuration()), U8)
    b.intrinsic("llvm.x86.ldtilecfg", VOID, [Register(b, PTR, table.ref)])
    yield
    b.intrinsic("llvm.x86.tilerelease", VOID, [])


def _configuration() -> Array:
    """Return the 64 bytes that LDTILECFG reads: the palette, bytes of a row of each tile (16 bits), rows of each tile."""
    found = np.zeros(64, np.uint8)
    found[0] = 1
    found[16 : 16 + 2 * _TILES].view(np.uint16)[:] = TILE * 4
    found[48 : 48 + _TILES] = TILE
    return found
