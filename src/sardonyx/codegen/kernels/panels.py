"""How the right side of a product is stored, and how a block of one of its panels is had in float32.

    WidePanels      float32, read in place
    NumberPanels    float64 or integers, read in place; all of the product is of their type
    NarrowPanels    float16 or bfloat16, widened: exact, at half the memory traffic
    PairPanels      bfloat16 in pairs of rows, for dot products of pairs: A is then in pairs too, and K counts them
    TilePanels      the same with whole matrix tiles of rows, zeros behind the last, for `tile_gemm`
    BlockPanels     numbers of 2, 4 or 8 bits, with a scale and perhaps a zero point for each column and block of rows
    TablePanels     numbers of 4 bits that stand for one of 16 values each, with a scale for each column and block of rows

A panel is [K][width] elements in the order in which tiles read them. What is not read in place is decoded to the stack a chain of
K at a time, so that the first-level cache has it for all rows of A that are multiplied with it; for few rows of A, vector by
vector in registers, to the same bits.

A block of a BlockPanels is width scales, width zero points if there are any, and its numbers, as dot products of four bytes read
them: a word of 32 bits for each column, four rows of K in its bytes, the next four in the next bits of these.

    4 bits, word of column c:   rows 8g … 8g + 3 in the low halves of the bytes, rows 8g + 4 … 8g + 7 in the high halves
"""

from __future__ import annotations

import abc
import math
import zlib
from collections.abc import Callable, Sequence

import numpy as np

from sardonyx.codegen.emit.builder import Function, Variable
from sardonyx.codegen.emit.module import Kernel
from sardonyx.codegen.emit.narrow import from_narrow
from sardonyx.codegen.emit.types import F32, F64, I32, U8, U32, Type
from sardonyx.codegen.emit.values import Pointer, Register
from sardonyx.dtypes import Array
from sardonyx.lazy_dataclasses import dataclass

__all__ = [
    "LONGEST_CHAIN",
    "BlockLayout",
    "BlockPanels",
    "NarrowPanels",
    "NumberPanels",
    "PairPanels",
    "PanelColumns",
    "Panels",
    "TablePanels",
    "TilePanels",
    "WidePanels",
]

LONGEST_CHAIN = 256
"""Most rows that are decoded at a time."""

_LOOKED_UP = 4
"""Most bits of numbers that a table of one vector has the values of."""

_PERMUTED = 16
"""Lanes of the instruction that looks them up."""

_LINE_BYTES, _ROWS_AHEAD = 64, 24
"""What is fetched at a time where few rows of A go through panels at the speed of memory, and how far ahead."""


class Panels(abc.ABC):
    """How the panels of B are stored."""

    element: Type
    """Of the buffer that holds them."""
    is_decoded: bool
    """Whether blocks are written anew in float32: they are then one chain at most."""
    is_paired = False
    """Whether an element is two bfloat16, of this row of K and the next."""
    is_tiled = False
    """Whether rows are whole matrix tiles."""

    @property
    def computed(self) -> Type:
        """The type of A and C, and of all sums."""
        return F32

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """How it is stored, in the names of kernels; "" for float32."""

    @abc.abstractmethod
    def place(self, panels: Pointer, panel: Register, k: Register, K: Register, width: int) -> Pointer:
        """Return where row `k` of a panel is stored, or the block of rows that it is in.

        Args:
            panels: the first panel of the matrix.
            panel: which panel.
            k: which row of it.
            K: how many rows each panel has.
            width: elements of a row.
        """

    @abc.abstractmethod
    def row_bytes(self, width: int) -> int:
        """Return how many bytes a row takes, rounded up to whole elements of float32."""

    @abc.abstractmethod
    def block(self, b: Kernel, stored: Pointer, k: Register, width: int, depth: Register, room: Pointer | None) -> Pointer:
        """Return where `depth` rows of a panel lie in float32, `width` elements apart.

        Args:
            b: the function to write into.
            stored: the `place` of the first of them.
            k: the first of them.
            width: elements of a row.
            depth: how many rows, LONGEST_CHAIN at most where they are decoded.
            room: memory for LONGEST_CHAIN rows in float32, aligned to 64 bytes; None where `is_decoded` is false.
        """

    def multiply(
        self, b: Kernel, rows: Sequence[Pointer], columns: PanelColumns, depth: Register, sums: Sequence[Variable]
    ) -> None:
        """Add `depth` steps of K to the sums of a tile, decoding in registers; for panels that are decoded.

        Args:
            b: the function to write into.
            rows: the address of each row of A, at the first k.
            columns: which part of a panel.
            depth: how many steps.
            sums: the accumulators, row by row.
        """
        raise TypeError(f"{self.name or 'float32'} panels are read in place")


