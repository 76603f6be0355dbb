"""Matrices of 8 bits as dot products of four bytes read them, and the inner loop of a product with them.

A panel is `width` columns of B, all rows; a lane of 32 bits holds four rows of one column:

    int32 sums of the columns      [width]
    words                          [groups][width]           byte r of word c in group g: B[4g + r, c]

There are ceil(K / 4) groups; where products are computed in matrix tiles, as many as fill whole tiles. Numbers are signed: of an
unsigned matrix each is stored less by 128, and so is its zero point. Behind the last row and the last column are zeros. Every
product of 8-bit integers becomes one of `native_left` by signed bytes in this way: with A' = A + shift, za' = za + shift, and
B' and zb' likewise,

    sum over k of (A - za) (B - zb)  =  A' B'  -  za' sum of B'  -  zb' (sum of A'  -  K za')

modulo 2^32. The sums of B' are stored beside it; those of A' are needed only where B has a zero point.

Where the processor multiplies pairs of 16 bits instead, of any signs, A is widened rows and words are cut (`quantized.pairs`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np

from sardonyx.codegen.emit.builder import Function, Variable
from sardonyx.codegen.emit.dots import dot4, flip_sign, has_dot4, has_pairs, native_left
from sardonyx.codegen.emit.matrix_tiles import TILE, has_byte_tiles
from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import I32, I64, U8, U32, Type
from sardonyx.codegen.emit.values import Pointer, Register, Span
from sardonyx.codegen.kernels.pack import PACK_PARAMS, aligned_zeros
from sardonyx.codegen.kernels.quantized.pairs import cut_lanes, cut_vector, cut_words, multiply_pairs
from sardonyx.codegen.kernels.tiles import Ahead, Tiling
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array
from sardonyx.lazy_dataclasses import dataclass

__all__ = [
    "HALF_RANGE",
    "bytes_tiling",
    "group_unit",
    "groups_of",
    "left_shift",
    "multiply_bytes",
    "pack_bytes",
    "panel_words",
    "write_groups",
    "write_pack_bytes",
]

HALF_RANGE = 128
"""What turning the highest bit of a byte adds to its number, or takes from it."""

_SLAB_BYTES = 1 << 20
"""How much of a matrix is copied at a time while it is packed, where its columns lie in order."""

_SLAB_WORDS = 1 << 14
"""How many words are made at a time where its rows do: they stay in the first-level cache."""

_EXACT_ROWS = 128
"""Rows whose sums fit int16."""


@functools.cache
def bytes_tiling(target: Target) -> Tiling:
    """Return the tiles of int32 sums that fit the registers of `target`; without an instruction both sides are widened first."""
    lanes, whole = target.lanes(32), has_dot4(target) or has_pairs(target)
    if target.registers >= 32:
        return Tiling(lanes, ((4, (6, 4, 2, 1) if whole else (4, 2, 1)), (2, (8, 4, 1) if whole else (4, 1)), (1, (8, 4, 1))))
    return Tiling(lanes, ((2, (6, 4, 2, 1) if whole else (3, 1)), (1, (6, 3, 1) if whole else (3, 1))))


def group_unit(target: Target) -> int:
    """Return of how many groups of four rows the target's panels have a multiple."""
    return TILE if has_byte_tiles(target) else 1


