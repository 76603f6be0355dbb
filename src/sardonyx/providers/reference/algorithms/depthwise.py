"""Depthwise convolution with large kernels: one product per kernel row, and the rows' results added where they belong.

    columns (kw, padded plane)      the plane shifted by every column of the kernel
    rows = w (kh, kw) @ columns     for each kernel row, what it contributes to every line of the padded plane
    y[line] = sum over k of rows[k, line + k * dilation]

That copies each element kw times and not kh * kw times, as gathering whole windows would.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.providers.reference.algorithms.phases import ColumnGatherer, SlidingAxis

__all__ = ["convolve_depthwise", "suits_depthwise"]

_BLOCK_ELEMENTS = 1 << 18
"""Columns gathered at a time, in elements: they, and the rows' results, stay in cache."""
_LARGEST_PLANE = 1 << 17
"""Elements of a padded plane up to which whole planes are gathered."""
_MIN_KERNEL_ROWS = 4
"""With fewer kernel rows gathering whole windows costs no more."""


def suits_depthwise(axes: Sequence[SlidingAxis], channels: int, filters: int) -> bool:
    """Return whether groups of `channels` inputs and `filters` outputs, sliding on `axes`, are better convolved here."""
    if len(axes) != 2 or channels != 1 or filters > 2 or axes[0].kernel < _MIN_KERNEL_ROWS:
        return False
    return axes[0].stride == axes[1].stride == 1 and axes[0].length * axes[1].length <= _LARGEST_PLANE


def convolve_depthwise(x: Array, weights: Array, offsets: Array | None, axes: Sequence[SlidingAxis], y: Array) -> None:
    """Store in y (N, groups, M, H', W') the convolution of x (N, groups, 1, H, W) with weights (groups, M, kh * kw).

    `offsets` (groups, M, 1) are added. Cost: kw copies, one product and kh additions per element and filter.
    """
    down, across = axes
    lines = dataclasses.replace(down, output=down.length, kernel=1)
    gatherer = ColumnGatherer((lines, across), across.length)
    filters = weights.shape[1]
    step = max(1, _BLOCK_ELEMENTS // (across.kernel * down.length * across.length))
    used = down.output * across.length
    scratch = np.empty((min(step, x.shape[1]), filters * down.kernel, down.length * across.length), x.dtype)
    for image in range(x.shape[0]):
        for first in range(0, x.shape[1], step):
            groups = slice(first, first + step)
            gatherer.load(x[image : image + 1, groups])
            columns = gatherer.columns(slice(0, down.length))[0]
            columns = columns.reshape(*columns.shape[:2], -1)
            taps = weights[groups].reshape(len(columns), filters * down.kernel, across.kernel)
            rows = np.matmul(taps, columns, out=scratch[: len(columns)]).reshape(len(columns), filters, down.kernel, -1)
            total = rows[:, :, 0, :used]
            for k in range(1, down.kernel):
                start = k * down.dilation * across.length
                total += rows[:, :, k, start : start + used]
            if offsets is not None:
                total += offsets[groups]
            y[image, groups] = total.reshape(*total.shape[:2], down.output, across.length)[..., : across.output]
