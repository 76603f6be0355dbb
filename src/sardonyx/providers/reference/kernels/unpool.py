"""Reference kernel of MaxUnpool."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.dimensions import as_ints, check_output_size
from sardonyx.providers.reference.algorithms.window import resolve_axes_values
from sardonyx.providers.reference.registry import Call, kernel

__all__: list[str] = []


@kernel("MaxUnpool", since=9)
def max_unpool(
    node: Call,
    x: Array,
    indices: Array,
    output_shape: Array | None = None,
    *,
    kernel_shape: Sequence[int] = (),
    pads: Sequence[int] = (),
    strides: Sequence[int] = (),
) -> Array:
    """Put the elements of x (N, C, *spatial) where MaxPool's `indices` found them, zeros elsewhere. Source: ONNX MaxUnpool-22.

    Indices count in the flattened input of the pooling that kernel_shape, strides and pads describe; a larger or smaller
    output_shape pads that input with zeros or cuts it at the far ends.
    """
    if x.ndim < 3 or indices.shape != x.shape or not len(kernel_shape):
        raise InvalidArgument(
            f"X has shape {x.shape}, I has shape {indices.shape} and kernel_shape = {list(kernel_shape)}; expected "
            "(N, C, *spatial) twice and one length per spatial axis"
        )
    rank = x.ndim - 2
    kernel = resolve_axes_values("kernel_shape", kernel_shape, rank, 1, 1)
    steps = resolve_axes_values("strides", strides, rank, 1, 1)
    both = resolve_axes_values("pads", pads, 2 * rank, 0, 0)
    pooled = [
        (size - 1) * step + k - begin - end
        for size, step, k, begin, end in zip(x.shape[2:], steps, kernel, both[:rank], both[rank:], strict=True)
    ]
    shape = (*x.shape[:2], *(max(0, length) for length in pooled))
    wanted = shape if output_shape is None else as_ints(output_shape, "output_shape")
    if len(wanted) != x.ndim or min(wanted) < 0:
        raise InvalidArgument(f"output_shape = {list(wanted)}, expected {x.ndim} lengths, one per axis of X")
    check_output_size(shape, x.dtype.itemsize)
    check_output_size(wanted, x.dtype.itemsize)
    count = math.prod(shape)
    if indices.size and not (indices.min() >= 0 and indices.max() < count):
        raise InvalidArgument(f"I ranges from {indices.min()} to {indices.max()}, expected 0 to {count - 1} for shape {shape}")
    y = np.zeros(count, x.dtype)
    y[indices.reshape(-1)] = x.reshape(-1)
    y = y.reshape(shape)
    if tuple(wanted) == shape:
        return y
    result = np.zeros(wanted, x.dtype)
    shared = tuple(slice(0, min(lengths)) for lengths in zip(shape, wanted, strict=True))
    result[shared] = y[shared]
    return result