@dataclass(frozen=True, slots=True)
class PanelColumns:
    """The columns of a tile in a panel, from some row on."""

    panel: Pointer
    """Where the panel begins."""
    k: Register
    """The first row."""
    column: Register
    """The first column."""
    width: int
    """Elements of a row of the panel."""


def _add_products(b: Kernel, rows: Sequence[Pointer], k: Register, columns: Sequence[Register], sums: Sequence[Variable]) -> None:
    """Add rows[i][k] * columns[j] to the sums."""
    for i, row in enumerate(rows):
        factor = row.load(k).splat(columns[0].type.lanes)
        for total, column in zip(sums[i * len(columns) :], columns, strict=False):
            total.set(b.fma(factor, column, total.value))


@dataclass(frozen=True)
class WidePanels(Panels):
    """Panels of float32, read in place."""

    element, is_decoded = F32, False

    @property
    def name(self) -> str:
        """Return "": it goes without saying."""
        return ""

    def place(self, panels: Pointer, panel: Register, k: Register, K: Register, width: int) -> Pointer:
        """Return where the row is."""
        return panels.at((panel * K + k) * width)

    def row_bytes(self, width: int) -> int:
        """Return the size of the row's elements."""
        return width * self.element.size_bytes

    def block(self, b: Kernel, stored: Pointer, k: Register, width: int, depth: Register, room: Pointer | None) -> Pointer:
        """Return `stored`."""
        return stored


@dataclass(frozen=True)
class NumberPanels(WidePanels):
    """Panels of float64, or of integers, whose sums are of their own type."""

    element: Type = F64
    """The type of elements: F64, I32 or I64; products and sums have the same bits whether integers have signs or not."""

    @property
    def name(self) -> str:
        """The type of elements."""
        return self.element.text

    @property
    def computed(self) -> Type:
        """The type of elements."""
        return self.element


@dataclass(frozen=True)
class PairPanels(WidePanels):
    """Panels of words of two bfloat16, read in place."""

    is_paired = True

    @property
    def name(self) -> str:
        """The type of elements."""
        return "bf16x2"


@dataclass(frozen=True)
class TilePanels(PairPanels):
    """Panels of words of two bfloat16, whole matrix tiles of them."""

    is_tiled = True


