"""Filters of 8 bits, and one number for each output channel, as convolutions made of dot products read them."""

from __future__ import annotations

from math import prod

import numpy as np

from sardonyx.codegen.emit.matrix_tiles import TILE, has_byte_tiles
from sardonyx.codegen.kernels.dot_conv import dot_tiling
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array

__all__ = ["offset_places", "pack_dot_filters", "spare_bytes"]


def spare_bytes(target: Target) -> int:
    """Return how many bytes behind packed filters the target reads: tiles take 16 fours of elements, also behind the last one."""
    return (TILE - 1) * dot_tiling(target).panel * 4 if has_byte_tiles(target) else 0


def pack_dot_filters(filters: Array, groups: int, width: int, depth: int, *, signed: bool, spare: int = 0) -> Array:
    """Return filters (M, C / groups, kernel…) of 8 bits as bytes [group][panel][run][depth / 4][width][4], in one dimension.

    Args:
        filters: int8 or uint8.
        groups: groups of channels.
        width: columns of a panel.
        depth: elements of one run; those after are zeros, and so are columns after the last.
        signed: whether the bytes are to be int8: 128 less than uint8 ones; else uint8, 128 more than int8 ones.
        spare: how many zeros there are behind them.
    """
    M, K = len(filters) // groups, int(np.prod(filters.shape[1:]))
    runs, quads = K // max(depth, 1), -(-depth // 4)
    flip = np.uint8(0x80 if signed != (filters.dtype == np.int8) else 0)
    shape = (groups, -(-M // width), runs, quads, width, 4)
    made = np.zeros(prod(shape) + spare, np.uint8)
    packed = made[: prod(shape)].reshape(shape)
    rows = np.zeros((width, runs, quads * 4), np.uint8)
    taps_first = np.moveaxis(filters.view(np.uint8), 1, -1)
    for group, panels in enumerate(packed):
        for number, panel in enumerate(panels):
            first = group * M + number * width
            block = taps_first[first : min(first + width, (group + 1) * M)]
            rows[: len(block), :, :depth] = block.reshape(len(block), runs, depth) ^ flip
            panel[:, :, : len(block)] = rows[: len(block)].reshape(len(block), runs, quads, 4).transpose(1, 2, 0, 3)
    return made


def offset_places(numbers: Array, groups: int, width: int) -> Array:
    """Return one int32 for each of M columns as [group][columns, filled up with zeros to whole panels]."""
    rows = numbers.reshape(groups, -1)
    placed = np.zeros((groups, -(-rows.shape[1] // width) * width), np.int32)
    placed[:, : rows.shape[1]] = rows
    return placed
