"""Rows of float32 as pairs of bfloat16, for products of such pairs: rounded once, to nearest, ties to even.

Where the processor's instruction rounds them, denormal numbers become zeros, which its dot products take them for.

Rows in parts stand for three products at once: high is x rounded to bfloat16, low what that leaves, rounded too, and a row of A

    high | high | low        times a column of B        high | low | high

is the product but for low x low, 2^-17 of each operand at most. Where high is not finite, all but the first part are zeros, so that
an infinity gives what it gives in float32.
"""

from __future__ import annotations

import math

import numpy as np

from sardonyx.codegen.emit.bfloat_dots import to_factor
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.narrow import from_narrow
from sardonyx.codegen.emit.types import BF16, F32, U16
from sardonyx.codegen.emit.values import Span
from sardonyx.codegen.kernels.pack import aligned_zeros
from sardonyx.dtypes import Array, DataType
from sardonyx.forks import without_fork

__all__ = [
    "PAIR_BLOCK",
    "PARTS",
    "pack_filter_pairs",
    "pack_filter_tiles",
    "pack_pairs",
    "pack_parts",
    "write_pair_rows",
    "write_pairs",
    "write_part_rows",
]

PAIR_BLOCK = 1 << 12
"""Elements of a task of the kernel that rounds."""
PARTS = 3
"""Parts of a row."""
_SLAB_ELEMENTS = 1 << 20


def write_pairs(module: Module, symbol: str) -> None:
    """Write the kernel `symbol`: buffers A (float32) and pairs (bfloat16); parameter 0 is how many elements there are.

    A task is PAIR_BLOCK elements.
    """
    with module.kernel(symbol) as b:
        count, lanes = b.param(0), b.lanes(F32)
        with b.loop(b.begin, b.end) as task:
            first = task * PAIR_BLOCK
            source, result = b.buffer(0, F32).at(first), b.buffer(1, BF16).at(first)
            length = b.min(count - first, PAIR_BLOCK)
            whole = length & -lanes
            with b.loop(0, whole, lanes) as at:
                result.store(to_factor(b, source.load(at, lanes)), at, lanes)
            with b.when(whole < length):
                span = Span(lanes, b.tail_mask(length - whole, lanes))
                result.store(to_factor(b, source.load(whole, span)), whole, span)


def write_pair_rows(module: Module, symbol: str) -> None:
    """Write the kernel `symbol`: buffers A (float32) and rows (bfloat16), with zeros at their ends; a task is a row.

    Parameters are K and how many elements a row has.
    """
    with module.kernel(symbol) as b:
        K, length, lanes = b.param(0), b.param(1), b.lanes(F32)
        with b.loop(b.begin, b.end) as row:
            source, result = b.buffer(0, F32).at(row * K), b.buffer(1, BF16).at(row * length)
            for k, span in b.vectors(0, K, F32, lanes=lanes):
                result.store(to_factor(b, source.load(k, span)), k, span)
            with b.loop(K, length) as k:
                result.of(U16).store(0, k)


def write_part_rows(module: Module, symbol: str) -> None:
    """Write the kernel `symbol`: buffers A (float32) and rows (bfloat16) in parts, with zeros behind each; a task is a row.

    Parameters are K and how many elements a part has.
    """
    with module.kernel(symbol) as b:
        K, length, lanes = b.param(0), b.param(1), b.lanes(F32)
        with b.loop(b.begin, b.end) as row:
            source, result = b.buffer(0, F32).at(row * K), b.buffer(1, BF16).at(row * length * PARTS)
            for k, span in b.vectors(0, K, F32, lanes=lanes):
                x = source.load(k, span)
                high = to_factor(b, x)
                wide = from_narrow(b, high)
                is_finite = b.abs(wide) < math.inf
                low = to_factor(b, b.select(is_finite, x - wide, x.like(0.0)))
                bits = high.bits_as(U16)
                again = b.select(is_finite, bits, bits.like(0)).bits_as(BF16)
                for place, part in enumerate((high, again, low)):
                    result.store(part, length * place + k, span)
            with b.loop(K, length) as k:
                for place in range(PARTS):
                    result.of(U16).store(0, length * place + k)


def pack_parts(matrix: Array, width: int, unit: int) -> Array:
    """Return B[K, N] as `pack_pairs` has it, in parts, each of whole units."""
    matrix = np.asarray(matrix, np.float32)
    high = matrix.astype(DataType.BFLOAT16.numpy)
    wide = high.astype(np.float32)
    is_finite = np.isfinite(wide)
    first = pack_pairs(high, width, unit)
    packed = aligned_zeros((len(first), PARTS * first.shape[1], width), np.uint32)
    low = np.where(is_finite, np.subtract(matrix, wide, where=is_finite, out=np.zeros_like(matrix)), 0)
    for place, part in enumerate((high, low, np.where(is_finite, wide, 0))):
        words = first if place == 0 else pack_pairs(part, width, unit)
        packed[:, place * first.shape[1] : (place + 1) * first.shape[1]] = words
    return packed


def pack_pairs(matrix: Array, width: int, unit: int = 1) -> Array:
    """Return B[K, N] as panels [N / width][words][width] of two bfloat16 in uint32 each, rows of even k in the lower bits.

    There are K / 2 words, rounded up to a multiple of `unit`; behind the last row and column are zeros. A copy.
    """
    K, N = matrix.shape
    words = -(-K // (2 * unit)) * unit
    packed = aligned_zeros((-(-N // width), words, width), np.uint32)
    halves = packed.view(DataType.BFLOAT16.numpy).reshape(*packed.shape, 2)
    step = max(1, _SLAB_ELEMENTS // max(K * width, 1)) * width
    for start in range(0, N, step):
        part = matrix[:, start : start + step]
        count = -(-part.shape[1] // width)
        padded = np.zeros((2 * words, count * width), DataType.BFLOAT16.numpy)
        padded[:K, : part.shape[1]] = part
        panels = padded.reshape(words, 2, count, width).transpose(2, 0, 3, 1)
        halves[start // width : start // width + len(panels)] = panels
    return packed


def pack_filter_pairs(filters: Array, groups: int, width: int) -> Array:
    """Return filters (M, C / groups, kernel…), C / groups even, as `pack_filters` has them, with pairs of channels in uint32.

    [group][panel][kernel…][C / groups / 2][width]
    """
    with without_fork():
        from sardonyx.codegen.kernels.conv import pack_filters  # which products do not need

    wide = pack_filters(filters, groups, width)
    count, panels, K, _ = wide.shape
    packed = aligned_zeros((count, panels, K // 2, width), np.uint32)
    halves = packed.view(DataType.BFLOAT16.numpy).reshape(*packed.shape, 2)
    halves[:] = wide.reshape(count, panels, K // 2, 2, width).swapaxes(-1, -2)
    return packed


def pack_filter_tiles(filters: Array, groups: int, width: int, words: int, unit: int) -> Array:
    """Return what `pack_filter_pairs` does, each run of `words` filled up with zeros to a multiple of `unit`."""
    packed = pack_filter_pairs(filters, groups, width)
    count, panels, length, _ = packed.shape
    whole = aligned_zeros((count, panels, length // words, -(-words // unit) * unit, width), np.uint32)
    whole[:, :, :, :words] = packed.reshape(count, panels, length // words, words, width)
    return whole