@dataclass(frozen=True)
class NarrowPanels(WidePanels):
    """Panels of float16 or bfloat16."""

    element: Type = F32
    """F16 or BF16."""
    is_decoded = True

    @property
    def name(self) -> str:
        """The type of elements."""
        return self.element.name

    def block(self, b: Kernel, stored: Pointer, k: Register, width: int, depth: Register, room: Pointer | None) -> Pointer:
        """Widen the rows into `room`."""
        room = _given(room)
        lanes = b.lanes(F32)
        with b.loop(0, depth * width, width) as row:
            for j in range(0, width, lanes):
                room.store(from_narrow(b, stored.load(row + j, lanes)), row + j, lanes, align=lanes * F32.size_bytes)
        return room

    def multiply(
        self, b: Kernel, rows: Sequence[Pointer], columns: PanelColumns, depth: Register, sums: Sequence[Variable]
    ) -> None:
        """Widen a row at a time."""
        here, lanes = columns.panel.at(columns.k * columns.width + columns.column), b.lanes(F32)
        with b.loop(0, depth) as k:
            first = here.at(k * columns.width)
            for line in range(0, columns.width * self.element.size_bytes, _LINE_BYTES):
                b.prefetch(first.at(_ROWS_AHEAD * columns.width + line // self.element.size_bytes), locality=2)
            widened = [from_narrow(b, first.load(j * lanes, lanes)) for j in range(len(sums) // len(rows))]
            _add_products(b, rows, k, widened, sums)


@dataclass(frozen=True)
class BlockLayout:
    """How numbers of few bits lie in panels: a weight is (number - zero point) x scale."""

    bits: int
    """Of a number: 2, 4 or 8."""
    block_size: int
    """Rows that share scales: a power of two from 16 on."""
    zero: Type | None
    """The type of zero points, U8 or F32; None where all are half the range."""

    @property
    def name(self) -> str:
        """Bits, rows of a block and the type of zero points."""
        return f"q{self.bits}b{self.block_size}{'' if self.zero is None else 'z' if self.zero == U8 else 'zf'}"

    @property
    def fields(self) -> int:
        """How many numbers a byte holds."""
        return 8 // self.bits

    @property
    def word_rows(self) -> int:
        """How many numbers of a column a word of 32 bits holds."""
        return 4 * self.fields

    def shift_of(self, place: int) -> int:
        """Return which bit of a word is the lowest of number `place` in it."""
        return place % 4 * 8 + place // 4 * self.bits

    @property
    def half(self) -> int:
        """Half the range of numbers: the zero point where none is given."""
        return 1 << (self.bits - 1)

    def block_bytes(self, width: int) -> int:
        """Return how many bytes a block of rows takes, of a panel of `width` columns."""
        return self.numbers_at(width) + self.block_size * width * self.bits // 8

    def numbers_at(self, width: int) -> int:
        """Return where in a block the numbers begin, behind scales and zero points."""
        return width * (F32.size_bytes + (0 if self.zero is None else self.zero.size_bytes))

    def zero_point(self, b: Function, block: Pointer, width: int, column: int | Register, lanes: int) -> Register:
        """Return the zero points of some columns of the block at `block`, in float32."""
        if self.zero is None:
            return b.const(F32.vector(lanes), float(self.half))
        if self.zero == F32:
            return block.of(F32).at(width).load(column, lanes)
        return block.at(width * F32.size_bytes).load(column, lanes).to(I32).to(F32)

    def pack(self, numbers: Callable[[slice], Array], scales: Array, zeros: Array | None, width: int) -> Array:
        """Return the panels of weights.

        Args:
            numbers: gives those of some columns, uint8 (columns, blocks, block size).
            scales: float32 (N, blocks).
            zeros: zero points of (N, blocks), uint8 or float32; None where all are half the range.
            width: the width of a panel.
        """
        N, blocks = scales.shape
        packed = np.zeros((-(-N // width), blocks, self.block_bytes(width)), np.uint8)
        for panel, content in enumerate(packed):
            part = slice(panel * width, min((panel + 1) * width, N))
            count = part.stop - part.start
            content[:, : width * 4].view(np.float32)[:, :count] = scales[part].T
            if self.zero is not None and zeros is not None:
                content[:, width * 4 : self.numbers_at(width)].view(zeros.dtype)[:, :count] = zeros[part].T
            self.write_numbers(content[:, self.numbers_at(width) :], numbers(part), width)
        return packed

    def write_numbers(self, content: Array, numbers: Array, width: int) -> None:
        """Write the numbers (columns, blocks, block size) of a panel into `content`, zeros (blocks, bytes)."""
        count, blocks, _ = numbers.shape
        rows = numbers.reshape(count, blocks, -1, self.fields, 4)
        body = content.reshape(blocks, -1, width, 4)
        for field in range(self.fields):
            body[:, :, :count] |= rows[:, :, :, field].transpose(1, 2, 0, 3) << np.uint8(field * self.bits)


Decode = Callable[[Register, int, Register], Register]
"""`decode(packed, place, zero)`: what number `place` of each of the packed words (uint32) stands for, by zero points in float32."""


@dataclass(frozen=True)
class BlockPanels(BlockLayout, Panels):
    """Panels of numbers of few bits, decoded to float32, each step rounded."""

    element = U8
    is_decoded = True

    def row_bytes(self, width: int) -> int:
        """Return a row's share of its block."""
        return math.ceil(self.block_bytes(width) / self.block_size / F32.size_bytes) * F32.size_bytes

    def place(self, panels: Pointer, panel: Register, k: Register, K: Register, width: int) -> Pointer:
        """Return where the block of the row is."""
        blocks = (K + (self.block_size - 1)) // self.block_size
        return panels.at((panel * blocks + k // self.block_size) * self.block_bytes(width))

    def block(self, b: Kernel, stored: Pointer, k: Register, width: int, depth: Register, room: Pointer | None) -> Pointer:
        """Decode the rows into `room`: what a number stands for x scale."""
        room, lanes, value_of = _given(room), b.lanes(F32), self.values(b)
        step, first, columns = min(self.block_size, LONGEST_CHAIN // 2), k % self.block_size, range(0, width, lanes)
        with b.loop(0, depth, step) as done:
            here = stored.at((first + done) // self.block_size * self.block_bytes(width))
            scales = [here.of(F32).load(j, lanes) for j in columns]
            zeros = [self.zero_point(b, here, width, j, lanes) for j in columns]
            numbers = here.at(self.numbers_at(width) + (first + done) % self.block_size * width * self.bits // 8)
            with b.loop(0, b.min(depth - done, step), self.word_rows) as row:
                for j, scale, zero in zip(columns, scales, zeros, strict=True):
                    packed = numbers.at(row * width * self.bits // 8).of(U32).load(j, lanes)
                    for place in range(self.word_rows):
                        value, at = value_of(packed, place, zero) * scale, (done + row + place) * width + j
                        room.store(value, at, lanes, align=lanes * F32.size_bytes)
        return room

    def multiply(
        self, b: Kernel, rows: Sequence[Pointer], columns: PanelColumns, depth: Register, sums: Sequence[Variable]
    ) -> None:
        """Decode a vector at a time: those rows that share bytes together."""
        lanes, width, value_of = b.lanes(F32), columns.width, self.values(b)
        places = [j * lanes for j in range(len(sums) // len(rows))]
        step = min(self.block_size, LONGEST_CHAIN // 2)
        with b.loop(0, depth, step) as done:
            k = columns.k + done
            here = columns.panel.at(k // self.block_size * self.block_bytes(width))
            heads = here.at(columns.column * F32.size_bytes).of(F32)
            scales = [heads.load(j, lanes) for j in places]
            zeros = [self.zero_point(b, here, width, columns.column + j, lanes) for j in places]
            numbers = here.at(
                self.numbers_at(width) + k % self.block_size * width * self.bits // 8 + columns.column * U32.size_bytes
            )
            length = b.min(depth - done, step)
            whole = length // self.word_rows * self.word_rows

            def add(row: Register, count: Register | None, done: Register = done) -> None:
                first = numbers.at(row * width * self.bits // 8).of(U32)
                packed = [first.load(j, lanes) for j in places]
                for place in range(self.word_rows):

                    def add_row(place: int = place, packed: list[Register] = packed) -> None:
                        heads = zip(packed, zeros, scales, strict=True)
                        decoded = [value_of(words, place, zero) * scale for words, zero, scale in heads]
                        _add_products(b, rows, done + row + place, decoded, sums)

                    if count is None:
                        add_row()
                    elif place < self.word_rows - 1:
                        with b.when(count > place):
                            add_row()

            with b.loop(0, whole, self.word_rows) as row:
                add(row, None)
            add(whole, length - whole)

    def values(self, b: Kernel) -> Decode:
        """Return what makes of a vector of packed numbers what is multiplied by the scale."""
        numbers = [float(number - (0 if self.zero else 1 << (self.bits - 1))) for number in range(1 << self.bits)]
        found = _look_up(b, numbers) if self.bits <= _LOOKED_UP else None
        if found is None:
            mask = (1 << self.bits) - 1
            return lambda packed, place, zero: ((packed >> self.shift_of(place)) & mask).bits_as(I32).to(F32) - zero
        if self.zero is None:
            return lambda packed, place, zero: found(packed >> self.shift_of(place))
        return lambda packed, place, zero: found(packed >> self.shift_of(place)) - zero


@dataclass(frozen=True)
class TablePanels(BlockPanels):
    """Panels of numbers of 4 bits, which a table decodes to float32."""

    table: tuple[float, ...] = ()
    """What the 16 numbers stand for."""

    @property
    def name(self) -> str:
        """Rows of a block, and the table as a number."""
        return f"t{self.bits}b{self.block_size}x{zlib.crc32(np.array(self.table, np.float32).tobytes()):08x}"

    def values(self, b: Kernel) -> Decode:
        """Return the look-up: a permutation of registers where there is one, else a read of memory."""
        found = _look_up(b, self.table)
        if found is not None:
            return lambda packed, place, zero: found(packed >> self.shift_of(place))
        lanes, is_x86, mask = b.lanes(F32), b.target.triple.startswith("x86"), (1 << self.bits) - 1
        if is_x86 and lanes * 2 == len(self.table):
            halves = [b.vector_of(F32, self.table[first : first + lanes]) for first in (0, lanes)]

            def of_two(packed: Register, place: int, zero: Register) -> Register:
                number = ((packed >> self.shift_of(place)) & mask).bits_as(I32)
                low, high = (b.intrinsic("llvm.x86.avx2.permps", F32.vector(lanes), [half, number]) for half in halves)
                return b.select(number < lanes, low, high)

            return of_two
        memory = b.stack(F32, len(self.table), align=64)
        for place, value in enumerate(self.table):
            memory.store(value, place)
        return lambda packed, place, zero: memory.gather(((packed >> self.shift_of(place)) & mask).bits_as(I32))


def _look_up(b: Kernel, table: Sequence[float]) -> Callable[[Register], Register] | None:
    """Return what takes the entries of a table by the lowest bits of words, in one instruction; None where there is none."""
    lanes = b.lanes(F32)
    if lanes != _PERMUTED or len(table) > lanes or not b.target.has_feature("avx512f"):
        return None
    entries = b.vector_of(F32, [*table] * (lanes // len(table)))
    return lambda words: b.intrinsic("llvm.x86.avx512.permvar.sf.512", F32.vector(lanes), [entries, words.bits_as(I32)])


def _given(room: Pointer | None) -> Pointer:
    if room is None:
        raise ValueError("these panels are decoded, which needs memory for a block of them")
    return room
