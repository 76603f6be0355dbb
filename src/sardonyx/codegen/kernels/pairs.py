"""Rows of float32 as pairs of bfloat16, for products of such pairs: rounded once, to nearest, ties to even."""

from __future__ import annotations

import numpy as np

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.narrow import to_narrow
from sardonyx.codegen.emit.types import BF16, F32
from sardonyx.codegen.emit.values import Span
from sardonyx.codegen.kernels.gemm import aligned_zeros
from sardonyx.dtypes import Array, DataType
from sardonyx.forks import without_fork

__all__ = ["PAIR_BLOCK", "pack_filter_pairs", "pack_pairs", "write_pairs"]

PAIR_BLOCK = 1 << 12
"""Elements of a task of the kernel that rounds."""
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
                result.store(to_narrow(b, source.load(at, lanes), BF16), at, lanes)
            with b.when(whole < length):
                span = Span(lanes, b.tail_mask(length - whole, lanes))
                result.store(to_narrow(b, source.load(whole, span), BF16), whole, span)


def pack_pairs(matrix: Array, width: int) -> Array:
    """Return B[K, N], K even, as panels [N / width][K / 2][width] of two bfloat16 in uint32 each, rows of even k in the lower bits.

    The last panel is filled with zeros; a copy.
    """
    K, N = matrix.shape
    packed = aligned_zeros((-(-N // width), K // 2, width), np.uint32)
    halves = packed.view(DataType.BFLOAT16.numpy).reshape(*packed.shape, 2)
    step = max(1, _SLAB_ELEMENTS // max(K * width, 1)) * width
    for start in range(0, N, step):
        part = matrix[:, start : start + step]
        padded = np.zeros((K, -(-part.shape[1] // width) * width), DataType.BFLOAT16.numpy)
        padded[:, : part.shape[1]] = part
        panels = padded.reshape(K // 2, 2, -1, width).transpose(2, 0, 3, 1)
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
