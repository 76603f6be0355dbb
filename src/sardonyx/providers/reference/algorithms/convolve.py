"""Convolution as matrix products: windows are gathered into columns, block by block, and multiplied by the weights."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

import numpy as np

from sardonyx.cancellation import check_cancelled
from sardonyx.dtypes import Array
from sardonyx.providers.reference.algorithms.depthwise import convolve_depthwise, suits_depthwise
from sardonyx.providers.reference.algorithms.phases import ColumnGatherer, SlidingAxis, sliding_axes
from sardonyx.providers.reference.algorithms.window import PlacedWindow

__all__ = ["convolve"]

_BLOCK_ELEMENTS = 1 << 18
"""Columns gathered at a time, in elements: 1 MiB of float32, about one L2 cache."""
_MIN_COLUMNS = 256
"""A product is not cut into fewer columns than this: narrow products waste the packing of the weights."""
_FEW_PIXELS = 256
"""Up to this many pixels a pointwise convolution is summed in float64."""
_FEW_FILTERS = 8
"""Below this many filters per group the gathering costs more than the product: rows are gathered with their surplus."""


def convolve(x: Array, w: Array, bias: Array | None, group: int, window: PlacedWindow) -> Array:
    """Convolve x (N, C, *spatial) with w (M, C / group, *kernel), add bias (M,); return (N, M, *window.output).

    All have one type that `np.matmul` multiplies, the result's; the geometry has been checked. Scratch: the columns and
    the padded input of one block.
    """
    y = np.empty((x.shape[0], w.shape[0], *window.output), x.dtype)
    if y.size == 0:
        return y
    if w.size == 0 or x.size == 0:
        y[...] = 0 if bias is None else bias.reshape(-1, *(1,) * (x.ndim - 2))
        return y
    if _is_pointwise(window, x.shape[2:]):
        _multiply_pixels(x, w, bias, group, y)
        return y
    axes = sliding_axes(x.shape[2:], window)
    outputs = [axis.output for axis in axes]
    filters = w.shape[0] // group
    source = x.reshape(x.shape[0], group, -1, *(axis.size for axis in axes))
    weights = w.reshape(group, filters, -1)
    offsets = None if bias is None else bias.reshape(group, filters, 1)
    if suits_depthwise(axes, w.shape[1], filters):
        convolve_depthwise(source, weights, offsets, axes, y.reshape(y.shape[0], group, filters, *outputs))
        return y
    blocks = _plan_blocks(axes, x.shape[0], group, w.shape[1], filters)
    flat = y.reshape(y.shape[0], group, filters, -1)
    columns_per_row = math.prod(outputs[1:])
    gatherer = ColumnGatherer(axes, blocks.width)
    for images, groups in blocks.images_and_groups():
        gatherer.load(source[images, groups])
        for rows in blocks.rows_of(outputs[0]):
            columns = gatherer.columns(rows)
            target = flat[images, groups, :, rows.start * columns_per_row : rows.stop * columns_per_row]
            offset = None if offsets is None else offsets[groups]
            _multiply(weights[groups], columns, offset, target, outputs[-1])
    return y


def _is_pointwise(window: PlacedWindow, spatial: tuple[int, ...]) -> bool:
    return max(window.kernel) == 1 and max(window.strides) == 1 and window.output == spatial


def _multiply_pixels(x: Array, w: Array, bias: Array | None, group: int, y: Array) -> None:
    """Store in y the convolution of x with one tap per filter: the pixels are the columns already.

    A classifier's last layer has few pixels and sums over all channels. BLAS sums rows of a product in orders that depend on
    their place, the processor and the number of threads; summed in float64 and rounded once, equal filters give equal scores.
    """
    if y.dtype == np.float32 and math.prod(x.shape[2:]) <= _FEW_PIXELS:
        wide = np.empty(y.shape, np.float64)
        _multiply_pixels(x.astype(np.float64), w.astype(np.float64), bias, group, wide)
        y[...] = wide
        return
    weights = w.reshape(group, w.shape[0] // group, w.shape[1])
    pixels = x.reshape(x.shape[0], group, w.shape[1], -1)
    target = y.reshape(y.shape[0], group, weights.shape[1], -1)
    np.matmul(weights, pixels, out=target)
    if bias is not None:
        target += bias.reshape(group, -1, 1)


def _multiply(weights: Array, columns: Array, offset: Array | None, target: Array, width: int) -> None:
    """Store weights (g, M, K) times columns (n, g, K, ..., width or more) plus offset in target (n, g, M, L)."""
    factors = columns.reshape(*columns.shape[:3], -1)
    if factors.shape[-1] == target.shape[-1]:
        np.matmul(weights, factors, out=target)
        if offset is not None:
            target += offset
        return
    product = np.matmul(weights, factors).reshape(*target.shape[:3], -1, columns.shape[-1])[..., :width]
    rows = target.reshape(product.shape)
    if offset is None:
        rows[...] = product
    else:
        np.add(product, offset[..., None], out=rows)


@dataclasses.dataclass(frozen=True, slots=True)
class _Blocks:
    """How a convolution is cut so that what is gathered at a time stays in cache."""

    images: int
    """Images in the batch."""
    groups: int
    """Groups."""
    images_per_block: int
    """Images gathered at a time."""
    groups_per_block: int
    """Groups gathered at a time."""
    rows_per_block: int
    """Outputs along the first axis gathered at a time."""
    width: int
    """Gathered elements per output row."""

    def images_and_groups(self) -> Iterator[tuple[slice, slice]]:
        """Yield the blocks of images and groups, in order; raises as `check_cancelled` between them."""
        for image in range(0, self.images, self.images_per_block):
            for group in range(0, self.groups, self.groups_per_block):
                check_cancelled()
                yield slice(image, image + self.images_per_block), slice(group, group + self.groups_per_block)

    def rows_of(self, output: int) -> Iterator[slice]:
        """Yield the blocks of rows of a first axis of length `output`; raises as `check_cancelled` between them."""
        for row in range(0, output, self.rows_per_block):
            check_cancelled()
            yield slice(row, min(row + self.rows_per_block, output))


def _plan_blocks(axes: tuple[SlidingAxis, ...], images: int, groups: int, channels: int, filters: int) -> _Blocks:
    taps = math.prod(axis.kernel for axis in axes)
    last = axes[-1]
    width = last.length if len(axes) > 1 and taps > 1 and filters < _FEW_FILTERS else last.output
    rows = axes[0].output
    columns_per_row = math.prod(axis.output for axis in axes[1:-1]) * width if len(axes) > 1 else 1
    row_elements = max(1, channels * taps * columns_per_row)
    if row_elements * rows <= _BLOCK_ELEMENTS:
        at_once = _BLOCK_ELEMENTS // (row_elements * rows)
        return _Blocks(images, groups, max(1, at_once // groups), min(groups, at_once), rows, width)
    most = max(_BLOCK_ELEMENTS // row_elements, -(-_MIN_COLUMNS // columns_per_row))
    return _Blocks(images, groups, 1, 1, -(-rows // -(-rows // most)), width)
