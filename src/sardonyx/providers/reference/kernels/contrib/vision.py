"""Operators of com.microsoft on images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.ops.views.pool import Pool
from sardonyx.providers.reference.algorithms.dimensions import check_output_size
from sardonyx.providers.reference.algorithms.precision import quiet, widen
from sardonyx.providers.reference.algorithms.window import PlacedWindow, place_window
from sardonyx.providers.reference.kernels.delegate import run_standard
from sardonyx.providers.reference.registry import Call, kernel

__all__ = ["conv_transpose_with_dynamic_pads", "crop_and_resize", "maxpool_with_mask"]

_MICROSOFT = "com.microsoft"


@kernel("ConvTransposeWithDynamicPads", domain=_MICROSOFT)
def conv_transpose_with_dynamic_pads(
    call: Call,
    x: Array,
    w: Array,
    pads: Array | None = None,
    b: Array | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] = (),
    group: int = 1,
    kernel_shape: Sequence[int] = (),
    output_padding: Sequence[int] = (),
    strides: Sequence[int] = (),
) -> Array:
    """Compute ConvTranspose of ai.onnx with the padding as an input, int64 (2 x spatial axes). Source: com.microsoft.

    The padding counts where `auto_pad` is VALID too, as in ONNX Runtime.
    """
    given = () if pads is None else tuple(int(pad) for pad in pads.ravel())
    y: Array = run_standard(
        "ConvTranspose",
        x,
        w,
        b,
        auto_pad="NOTSET" if auto_pad == "VALID" else auto_pad,
        dilations=dilations,
        group=group,
        kernel_shape=kernel_shape,
        output_padding=output_padding,
        pads=given,
        strides=strides,
    )
    return y


@kernel("CropAndResize", domain=_MICROSOFT)
@quiet
def crop_and_resize(
    call: Call,
    x: Array,
    rois: Array,
    batch_indices: Array,
    crop_size: Array,
    *,
    extrapolation_value: float = 0.0,
    mode: str = "bilinear",
) -> Array:
    """Resize regions of images x (N, C, H, W) to one size: (regions, C, height, width).

    A region is (y1, x1, y2, x2) with 0 and 1 at the centers of the first and the last pixel; points outside of the image get
    `extrapolation_value`. Source: com.microsoft CropAndResize; TensorFlow's crop_and_resize.
    """
    if x.ndim != 4 or rois.ndim != 2 or rois.shape[1] != 4 or batch_indices.shape != rois.shape[:1] or crop_size.size != 2:
        raise InvalidArgument(
            f"X, rois, batch_indices and crop_size have shapes {x.shape}, {rois.shape}, {batch_indices.shape}, {crop_size.shape}; "
            "expected (N, C, H, W), (R, 4), (R,) and (2,)"
        )
    if mode not in ("bilinear", "nearest"):
        raise InvalidArgument(f"mode is {mode!r}; expected bilinear or nearest")
    height, width = (int(size) for size in crop_size.ravel())
    if height < 1 or width < 1:
        raise InvalidArgument(f"crop_size is ({height}, {width}); both must be at least 1")
    if 0 in x.shape[2:]:
        raise InvalidArgument(f"X has shape {x.shape}; images need at least one pixel")
    if batch_indices.size and (batch_indices.min() < 0 or batch_indices.max() >= x.shape[0]):
        raise InvalidArgument(f"batch_indices holds {batch_indices.tolist()[:8]}; X has {x.shape[0]} images")
    check_output_size((len(rois), x.shape[1], height, width), 4)
    y: Array = np.empty((len(rois), x.shape[1], height, width), np.float64 if x.dtype == np.float64 else np.float32)
    for out, roi, index in zip(y, widen(rois), batch_indices, strict=True):
        rows, is_row = _points(roi[0], roi[2], height, x.shape[2])
        columns, is_column = _points(roi[1], roi[3], width, x.shape[3])
        sampled = _sampled(widen(x[index]), rows, columns, mode)
        out[...] = np.where(is_row[:, None] & is_column, sampled, y.dtype.type(extrapolation_value))
    return y.astype(x.dtype, copy=False)


def _points(begin: np.floating, end: np.floating, count: int, size: int) -> tuple[Array, Array]:
    """Return where `count` points lie on an axis of `size` pixels, and which of them lie on it."""
    last = begin.dtype.type(size - 1)
    if count > 1:
        places = begin * last + np.arange(count, dtype=begin.dtype) * ((end - begin) * last / begin.dtype.type(count - 1))
    else:
        places = np.asarray([begin.dtype.type(0.5) * (begin + end) * last])
    return places, (places >= 0) & (places <= last)


def _sampled(image: Array, rows: Array, columns: Array, mode: str) -> Array:
    """Return (C, rows, columns) of an image (C, H, W); points outside take any pixel."""
    limits = [size - 1 for size in image.shape[1:]]
    if mode == "nearest":
        near = [np.clip(np.round(places), 0, limit).astype(np.int64) for places, limit in zip((rows, columns), limits, strict=True)]
        taken: Array = image[:, near[0][:, None], near[1]]
        return taken
    low = [np.clip(np.floor(places), 0, limit).astype(np.int64) for places, limit in zip((rows, columns), limits, strict=True)]
    high = [np.clip(np.ceil(places), 0, limit).astype(np.int64) for places, limit in zip((rows, columns), limits, strict=True)]
    down, right = (rows - low[0])[:, None], columns - low[1]
    top = _lines(image, low[0], low[1], high[1], right)
    bottom = _lines(image, high[0], low[1], high[1], right)
    mixed: Array = top + (bottom - top) * down
    return mixed


def _lines(image: Array, rows: Array, left: Array, right: Array, weight: Array) -> Array:
    begin: Array = image[:, rows[:, None], left]
    mixed: Array = begin + (image[:, rows[:, None], right] - begin) * weight
    return mixed


@kernel("MaxpoolWithMask", domain=_MICROSOFT, view=Pool)
def maxpool_with_mask(
    call: Call,
    x: Array,
    mask: Array,
    *,
    view: Pool,
) -> Array:
    """Compute the maximum of each window, each of whose rows ends where the mask is 0.

    Where there are several spatial axes, the mask's first element of all counts as 1, as in ONNX Runtime.

    x (N, C, *spatial); the first plane of the mask, int32 of as many axes, serves every image and channel, as in ONNX Runtime.
    A window without elements gives the lowest number. Source: com.microsoft MaxpoolWithMask.
    """
    if x.dtype.kind != "f":
        raise InvalidArgument(f"X is of type {x.dtype}; expected floating-point numbers")
    if mask.ndim != x.ndim or mask.shape[2:] != x.shape[2:] or 0 in mask.shape[:2]:
        raise InvalidArgument(
            f"the mask has shape {mask.shape}; expected rank {x.ndim} and the spatial axes of X, of shape {x.shape}"
        )
    window = place_window(x.shape[2:], view.window)
    check_output_size((*x.shape[:2], *window.output), x.dtype.itemsize)
    lowest = np.finfo(x.dtype).min
    plane = mask[0, 0] != 0
    if plane.size and plane.ndim > 1:
        plane = plane.copy()
        plane.flat[0] = True
    margins = list(zip(window.begins, window.ends, strict=True))
    padded = np.pad(x, [(0, 0), (0, 0), *margins], constant_values=lowest)
    seen = np.logical_and.accumulate(_windows(np.pad(plane, margins, constant_values=True), window), axis=-1)
    axes = tuple(range(-len(window.kernel), 0))
    y: Array = np.where(seen, _windows(padded, window), lowest).max(axes, initial=lowest)
    return y


def _windows(array: Array, window: PlacedWindow) -> Array:
    """Return the windows over the last axes of a padded array: (…, *output, *kernel)."""
    rank = len(window.kernel)
    axes = tuple(range(array.ndim - rank, array.ndim))
    every: Array = np.lib.stride_tricks.sliding_window_view(array, window.kernel, axes)
    steps = tuple(slice(None, stride * count, stride) for stride, count in zip(window.strides, window.output, strict=True))
    place: tuple[Any, ...] = (..., *steps, *(slice(None),) * rank)
    taken: Array = every[place]
    return taken
