"""Two tensors under one ufunc: NumPy-style broadcasting with messages, and the limited broadcasting of opsets 1 to 6."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.dimensions import check_broadcast_size
from sardonyx.providers.reference.algorithms.half import from_half, to_half
from sardonyx.providers.reference.algorithms.precision import require_same_type

__all__ = ["BinaryFunction", "align_old", "combine"]

BinaryFunction = Callable[[Array, Array], Array]
"""A ufunc of two arrays, or what broadcasts as one does."""


def combine(function: BinaryFunction, a: Array, b: Array) -> Array:
    """Return `function(a, b)` for tensors of one type; raises InvalidArgument where types differ or shapes do not broadcast."""
    if a.dtype != b.dtype:
        require_same_type(a, b)
    if a.shape != b.shape:
        check_broadcast_size(a, b)
    try:
        if a.dtype == np.float16:
            result = np.asarray(function(from_half(a), from_half(b)))
            return to_half(result) if result.dtype == np.float32 else result
        return np.asarray(function(a, b))
    except ValueError as error:
        raise InvalidArgument(
            f"shapes {a.shape} and {b.shape} do not broadcast together; expected equal sizes, or 1, counted from the last axis"
        ) from error


def align_old(a: Array, b: Array, axis: int | None, broadcast: int) -> Array:
    """View `b` so that it broadcasts to `a` by the rules of opsets 1 to 6 (ONNX Add-1).

    Without `broadcast` the shapes must be equal. With it, `b` has one element, or its shape is a run of the shape of `a` that
    starts at `axis`; without `axis`, the run is the end of the shape. Sizes of 1 in
    the run pass: exporters of that time wrote them.
    """
    if not broadcast:
        if a.shape != b.shape:
            raise InvalidArgument(f"shapes {a.shape} and {b.shape} differ; expected one shape, or broadcast=1")
        return b
    if b.size == 1:
        return b.reshape(())
    start = a.ndim - b.ndim if axis is None else axis + a.ndim if axis < 0 else axis
    run = a.shape[start : start + b.ndim]
    if start < 0 or len(run) != b.ndim or any(size not in (1, other) for size, other in zip(b.shape, run, strict=True)):
        raise InvalidArgument(
            f"shape {b.shape} is no run of shape {a.shape} from axis {start}; expected sizes of B equal to those of A there"
        )
    return b.reshape(b.shape + (1,) * (a.ndim - start - b.ndim))