def groups_of(K: int, unit: int = 1) -> int:
    """Return how many lanes of four rows K rows are, a multiple of `unit`."""
    return -(-K // (4 * unit)) * unit


def panel_words(K: int, width: int, unit: int = 1) -> int:
    """Return how many words of 32 bits a panel of K rows takes, with the sums of its columns."""
    return (1 + groups_of(K, unit)) * width


def left_shift(target: Target, kind: Type) -> int:
    """Return what is added to numbers of type `kind` (U8 or I8) so that they are what the target takes: 0, 128 or -128."""
    wanted = native_left(target)
    if kind == wanted or has_pairs(target):
        return 0
    return HALF_RANGE if wanted == U8 else -HALF_RANGE


def pack_bytes(matrix: Array, width: int, unit: int = 1, *, cut: int = 0, is_transposed: bool = False) -> Array:
    """Return int32 panels [N / width][panel_words] of B[K, N], int8 or uint8; a copy.

    Args:
        matrix: B, or B transposed (N, K).
        width: columns of a panel.
        unit: of how many groups of rows panels have a multiple.
        cut: how many words are cut together: the target's `cut_lanes`.
        is_transposed: whether `matrix` is (N, K).
    """
    N, K = matrix.shape if is_transposed else matrix.shape[::-1]
    packed = aligned_zeros((-(-N // width), 1 + groups_of(K, unit), width), np.int32)
    if K and N:
        (_store_columns if is_transposed else _store_rows)(packed, matrix)
        for panel in packed if cut else ():
            cut_words(panel[1:], cut)
    return packed.reshape(len(packed), panel_words(K, width, unit))


def _store_columns(packed: Array, columns: Array) -> None:
    """Store the panels of a matrix whose columns lie in order: groups of four of a column are words already."""
    (N, K), (_, length, width) = columns.shape, packed.shape
    groups = length - 1
    step = max(1, _SLAB_BYTES // (K * width)) * width
    for start in range(0, N, step):
        slab = columns[start : start + step]
        padded = np.zeros((-(-len(slab) // width) * width, groups * 4), np.int8)
        if columns.dtype == np.uint8:
            np.bitwise_xor(slab, np.uint8(HALF_RANGE), out=padded[: len(slab), :K].view(np.uint8))
        else:
            padded[: len(slab), :K] = slab
        part = packed[start // width : start // width + len(padded) // width]
        part[:, 0] = padded.sum(axis=1, dtype=np.int32).reshape(-1, width)
        part[:, 1:] = padded.view("<i4").reshape(len(part), width, groups).transpose(0, 2, 1)


def _store_rows(packed: Array, matrix: Array) -> None:
    """Store the panels of a matrix whose rows lie in order: four of them make a row of words, some at a time."""
    K, N = matrix.shape
    shift = HALF_RANGE if matrix.dtype == np.uint8 else 0
    step = max(1, _SLAB_WORDS // N)
    for first in range(0, groups_of(K), step):
        rows = matrix[4 * first : 4 * (first + step)].view(np.uint8)
        if len(rows) % 4:
            rows = np.concatenate([rows, np.full((-len(rows) % 4, N), shift, np.uint8)])
        fours = rows.reshape(-1, 4, N)
        words = fours[:, 3].astype(np.uint32)
        for row in (2, 1, 0):
            words <<= np.uint32(8)
            words |= fours[:, row]
        if shift:
            words ^= np.uint32(0x80808080)
        _put(packed[:, 1 + first : 1 + first + len(words)], words.view(np.int32))
    sums = np.full(N, -shift * K, np.int32)
    for first in range(0, K, _EXACT_ROWS):
        sums += matrix[first : first + _EXACT_ROWS].astype(np.int16).sum(axis=0, dtype=np.int16)
    _put(packed[:, :1], sums[None])


def _put(panels: Array, rows: Array) -> None:
    """Copy rows (R, N) into panels (P, R, width)."""
    (count, N), width = rows.shape, panels.shape[2]
    whole = N // width
    panels[:whole] = rows[:, : whole * width].reshape(count, whole, width).transpose(1, 0, 2)
    if whole * width < N:
        panels[whole, :, : N - whole * width] = rows[:, whole * width :]


def write_pack_bytes(module: Module, symbol: str, width: int, kind: Type) -> None:
    """Write the kernel `symbol`, which does what `pack_bytes` does: buffers B (elements of `kind`, U8 or I8) and panels (int32).

    Panels have a multiple of the target's `group_unit` of groups.

    Parameters as in PackParams; a task is a panel. B may lie in memory in any way; it is fast where one of its strides is 1.
    """
    with module.kernel(symbol) as b:
        K, N, stride_k, stride_n, stride_batch = (b.param(place) for place in range(PACK_PARAMS))
        panels, groups, lanes = (N + (width - 1)) // width, write_groups(b, K), b.lanes(I32)
        with b.loop(b.begin, b.end) as task:
            n = task % panels * width
            source = b.buffer(0, U8).at(task // panels * stride_batch + n * stride_n)
            panel = b.buffer(1, I32).at(task * ((groups + 1) * width))
            with b.loop(0, width, lanes) as first:
                columns = b.max(b.min(N - n - first, lanes), 0)
                reader = _Reader(source.at(first * stride_n), stride_k, stride_n, columns, kind)
                pack = functools.partial(_pack_columns, b, K, groups, panel.at(first), width)
                b.branch(stride_n.eq(1), functools.partial(pack, reader.row), functools.partial(pack, reader.gathered))


@dataclass(frozen=True, slots=True)
class _Reader:
    """Some columns of B: at most the lanes of a vector."""

    source: Pointer
    stride_k: Register
    stride_n: Register
    columns: Register
    kind: Type

    def row(self, b: Function, k: Register, lanes: int) -> Register:
        """Return row k of columns that lie in order, as unsigned int32 lanes."""
        place = self.source.at(k * self.stride_k)
        return self._stored(b, place.load(0, Span(lanes, b.tail_mask(self.columns, lanes))), lanes)

    def gathered(self, b: Function, k: Register, lanes: int) -> Register:
        """Return row k of columns that lie anywhere, as unsigned int32 lanes."""
        place, mask = self.source.at(k * self.stride_k), b.tail_mask(self.columns, lanes)
        return self._stored(b, place.gather(b.iota(I64, lanes) * self.stride_n, mask), lanes)

    def _stored(self, b: Function, numbers: Register, lanes: int) -> Register:
        if self.kind == U8:
            mask = b.tail_mask(self.columns, lanes)
            numbers = b.select(mask, numbers ^ HALF_RANGE, numbers.like(0))
        return numbers.to(U32)


_Read = Callable[[Function, Register, int], Register]


def _pack_columns(b: Kernel, K: Register, groups: Register, place: Pointer, width: int, read: _Read) -> None:
    """Write the words of one vector of columns, and their sums."""
    lanes = b.lanes(I32)
    ones, total = b.const(I32.vector(lanes), 0x01010101), b.variable(b.const(I32.vector(lanes), 0))

    def put(group: Register, word: Register) -> None:
        stored = cut_vector(word) if cut_lanes(b.target) else word.bits_as(I32)
        place.store(stored, (group + 1) * width, lanes)
        total.set(dot4(b, total.value, ones, word, native_left(b.target)))

    whole = K // 4
    with b.loop(0, whole) as group:
        rows = [read(b, group * 4 + row, lanes) << (8 * row) for row in range(4)]
        put(group, (rows[0] | rows[1]) | (rows[2] | rows[3]))
    with b.when(whole * 4 < K):
        word = b.variable(b.const(U32.vector(lanes), 0))
        with b.loop(whole * 4, K) as k:
            word.set(word.value | (read(b, k, lanes) << ((k % 4) * 8).to(U32).splat(lanes)))
        put(whole, word.value)
    with b.loop((K + 3) // 4, groups) as group:
        place.store(0, (group + 1) * width, lanes)
    place.store(total.value, 0, lanes)


def write_groups(b: Function, K: Register) -> Register:
    """Write `groups_of` K rows, in the target's unit."""
    rows = 4 * group_unit(b.target)
    return (K + (rows - 1)) // rows * (rows // 4)


def multiply_bytes(
    b: Function,
    rows: Sequence[Pointer],
    words: Pointer,
    width: int,
    groups: Register,
    sums: Sequence[Variable],
    *,
    left: Type | None = None,
    flips: bool = False,
    ahead: Ahead | None = None,
) -> None:
    """Add `groups` steps of four rows of K to the sums of one tile: sums[i, j] += rows[i] . panel[j].

    Args:
        b: the function to write into.
        rows: the address of each row of A, of U32, at the first k; all of each group is read, also behind the last k. Rows are
            widened where the target has `cut_lanes`.
        words: the panel's first group of words, of I32.
        width: words from one group to the next.
        groups: how many steps.
        sums: the accumulators, int32 vectors, row by row.
        left: U8 or I8, the sign in which A is multiplied; `native_left` if None.
        flips: whether A is of the other sign than that, and the highest bits are to be turned: a little slower.
        ahead: what to fetch in the meantime.
    """
    if cut_lanes(b.target):
        multiply_pairs(b, rows, words, width, groups, sums, ahead=ahead)
        return
    lanes, vectors, kind = sums[0].type.lanes, len(sums) // len(rows), left or native_left(b.target)
    with b.loop(0, groups) as group:
        for line in range(0 if ahead is None else ahead.lines):
            if ahead is not None:
                b.prefetch(ahead.address.at(group * ahead.stride + line * lanes), locality=2)
        columns = [words.load(group * width + j * lanes, lanes) for j in range(vectors)]
        for i, row in enumerate(rows):
            factor = row.load(group, align=1).bits_as(I32)
            factor = (flip_sign(factor) if flips else factor).splat(lanes)
            for j, column in enumerate(columns):
                total = sums[i * vectors + j]
                total.set(dot4(b, total.value, factor, column, kind))
