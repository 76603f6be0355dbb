"""Pack the right side of a product, B[K, N], to panels [N / width][K][width]: constants in NumPy, others by a kernel in the run.

One task of the kernel is one panel, or some rows of a very long one. Rows that lie in order are copied by vectors; columns that
lie in order (B is a transposed matrix, as the keys of attention are) are read by vectors along K and turned in registers, a square
of lanes at a time:

    4 columns, 4 steps of K each       a0 a1 a2 a3        a0 b0 c0 d0
                                       b0 b1 b2 b3   ->   a1 b1 c1 d1     4 rows of the panel
                                       c0 c1 c2 c3        a2 b2 c2 d2
                                       d0 d1 d2 d3        a3 b3 c3 d3

Columns behind the last are filled with zeros.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import F32, Type
from sardonyx.codegen.emit.values import Pointer, Register, Span
from sardonyx.dtypes import Array
from sardonyx.lazy_dataclasses import dataclass

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

__all__ = ["CACHE_LINE", "PACK_PARAMS", "PackParams", "aligned_zeros", "pack_columns", "pack_rows", "write_pack"]

CACHE_LINE = 64
"""Bytes of a cache line, and of the widest vector."""

_BLOCK_ELEMENTS = 1 << 17
"""How many elements of weights are in memory while they are packed, besides the panels."""

_PART_ROWS = 1 << 16
"""Rows of a panel that one task copies at most: a run can only be ended between tasks."""

_PARAMS = ("K", "N", "stride_k", "stride_n", "stride_batch")
PACK_PARAMS = len(_PARAMS)
"""How many parameters a kernel has that packs."""


@dataclass(frozen=True, slots=True)
class PackParams:
    """The integer parameters of the kernel, in their order. Strides count elements."""

    K: int
    """Rows of B."""
    N: int
    """Columns of B."""
    stride_k: int
    """From one row of B to the next."""
    stride_n: int
    """From one column of B to the next."""
    stride_batch: int = 0
    """From one matrix of a batch to the next; the packed ones lie one after the other."""

    def words(self) -> list[int]:
        """Return the parameters as the kernel reads them."""
        return [getattr(self, name) for name in _PARAMS]

    def tasks(self, width: int, batch: int = 1) -> int:
        """Return how many panels of `width` a batch is."""
        return batch * -(-self.N // width)

    def parts(self, width: int, batch: int = 1) -> int:
        """Return how many tasks it is to pack a batch of numbers into panels of `width`."""
        return self.tasks(width, batch) * -(-self.K // _PART_ROWS)


def write_pack(module: Module, symbol: str, width: int, element: Type = F32) -> None:
    """Write the kernel `symbol`: buffers B and the panels, of `element`; parameters as in PackParams.

    `width` is a multiple of the vector's lanes. B may lie in memory in any way; it is fast where one of its strides is 1.
    """
    lanes = module.target.lanes(element.bits)
    with module.kernel(symbol) as b:
        K, N, stride_k, stride_n, stride_batch = (b.param(place) for place in range(len(_PARAMS)))
        panels, parts = (N + width - 1) // width, b.max((K + _PART_ROWS - 1) // _PART_ROWS, 1)
        with b.loop(b.begin, b.end) as task:
            number, k = task // parts, task % parts * _PART_ROWS
            n, rows = number % panels * width, b.min(K - k, _PART_ROWS)
            source = b.buffer(0, element).at(number // panels * stride_batch + k * stride_k + n * stride_n)
            panel = b.buffer(1, element).at((number * K + k) * width)
            columns = b.min(N - n, width)

            def copy_rows(
                source: Pointer = source, panel: Pointer = panel, columns: Register = columns, rows: Register = rows
            ) -> None:
                _copy_rows(b, source, panel, rows, stride_k, columns, width)

            def turn_columns(
                source: Pointer = source, panel: Pointer = panel, columns: Register = columns, rows: Register = rows
            ) -> None:
                with b.loop(0, width, lanes) as first:
                    steps = rows, stride_k, stride_n
                    _turn_columns(b, source.at(first * stride_n), panel.at(first), steps, columns - first, width)

            b.branch(stride_n.eq(1), copy_rows, turn_columns)


def _copy_rows(b: Kernel, source: Pointer, panel: Pointer, K: Register, stride_k: Register, columns: Register, width: int) -> None:
    lanes = b.lanes(panel.element)
    with b.loop(0, K) as k:
        for j in range(0, width, lanes):
            remaining = b.max(b.min(columns - j, lanes), 0)
            mask = b.tail_mask(remaining, lanes)
            panel.store(source.load(k * stride_k + j, Span(lanes, mask)), k * width + j, lanes)


def _turn_columns(
    b: Kernel, source: Pointer, panel: Pointer, steps: tuple[Register, Register, Register], columns: Register, width: int
) -> None:
    """Write `lanes` columns of the panel: squares where the columns lie in order, one row of them at a time where not."""
    lanes = b.lanes(panel.element)
    K, stride_k, stride_n = steps
    squares = b.variable(b.const(K.type, 0))
    with b.when(stride_k.eq(1) & (columns >= lanes)):
        squares.set(K & -lanes)
    with b.loop(0, squares.value, lanes) as k:
        rows = transpose(b, [source.at(column * stride_n).load(k, lanes) for column in range(lanes)])
        for step, row in enumerate(rows):
            panel.store(row, (k + step) * width, lanes)
    mask = b.tail_mask(b.max(b.min(columns, lanes), 0), lanes)
    places = b.iota(K.type, lanes) * stride_n
    with b.loop(squares.value, K) as k:
        panel.store(source.at(k * stride_k).gather(places, mask), k * width, lanes)


def transpose(b: Function, rows: Sequence[Register]) -> list[Register]:
    """Turn a square of lanes: rows become columns, in log2(lanes) rounds that each interleave half a square with the other."""
    count = len(rows)
    turned = list(rows)
    for _ in range(count.bit_length() - 1):
        halves = zip(turned[: count // 2], turned[count // 2 :], strict=True)
        turned = [half for low, high in halves for half in _interleaved(b, low, high)]
    return turned


def _interleaved(b: Function, low: Register, high: Register) -> tuple[Register, Register]:
    """Return low[0], high[0], low[1], … as two vectors."""
    count = low.type.lanes
    order = [lane for pair in zip(range(count), range(count, 2 * count), strict=True) for lane in pair]
    return low.shuffle(order[:count], high), low.shuffle(order[count:], high)


def pack_columns(matrix: Array, width: int, dtype: DTypeLike = np.float32) -> Array:
    """Return B[K, N] as panels [N / width][K][width] of `dtype`, the last one filled with zeros; a copy."""
    K, N = matrix.shape
    packed = aligned_zeros((-(-N // width), K, width), dtype)
    _store_panels(packed, matrix)
    return packed


def pack_rows(
    rows: Callable[[int, int], Array], shape: tuple[int, int], width: int, *, is_transposed: bool, dtype: DTypeLike = np.float32
) -> Array:
    """Return `pack_columns` of a matrix that is had by its rows, which are asked for in order, some MiB at a time.

    Args:
        rows: gives the rows [start, stop).
        shape: K, N; or N, K where `is_transposed`: the rows are then those of the transposed matrix.
        width: the width of a panel.
        is_transposed: whether `rows` are columns of B.
        dtype: the type of the panels' elements.
    """
    count, length = shape
    K, N = (length, count) if is_transposed else (count, length)
    packed = aligned_zeros((-(-N // width), K, width), dtype)
    step = -(-max(1, _BLOCK_ELEMENTS // max(length, 1)) // width) * width
    for start in range(0, count, step):
        stop = min(start + step, count)
        if is_transposed:
            _store_panels(packed[start // width : -(-stop // width)], rows(start, stop).T)
        else:
            _store_panels(packed[:, start:stop], rows(start, stop))
    return packed


def aligned_zeros(shape: tuple[int, ...], dtype: DTypeLike = np.float32) -> Array:
    """Return zeros that begin at a cache line: vectors that cross lines are read at half the speed."""
    size_bytes = math.prod(shape) * np.dtype(dtype).itemsize
    raw = np.zeros(size_bytes + CACHE_LINE, np.uint8)
    first = -raw.ctypes.data % CACHE_LINE
    return raw[first : first + size_bytes].view(dtype).reshape(shape)


def _store_panels(packed: Array, matrix: Array) -> None:
    K, N = matrix.shape
    width = packed.shape[2]
    whole = N // width
    packed[:whole] = matrix[:, : whole * width].reshape(K, whole, width).transpose(1, 0, 2)
    if whole * width < N:
        packed[whole, :, : N - whole * width] = matrix[:, whole * width :]
