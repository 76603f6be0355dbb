"""Filters of 8 bits, and one number for each output channel, as convolutions made of dot products read them."""

from __future__ import annotations

from math import prod

import numpy as np

from sardonyx.codegen.emit.matrix_tiles import TILE, has_byte_tiles
from sardonyx.codegen.kernels.dot_conv import dot_tiling
from sardonyx.codegen.kernels.quantized.pairs import cut_words
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array

__all__ = ["groups_together", "merge_groups", "offset_places", "pack_dot_filters", "spare_bytes"]


def spare_bytes(target: Target) -> int:
    """Return how many bytes behind packed filters the target reads: tiles take 16 fours of elements, also behind the last one."""
    return (TILE - 1) * dot_tiling(target).panel * 4 if has_byte_tiles(target) else 0


def groups_together(groups: int, filters: int, channels: int, lanes: int) -> int:
    """Return how many neighbouring groups are best computed as one, whose filters have zeros for each other's channels.

    A vector has `lanes` columns, and a dot product takes four channels, whether a group has as many filters and channels or not.
    What decides is the count of vectors times dot products for each tap, with one more for what is around them.
    """

    def cost(together: int) -> int:
        return groups // together * -(-together * filters // lanes) * (-(-together * channels // 4) + 1)

    return min((count for count in range(1, groups + 1) if groups % count == 0), key=cost)


def merge_groups(filters: Array, groups: int, together: int, fills: tuple[int, ...]) -> Array:
    """Return filters (M, C / groups, kernel…) as those of groups / `together` groups (M, C / groups * together, kernel…).

    Args:
        filters: int8 or uint8.
        groups: groups of channels.
        together: how many neighbours become one.
        fills: what stands for 0 in all filters, or in each.
    """
    M, C = filters.shape[:2]
    numbers = np.broadcast_to(np.array(fills, filters.dtype), (M,)).reshape(-1, *(1,) * (filters.ndim - 1))
    merged = np.array(np.broadcast_to(numbers, (M, together * C, *filters.shape[2:])))
    each = M // groups
    for group in range(groups):
        first = group % together * C
        merged[group * each : (group + 1) * each, first : first + C] = filters[group * each : (group + 1) * each]
    return merged


def pack_dot_filters(filters: Array, groups: int, width: int, depth: int, *, signed: bool, spare: int = 0, cut: int = 0) -> Array:
    """Return filters (M, C / groups, kernel…) of 8 bits as bytes [group][panel][run][depth / 4][width][4], in one dimension.

    Args:
        filters: int8 or uint8.
        groups: groups of channels.
        width: columns of a panel.
        depth: elements of one run; those after are zeros, and so are columns after the last.
        signed: whether the bytes are to be int8: 128 less than uint8 ones; else uint8, 128 more than int8 ones.
        spare: how many zeros there are behind them.
        cut: how many words are cut together: the target's `cut_lanes`.
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
            cut_words(panel, cut)
    return made


def offset_places(numbers: Array, groups: int, width: int) -> Array:
    """Return one int32 for each of M columns as [group][columns, filled up with zeros to whole panels]."""
    rows = numbers.reshape(groups, -1)
    placed = np.zeros((groups, -(-rows.shape[1] // width) * width), np.int32)
    placed[:, : rows.shape[1]] = rows
    return placed
