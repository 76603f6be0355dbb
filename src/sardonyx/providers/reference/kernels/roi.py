"""Reference kernels of pooling over regions: RoiAlign, MaxRoiPool."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sardonyx.cancellation import check_cancelled
from sardonyx.config import LIMITS
from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.dimensions import check_output_size
from sardonyx.providers.reference.algorithms.precision import quiet, widen
from sardonyx.providers.reference.registry import Call, kernel

__all__: list[str] = []

_BLOCK_ELEMENTS = 1 << 22
"""Elements sampled at a time."""
_MOST_SAMPLES = 1 << 20
"""A region that asks for more sample rows or columns than this is an error: no feature map has as many."""


@kernel("RoiAlign", since=10)
def roi_align_10(
    node: Call,
    x: Array,
    rois: Array,
    batch_indices: Array,
    *,
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Array:
    """Compute as RoiAlign-16 with coordinate_transformation_mode "output_half_pixel". Source: ONNX RoiAlign-10."""
    return _roi_align(x, rois, batch_indices, False, mode, (output_height, output_width), sampling_ratio, spatial_scale)


@kernel("RoiAlign", since=16)
def roi_align_16(
    node: Call,
    x: Array,
    rois: Array,
    batch_indices: Array,
    *,
    coordinate_transformation_mode: str = "half_pixel",
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Array:
    """Pool bilinear samples of x (N, C, H, W) over rois (R, 4) of images batch_indices (R,).

    The result has shape (R, C, output_height, output_width). "max" takes the largest of the four weighted neighbours of all
    samples, as the standard's own cases do. Half types compute in float32. Source: ONNX RoiAlign-22.
    """
    if coordinate_transformation_mode not in ("half_pixel", "output_half_pixel"):
        raise InvalidArgument(
            f"coordinate_transformation_mode = {coordinate_transformation_mode!r}, expected half_pixel or output_half_pixel"
        )
    shifted = coordinate_transformation_mode == "half_pixel"
    return _roi_align(x, rois, batch_indices, shifted, mode, (output_height, output_width), sampling_ratio, spatial_scale)


@quiet
def _roi_align(
    x: Array,
    rois: Array,
    batch_indices: Array,
    shifted: bool,
    mode: str,
    output: tuple[int, int],
    sampling_ratio: int,
    spatial_scale: float,
) -> Array:
    _check_regions(x, rois, batch_indices, mode, output, sampling_ratio)
    corners = widen(rois) * np.float32(spatial_scale) - np.float32(0.5 if shifted else 0)
    starts, lengths = corners[:, 1::-1], corners[:, :1:-1] - corners[:, 1::-1]
    if not shifted:
        lengths = np.maximum(lengths, 1)
    bins = lengths / np.asarray(output, lengths.dtype)
    counts = np.full(bins.shape, sampling_ratio, np.int64)
    if not sampling_ratio:
        if bins.size and not bool(np.all(bins <= _MOST_SAMPLES)):
            raise InvalidArgument(f"rois hold a region of {float(bins.max())} elements per bin, expected at most 2^20")
        counts = np.ceil(bins).astype(np.int64)
    pixels = np.ascontiguousarray(widen(x).transpose(0, 2, 3, 1))
    y = np.zeros((len(rois), *output, x.shape[1]), pixels.dtype)
    for rows, columns in {(int(rows), int(columns)) for rows, columns in counts}:
        if rows < 1 or columns < 1:
            continue
        _check_samples(rows * output[0], columns * output[1], x.shape[1])
        members = np.flatnonzero((counts[:, 0] == rows) & (counts[:, 1] == columns))
        step = max(1, _BLOCK_ELEMENTS // max(1, x.shape[1] * output[0] * output[1] * rows * columns))
        for start in range(0, len(members), step):
            check_cancelled()
            part = members[start : start + step]
            taps = [
                _region_taps(starts[part, axis], bins[part, axis], output[axis], samples, x.shape[2 + axis])
                for axis, samples in ((0, rows), (1, columns))
            ]
            y[part] = _pool_samples(pixels, batch_indices[part], taps, (output[0], rows, output[1], columns), mode)
    return y.transpose(0, 3, 1, 2).astype(x.dtype, copy=False)


def _check_samples(rows: int, columns: int, channels: int) -> None:
    needed = rows * columns * channels * 4
    if needed > LIMITS.tensor_bytes:
        raise InvalidArgument(
            f"a region is sampled {rows} x {columns} times over {channels} channels, that is {needed} bytes; at most "
            f"{LIMITS.tensor_bytes} are allowed: check rois and sampling_ratio, or raise SARDONYX_MAX_TENSOR_BYTES"
        )


def _check_regions(x: Array, rois: Array, batch_indices: Array, mode: str, output: tuple[int, int], sampling_ratio: int) -> None:
    if x.ndim != 4 or rois.ndim != 2 or rois.shape[1] != 4 or batch_indices.shape != rois.shape[:1]:
        raise InvalidArgument(
            f"X has shape {x.shape}, rois {rois.shape} and batch_indices {batch_indices.shape}; expected (N, C, H, W), (R, 4) "
            "and (R,)"
        )
    if mode not in ("avg", "max"):
        raise InvalidArgument(f"mode = {mode!r}, expected avg or max")
    if min(output) < 1 or not 0 <= sampling_ratio <= _MOST_SAMPLES:
        raise InvalidArgument(
            f"output_height, output_width = {output} and sampling_ratio = {sampling_ratio}; expected lengths of at least 1 and "
            "a ratio from 0 to 2^20"
        )
    if batch_indices.size and not (batch_indices.min() >= 0 and batch_indices.max() < x.shape[0]):
        raise InvalidArgument(
            f"batch_indices range from {batch_indices.min()} to {batch_indices.max()}, but X has {x.shape[0]} images"
        )
    if rois.size and 0 in x.shape[2:]:
        raise InvalidArgument(f"X has shape {x.shape}: nothing can be pooled from an empty axis")
    check_output_size((len(rois), x.shape[1], *output), 4)


_RegionTaps = list[tuple[Array, Array]]
"""For one axis, two neighbours of each sample: their indices (R, samples) and weights (R, samples)."""


def _region_taps(start: Array, length: Array, output: int, samples: int, size: int) -> _RegionTaps:
    steps = (np.arange(output * samples, dtype=start.dtype) + start.dtype.type(0.5)) / start.dtype.type(samples)
    at = start[:, None] + steps * length[:, None]
    inside = (at >= -1) & (at <= size)
    at = np.clip(np.where(inside, at, 0), 0, size - 1)
    below = np.minimum(np.floor(at), size - 1)
    fraction = at - below
    index = below.astype(np.intp)
    return [
        (index, np.where(inside, 1 - fraction, 0).astype(start.dtype)),
        (np.minimum(index + 1, size - 1), np.where(inside, fraction, 0).astype(start.dtype)),
    ]


def _pool_samples(pixels: Array, images: Array, taps: Sequence[_RegionTaps], split: tuple[int, int, int, int], mode: str) -> Array:
    """Blend the neighbours of every sample of pixels (N, H, W, C) and pool each bin into (R, output, output, C)."""
    total: Array | None = None
    for rows, row_weights in taps[0]:
        for columns, column_weights in taps[1]:
            term = pixels[images[:, None, None], rows[:, :, None], columns[:, None, :]]
            term *= (row_weights[:, :, None] * column_weights[:, None, :])[..., None]
            if total is None:
                total = term
            else:
                (np.maximum if mode == "max" else np.add)(total, term, out=total)
    assert total is not None, "every axis has two taps"
    binned = total.reshape(len(images), *split, pixels.shape[3])
    return np.asarray(binned.max(axis=(2, 4)) if mode == "max" else binned.mean(axis=(2, 4)))


@kernel("MaxRoiPool")
@quiet
def max_roi_pool(node: Call, x: Array, rois: Array, *, pooled_shape: Sequence[int] = (), spatial_scale: float = 1.0) -> Array:
    """Compute the maxima of x (N, C, H, W) over a grid of pooled_shape on each of rois (R, 5), 0 for an empty cell.

    A region is image, x1, y1, x2, y2, rounded to elements, ends included. Source: ONNX MaxRoiPool-22, after Fast R-CNN.
    """
    if x.ndim != 4 or rois.ndim != 2 or rois.shape[1] != 5 or len(pooled_shape) != 2 or min(pooled_shape) < 1:
        raise InvalidArgument(
            f"X has shape {x.shape}, rois {rois.shape} and pooled_shape = {list(pooled_shape)}; expected (N, C, H, W), (R, 5) "
            "and two positive lengths"
        )
    images = rois[:, 0].astype(np.int64)
    if images.size and not (images.min() >= 0 and images.max() < x.shape[0]):
        raise InvalidArgument(f"rois name images {images.min()} to {images.max()}, but X has {x.shape[0]}")
    check_output_size((len(rois), x.shape[1], *pooled_shape), x.dtype.itemsize)
    corners = np.clip(_round_half_away(rois[:, 1:].astype(np.float64) * spatial_scale), -(1 << 40), 1 << 40)
    y = np.zeros((len(rois), x.shape[1], *pooled_shape), x.dtype)
    for index, (left, top, right, bottom) in enumerate(corners.astype(np.int64).tolist()):
        check_cancelled()
        cells_down = _cells(top, bottom, pooled_shape[0], x.shape[2])
        cells_across = _cells(left, right, pooled_shape[1], x.shape[3])
        for row, down in enumerate(cells_down):
            if down.start >= down.stop:
                continue
            maxima = x[images[index], :, down].max(axis=1)
            for column, across in enumerate(cells_across):
                if across.start < across.stop:
                    y[index, :, row, column] = maxima[:, across].max(axis=1)
    return y


def _round_half_away(x: Array) -> Array:
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


def _cells(first: int, last: int, count: int, size: int) -> list[slice]:
    """Return the elements of each of `count` equal cells from `first` to `last`, neighbours overlapping by what they share."""
    length = np.float32(max(1, last - first + 1)) / np.float32(count)
    edges = np.arange(count + 1, dtype=np.float32) * length
    starts = np.clip(np.floor(edges[:-1]).astype(np.int64) + first, 0, size)
    stops = np.clip(np.ceil(edges[1:]).astype(np.int64) + first, 0, size)
    return [slice(int(start), int(stop)) for start, stop in zip(starts, stops, strict=True)]
