"""Reference kernel of DeformConv."""

from __future__ import annotations

import math

import numpy as np

from sardonyx.cancellation import check_cancelled
from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.ops.views.conv import Conv
from sardonyx.providers.reference.algorithms.dimensions import check_output_size
from sardonyx.providers.reference.algorithms.precision import quiet, widen
from sardonyx.providers.reference.algorithms.sampling import linear_taps, sample
from sardonyx.providers.reference.algorithms.window import PlacedWindow, place_window
from sardonyx.providers.reference.registry import Call, kernel

__all__: list[str] = []


@kernel("DeformConv", since=19, view=Conv)
@quiet
def deform_conv(
    node: Call,
    x: Array,
    w: Array,
    offset: Array,
    b: Array | None = None,
    mask: Array | None = None,
    *,
    view: Conv,
    offset_group: int = 1,
) -> Array:
    """Convolve x (N, C, *spatial) with w (M, C / group, *kernel), each tap moved by its offset, times its mask.

    Taps between elements are interpolated linearly, those outside read zero; half types compute in float32.
    Source: ONNX DeformConv-22.
    """
    _check_operands(x, w, b, view.group, offset_group)
    window = place_window(x.shape[2:], view.window(w.shape[2:]))
    group = view.group
    _check_offsets(x, offset, mask, offset_group, window)
    check_output_size((x.shape[0], w.shape[0], *window.output), 4)
    wide, weights = widen(x), widen(w).reshape(group, w.shape[0] // group, math.prod(w.shape[1:]))
    y = np.zeros((x.shape[0], w.shape[0], *window.output), wide.dtype)
    if y.size:
        for image in range(x.shape[0]):
            check_cancelled()
            factors = None if mask is None else widen(mask[image])
            columns = _columns(wide[image], widen(offset[image]), factors, offset_group, window)
            products = np.matmul(weights, columns.reshape(group, weights.shape[2], -1))
            y[image] = products.reshape(y.shape[1:])
    if b is not None:
        y += widen(b).reshape(-1, *(1,) * (x.ndim - 2))
    return y.astype(x.dtype, copy=False)


def _columns(x: Array, offset: Array, mask: Array | None, offset_group: int, window: PlacedWindow) -> Array:
    """Return the moved windows of one image x (C, *spatial) as columns (C, taps, outputs)."""
    rank = len(window.kernel)
    taps = math.prod(window.kernel)
    shifts = offset.reshape(offset_group, taps, rank, -1)
    grid = np.indices((*window.kernel, *window.output), dtype=offset.dtype).reshape(2 * rank, taps, -1)
    channels = x.shape[0] // offset_group
    parts = []
    for index in range(offset_group):
        positions = [
            grid[axis] * window.dilations[axis]
            + grid[rank + axis] * window.strides[axis]
            - window.begins[axis]
            + shifts[index, :, axis]
            for axis in range(rank)
        ]
        axis_taps = [linear_taps(p.reshape(-1), size) for p, size in zip(positions, x.shape[1:], strict=True)]
        part = sample(x[index * channels : (index + 1) * channels], axis_taps).reshape(channels, taps, -1)
        if mask is not None:
            part *= mask.reshape(offset_group, taps, -1)[index]
        parts.append(part)
    return np.concatenate(parts)


def _check_operands(x: Array, w: Array, b: Array | None, group: int, offset_group: int) -> None:
    if x.ndim < 3 or w.ndim != x.ndim:
        raise InvalidArgument(
            f"X has shape {x.shape} and W has shape {w.shape}; expected (N, C, *spatial) and (M, C / group, *kernel)"
        )
    if x.shape[1] != w.shape[1] * group or w.shape[0] % group:
        raise InvalidArgument(f"X has {x.shape[1]} channels, W has shape {w.shape} and group = {group}; they do not agree")
    if offset_group < 1 or x.shape[1] % offset_group:
        raise InvalidArgument(f"offset_group = {offset_group} does not divide the {x.shape[1]} channels of X")
    if b is not None and b.shape != w.shape[:1]:
        raise InvalidArgument(f"B has shape {b.shape}, expected {w.shape[:1]}: one value per output channel")


def _check_offsets(x: Array, offset: Array, mask: Array | None, offset_group: int, window: PlacedWindow) -> None:
    taps, rank = math.prod(window.kernel), len(window.kernel)
    expected = (x.shape[0], offset_group * taps * rank, *window.output)
    if offset.shape != expected:
        raise InvalidArgument(f"offset has shape {offset.shape}, expected {expected}")
    expected = (x.shape[0], offset_group * taps, *window.output)
    if mask is not None and mask.shape != expected:
        raise InvalidArgument(f"mask has shape {mask.shape}, expected {expected}")
