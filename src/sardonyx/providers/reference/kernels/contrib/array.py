"""Operators of com.microsoft that arrange, window and compare arrays; most are ai.onnx operators from before they were that."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.ir.attribute import AttributeValue
from sardonyx.providers.reference.algorithms.dimensions import check_output_size, normalize_axis
from sardonyx.providers.reference.algorithms.precision import widen
from sardonyx.providers.reference.algorithms.product import matmul_in_parts
from sardonyx.providers.reference.kernels.delegate import run_standard
from sardonyx.providers.reference.registry import Call, kernel

__all__ = [
    "cdist",
    "dynamic_time_warping",
    "expand_dims",
    "inverse",
    "microsoft_gather_nd",
    "microsoft_grid_sample",
    "microsoft_pad",
    "microsoft_range",
    "microsoft_trilu",
    "microsoft_unique",
    "n_gram_repeat_block",
    "nhwc_max_pool",
    "unfold_tensor",
]

_MICROSOFT = "com.microsoft"


@kernel("ExpandDims", domain=_MICROSOFT)
def expand_dims(call: Call, x: Array, axis: Array) -> Array:
    """Insert an axis of size 1 at `axis`, which counts in the result. Source: com.microsoft ExpandDims."""
    return np.expand_dims(x, normalize_axis(int(_single("axis", axis)), x.ndim + 1))


@kernel("Inverse", domain=_MICROSOFT)
def inverse(call: Call, x: Array) -> Array:
    """Compute the inverses of matrices (..., M, M); half types compute in float32. Source: com.microsoft Inverse."""
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise InvalidArgument(f"X has shape {x.shape}; expected square matrices (..., M, M)")
    try:
        return np.asarray(np.linalg.inv(widen(x)), x.dtype)
    except np.linalg.LinAlgError:
        raise InvalidArgument(f"a matrix of X, of shape {x.shape}, is singular; every one must have an inverse") from None


@kernel("Trilu", domain=_MICROSOFT)
def microsoft_trilu(call: Call, x: Array, k: Array | None = None, *, upper: int = 1) -> Array:
    """Compute Trilu of ai.onnx. Source: com.microsoft Trilu."""
    y: Array = run_standard("Trilu", x, k, upper=upper)
    return y


@kernel("GridSample", domain=_MICROSOFT)
def microsoft_grid_sample(
    call: Call, x: Array, grid: Array, *, align_corners: int = 0, mode: str = "bilinear", padding_mode: str = "zeros"
) -> Array:
    """Compute GridSample-16 of ai.onnx. Source: com.microsoft GridSample."""
    y: Array = run_standard("GridSample", x, grid, version=16, align_corners=align_corners, mode=mode, padding_mode=padding_mode)
    return y


@kernel("Range", domain=_MICROSOFT)
def microsoft_range(call: Call, start: Array, limit: Array, delta: Array | None = None) -> Array:
    """Compute Range of ai.onnx with steps of 1 by default; its bounds may be of one element. Source: com.microsoft Range."""
    step = np.ones((), start.dtype) if delta is None else _single("delta", delta)
    y: Array = run_standard("Range", _single("start", start), _single("limit", limit), step)
    return y


@kernel("Pad", domain=_MICROSOFT)
def microsoft_pad(call: Call, x: Array, pads: Array, value: Array | None = None, *, mode: str = "constant") -> Array:
    """Pad of ai.onnx; `pads` may be (1, 2 x rank) and the value of rank 1. Source: com.microsoft Pad."""
    y: Array = run_standard("Pad", x, pads.reshape(-1), None if value is None else _single("value", value), mode=mode)
    return y


@kernel("GatherND", domain=_MICROSOFT)
def microsoft_gather_nd(call: Call, data: Array, indices: Array) -> Array:
    """Compute GatherND of ai.onnx. Source: com.microsoft GatherND."""
    y: Array = run_standard("GatherND", data, indices.astype(np.int64, copy=False))
    return y


@kernel("Unique", domain=_MICROSOFT)
def microsoft_unique(call: Call, x: Array) -> tuple[Array, Array, Array]:
    """Compute the distinct elements of x (C,) in order of occurrence, where each element lies among them, and their counts.

    Source: com.microsoft Unique.
    """
    if x.ndim != 1:
        raise InvalidArgument(f"x has shape {x.shape}; expected rank 1")
    values, _, places, counts = run_standard("Unique", x, outputs=4, sorted=0)
    return values, places, counts


@kernel("NhwcMaxPool", domain=_MICROSOFT)
def nhwc_max_pool(
    call: Call,
    x: Array,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Sequence[int] = (),
    kernel_shape: Sequence[int],
    pads: Sequence[int] = (),
    strides: Sequence[int] = (),
) -> Array:
    """Compute MaxPool of 8-bit x (N, …, C). Source: com.microsoft NhwcMaxPool."""
    if x.ndim < 3:
        raise InvalidArgument(f"x has shape {x.shape}; expected batch, at least one spatial axis and channels")
    named = (("dilations", dilations), ("pads", pads), ("strides", strides))
    lists: dict[str, AttributeValue] = {name: values for name, values in named if values}
    given = np.ascontiguousarray(np.moveaxis(x, -1, 1))
    y = run_standard("MaxPool", given, auto_pad=auto_pad, ceil_mode=ceil_mode, kernel_shape=kernel_shape, **lists)
    return np.moveaxis(y[0] if isinstance(y, tuple) else y, 1, -1)


@kernel("UnfoldTensor", domain=_MICROSOFT)
def unfold_tensor(call: Call, x: Array, *, dim: int = -1, size: int, step: int = 1) -> Array:
    """Compute all windows of `size` elements along `dim`, `step` apart, the elements of a window in a new last axis: a view.

    Source: com.microsoft UnfoldTensor.
    """
    axis = normalize_axis(dim, x.ndim)
    if not 1 <= size <= x.shape[axis] or step < 1:
        raise InvalidArgument(
            f"size is {size} and step {step}; expected 1 to {x.shape[axis]}, the length of axis {axis}, and 1 or more"
        )
    windows = np.lib.stride_tricks.sliding_window_view(x, size, axis=axis)
    return windows[(slice(None),) * axis + (slice(None, None, step),)]


_DISTANCES: dict[str, Callable[[Array], Array]] = {"sqeuclidean": lambda x: x, "euclidean": np.sqrt}


@kernel("CDist", domain=_MICROSOFT)
def cdist(call: Call, a: Array, b: Array, *, metric: str = "sqeuclidean") -> Array:
    """Compute distances (M, K) between the rows of a (M, C) and b (K, C), squared or not. Source: com.microsoft CDist."""
    finish = _DISTANCES.get(metric)
    if finish is None or a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
        raise InvalidArgument(
            f"A has shape {a.shape}, B {b.shape} and metric is {metric!r}; expected (M, C), (K, C), "
            f"and one of {', '.join(_DISTANCES)}"
        )
    check_output_size((len(a), len(b)), a.itemsize)
    norms = np.square(a).sum(axis=1)[:, None] + np.square(b).sum(axis=1)
    squared = np.maximum(norms - 2 * matmul_in_parts(a, b.T), 0)
    return np.asarray(finish(squared), a.dtype)


@kernel("DynamicTimeWarping", domain=_MICROSOFT)
def dynamic_time_warping(call: Call, x: Array) -> Array:
    """Compute the cheapest path (2, steps) through costs (M, N) or (1, M, N) from the first corner to the last, by steps of one.

    Of equal ways back the diagonal is taken last and the upward one only if it is strictly the cheapest. Source: com.microsoft
    DynamicTimeWarping.
    """
    costs = x[0] if x.ndim == 3 and x.shape[0] == 1 else x
    if costs.ndim != 2 or 0 in costs.shape:
        raise InvalidArgument(f"input has shape {x.shape}; expected (M, N) or (1, M, N), not empty")
    return _walk_back(*_accumulate(costs.astype(np.float32, copy=False)))


@kernel("NGramRepeatBlock", domain=_MICROSOFT)
def n_gram_repeat_block(call: Call, input_ids: Array, scores: Array, *, ngram_size: int) -> Array:
    """Compute scores (B, V), with -inf for each token that would repeat an n-gram of input_ids (B, S).

    Source: com.microsoft NGramRepeatBlock.
    """
    if input_ids.ndim != 2 or scores.ndim != 2 or len(scores) != len(input_ids) or ngram_size < 1:
        raise InvalidArgument(
            f"input_ids has shape {input_ids.shape}, scores {scores.shape} and ngram_size is {ngram_size}; "
            "expected (B, S), (B, V), 1 or more"
        )
    blocked = scores.copy()
    if input_ids.shape[1] < ngram_size:
        return blocked
    windows = np.lib.stride_tricks.sliding_window_view(input_ids, ngram_size, axis=1)
    tail = input_ids[:, None, input_ids.shape[1] - ngram_size + 1 :]
    rows, places = np.nonzero((windows[:, :, :-1] == tail).all(axis=2))
    tokens = windows[rows, places, -1]
    if tokens.size and (tokens.min() < 0 or tokens.max() >= scores.shape[1]):
        raise InvalidArgument(
            f"input_ids run from {tokens.min()} to {tokens.max()}; scores are for tokens 0 to {scores.shape[1] - 1}"
        )
    blocked[rows, tokens] = -np.inf
    return blocked


def _single(name: str, array: Array) -> Array:
    if array.size != 1:
        raise InvalidArgument(f"{name} has shape {array.shape}; expected one element")
    return array.reshape(())


def _accumulate(costs: Array) -> tuple[Array, Array]:
    """Return the cost of the cheapest path to each point, and where it came from: 0 diagonal, 1 above, 2 left.

    Points of one antidiagonal depend on the two before it alone, so each is computed at once.
    """
    M, N = costs.shape
    total = np.full((M + 1, N + 1), np.inf, np.float32)
    total[0, 0] = 0
    origin = np.full((M, N), 2, np.int8)
    for diagonal in range(M + N - 1):
        i = np.arange(max(0, diagonal - N + 1), min(M, diagonal + 1))
        j = diagonal - i
        before, above, left = total[i, j], total[i, j + 1], total[i + 1, j]
        origin[i, j] = np.where((before < above) & (before < left), 0, np.where((above < before) & (above < left), 1, 2))
        total[i + 1, j + 1] = costs[i, j] + np.choose(origin[i, j], (before, above, left))
    origin[0, :], origin[:, 0] = 2, 1
    return total, origin


def _walk_back(total: Array, origin: Array) -> Array:
    i, j = origin.shape[0] - 1, origin.shape[1] - 1
    path = [(i, j)]
    while i or j:
        step = origin[i, j]
        i, j = (i - 1, j - 1) if step == 0 else (i - 1, j) if step == 1 else (i, j - 1)
        path.append((i, j))
    return np.array(path[::-1], np.int32).T
