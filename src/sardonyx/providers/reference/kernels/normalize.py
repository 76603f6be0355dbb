"""Normalization of rows (layer, group, instance, root mean square) and of neighbourhoods; batches are in batch_norm.

A tensor becomes a matrix (rows, length) whose rows are normalized, some at a time so that they stay in cache.

    LayerNormalization      rows: the axes before `axis`            affine: along the row
    GroupNormalization      rows: (N, groups)                       affine: per channel (per group before opset 21)
    InstanceNormalization   rows: (N, C)                            affine: per row
    RMSNormalization        rows: the axes before `axis`            affine: along the row, no mean
"""

from __future__ import annotations

import math

import numpy as np

from sardonyx.dtypes import Array, DataType
from sardonyx.errors import InvalidArgument
from sardonyx.ops.views.normalize import MeanVariance
from sardonyx.providers.reference.algorithms.blocks import row_blocks
from sardonyx.providers.reference.algorithms.dimensions import normalize_axis
from sardonyx.providers.reference.algorithms.precision import compute_type, quiet, widen
from sardonyx.providers.reference.kernels import batch_norm as batch_norm
from sardonyx.providers.reference.registry import Call, kernel

__all__ = [
    "group_normalization",
    "group_normalization_18",
    "instance_normalization",
    "layer_normalization",
    "layer_normalization_1",
    "local_response_normalization",
    "lp_normalization",
    "mean_variance_normalization",
    "rms_normalization",
]


@kernel("LayerNormalization", since=17)
@quiet
def layer_normalization(
    _node: Call,
    x: Array,
    scale: Array,
    bias: Array | None = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> tuple[Array, Array, Array]:
    """Normalize x over `axis` and those after it, times scale, plus bias, which broadcast to x. ONNX LayerNormalization-17.

    Returns the result (shape and type of x), the mean and 1 / standard deviation (type `stash_type`, normalized axes of size 1).
    """
    axis = normalize_axis(axis, x.ndim)
    rows = _as_rows(x, axis)
    out = np.empty(rows.shape, rows.dtype)
    mean = np.full((len(rows), 1), np.nan, rows.dtype)
    inverse = np.full((len(rows), 1), np.nan, rows.dtype)
    along, across = _split_affine(x, axis, scale, bias)
    for block in row_blocks(rows):
        mean[block], inverse[block] = _standardize(rows[block], out[block], epsilon)
        _apply_affine(out[block], along)
    y = _finish_affine(out.reshape(x.shape), across, x)
    stashed = _stash_type(stash_type)
    shape = x.shape[:axis] + (1,) * (x.ndim - axis)
    return y, mean.reshape(shape).astype(stashed, copy=False), inverse.reshape(shape).astype(stashed, copy=False)


@kernel("LayerNormalization")
@quiet
def layer_normalization_1(
    call: Call,
    x: Array,
    scale: Array,
    bias: Array | None = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> tuple[Array, Array, Array]:
    """Compute LayerNormalization whose result has the type of the scale, which may be another than that of x.

    Source: LayerNormalization of ONNX Runtime, which it has in operator sets older than 17.
    """
    wide = x.astype(np.promote_types(x.dtype, scale.dtype), copy=False)
    y, mean, inverse = layer_normalization(call, wide, scale, bias, axis=axis, epsilon=epsilon, stash_type=stash_type)
    return y.astype(scale.dtype, copy=False), mean, inverse


@kernel("RMSNormalization")
@quiet
def rms_normalization(_node: Call, x: Array, scale: Array, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1) -> Array:
    """Divide x by its root mean square over `axis` and those after it, times scale, broadcast to x. ONNX RMSNormalization-23.

    The shape of x out, in the type of scale. Computed in float32 (float64 for double), whatever narrower `stash_type` allows.
    """
    _stash_type(stash_type)
    axis = normalize_axis(axis, x.ndim)
    rows = _as_rows(x, axis)
    out = np.empty(rows.shape, rows.dtype)
    along, across = _split_affine(x, axis, scale, None)
    for block in row_blocks(rows):
        np.multiply(rows[block], _inverse_root_mean_square(rows[block], epsilon), out=out[block])
        _apply_affine(out[block], along)
    return _finish_affine(out.reshape(x.shape), across, x).astype(scale.dtype, copy=False)


@kernel("InstanceNormalization")
@quiet
def instance_normalization(_node: Call, x: Array, scale: Array, bias: Array, *, epsilon: float = 1e-5) -> Array:
    """Normalize each channel of each instance of x (N, C, ...); scale and bias of shape (C). ONNX InstanceNormalization-1, -22."""
    channels = _require_channels(x)
    _require_length(channels, scale=scale, B=bias)
    return _normalize_groups(x, channels, scale, bias, epsilon)


@kernel("GroupNormalization", since=18)
@quiet
def group_normalization_18(_node: Call, x: Array, scale: Array, bias: Array, *, num_groups: int, epsilon: float = 1e-5) -> Array:
    """Normalize each group of channels of x (N, C, ...); scale and bias per group. ONNX GroupNormalization-18."""
    size = _group_size(x, num_groups)
    _require_length(num_groups, scale=scale, bias=bias)
    return _normalize_groups(x, num_groups, np.repeat(scale, size), np.repeat(bias, size), epsilon)


@kernel("GroupNormalization", since=21)
@quiet
def group_normalization(
    _node: Call, x: Array, scale: Array, bias: Array, *, num_groups: int, epsilon: float = 1e-5, stash_type: int = 1
) -> Array:
    """Normalize each group of channels of x (N, C, ...); scale and bias per channel. ONNX GroupNormalization-21."""
    _stash_type(stash_type)
    _group_size(x, num_groups)
    _require_length(x.shape[1], scale=scale, bias=bias)
    return _normalize_groups(x, num_groups, scale, bias, epsilon)


def _normalize_groups(x: Array, groups: int, scale: Array, bias: Array, epsilon: float) -> Array:
    """Return `x` (N, C, ...) with each of `groups` groups of channels normalized; `scale` and `bias` per channel."""
    if x.size == 0:
        return np.empty(x.shape, x.dtype)
    batch, channels = x.shape[:2]
    rows = widen(x).reshape(batch * groups, -1)
    out = np.empty(rows.shape, rows.dtype)
    factors = np.tile(scale.astype(rows.dtype), batch).reshape(len(rows), -1, 1)
    offsets = np.tile(bias.astype(rows.dtype), batch).reshape(len(rows), -1, 1)
    for block in row_blocks(rows):
        _, inverse = _centre(rows[block], out[block], epsilon)
        by_channel = out[block].reshape(len(inverse), channels // groups, -1)
        np.multiply(by_channel, factors[block] * inverse[:, :, None], out=by_channel)
        np.add(by_channel, offsets[block], out=by_channel)
    return out.reshape(x.shape).astype(x.dtype, copy=False)


def _standardize(rows: Array, out: Array, epsilon: float) -> tuple[Array, Array]:
    """Write (rows - mean) / deviation to `out`; return mean and 1 / deviation, each (rows, 1)."""
    mean, inverse = _centre(rows, out, epsilon)
    np.multiply(out, inverse, out=out)
    return mean, inverse


def _centre(rows: Array, out: Array, epsilon: float) -> tuple[Array, Array]:
    """Write rows - mean to `out`; return mean and 1 / sqrt(variance + epsilon), each (rows, 1)."""
    mean = np.add.reduce(rows, axis=1, keepdims=True)
    np.divide(mean, rows.shape[1], out=mean)
    np.subtract(rows, mean, out=out)
    return mean, _inverse_root_mean_square(out, epsilon)


def _inverse_root_mean_square(rows: Array, epsilon: float) -> Array:
    square = np.vecdot(rows, rows)[:, None]
    np.divide(square, rows.shape[1], out=square)
    np.add(square, epsilon, out=square)
    np.sqrt(square, out=square)
    return np.asarray(np.divide(1.0, square, out=square))


def _as_rows(x: Array, axis: int) -> Array:
    return widen(x).reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))


_Affine = tuple[Array | None, Array | None]
"""A factor and a summand; None for one that does nothing."""


def _split_affine(x: Array, axis: int, scale: Array, bias: Array | None) -> tuple[_Affine, _Affine]:
    """Return what is applied along each row while it is in cache, and what is broadcast over the tensor afterwards."""
    wide = compute_type(x.dtype)
    for name, array in (("Scale", scale), ("B", bias)):
        if array is not None and not _broadcasts_to(array, x.shape):
            raise InvalidArgument(f"{name} of shape {array.shape} does not broadcast to X of shape {x.shape}; reshape it")
    factor = scale.astype(wide, copy=False)
    summand = None if bias is None else bias.astype(wide, copy=False)
    length = math.prod(x.shape[axis:])
    if all(array is None or (array.ndim <= x.ndim - axis and array.size == length) for array in (factor, summand)):
        return (factor.reshape(-1), None if summand is None else summand.reshape(-1)), (None, None)
    return (None, None), (factor, summand)


def _broadcasts_to(array: Array, shape: tuple[int, ...]) -> bool:
    sizes = zip(array.shape[::-1], shape[::-1], strict=False)
    return array.ndim <= len(shape) and all(own in (1, other) for own, other in sizes)


def _apply_affine(out: Array, affine: _Affine) -> None:
    factor, summand = affine
    if factor is not None:
        np.multiply(out, factor, out=out)
    if summand is not None:
        np.add(out, summand, out=out)


def _finish_affine(out: Array, affine: _Affine, x: Array) -> Array:
    _apply_affine(out, affine)
    return out.astype(x.dtype, copy=False)


_STASH_TYPES = {DataType.FLOAT, DataType.BFLOAT16, DataType.FLOAT16, DataType.DOUBLE}


def _stash_type(stash_type: int) -> np.dtype[np.generic]:
    if stash_type not in _STASH_TYPES:
        raise InvalidArgument(f"stash_type={stash_type}; expected one of {sorted(int(item) for item in _STASH_TYPES)}")
    return DataType(stash_type).numpy


def _require_channels(x: Array) -> int:
    if x.ndim < 2:
        raise InvalidArgument(f"the input has shape {x.shape}; expected (N, C, ...)")
    return int(x.shape[1])


def _group_size(x: Array, groups: int) -> int:
    channels = _require_channels(x)
    if groups < 1 or channels % groups:
        raise InvalidArgument(f"num_groups={groups} does not divide the {channels} channels of shape {x.shape}")
    return channels // groups


def _require_length(length: int, **vectors: Array) -> None:
    for name, vector in vectors.items():
        if vector.shape != (length,):
            raise InvalidArgument(f"{name} has shape {vector.shape}; expected ({length},)")


@kernel("MeanVarianceNormalization", view=MeanVariance)
@quiet
def mean_variance_normalization(_node: Call, x: Array, *, view: MeanVariance) -> Array:
    """Return (x - mean) / (deviation + 1e-9) over axes; same shape and type out.

    Sources: ONNX MeanVarianceNormalization-9, -13; version 1, an experiment, may leave out the division.
    """
    over = view.axes_of(x.ndim)
    if not x.size:
        return x
    wide = widen(x)
    centred = wide - wide.mean(axis=over, keepdims=True)
    if not view.divides:
        return np.asarray(centred).astype(x.dtype, copy=False)
    deviation = np.sqrt(np.square(centred).mean(axis=over, keepdims=True))
    return np.asarray(np.divide(centred, deviation + wide.dtype.type(1e-9))).astype(x.dtype, copy=False)


@kernel("LpNormalization")
@quiet
def lp_normalization(_node: Call, x: Array, *, axis: int = -1, p: int = 2) -> Array:
    """Divide x by its p-norm (1 or 2) along `axis`, 0 where the norm is 0; same shape and type out. ONNX LpNormalization-1, -22."""
    axis = normalize_axis(axis, x.ndim)
    if p not in (1, 2):
        raise InvalidArgument(f"p={p}; expected 1 or 2")
    wide = widen(x)
    if p == 1:
        norm = np.absolute(wide).sum(axis=axis, keepdims=True)
    else:
        norm = np.sqrt(np.square(wide).sum(axis=axis, keepdims=True))
    result = np.divide(wide, np.where(norm == 0, wide.dtype.type(1), norm))
    return np.asarray(result).astype(x.dtype, copy=False)


@kernel("LRN")
@quiet
def local_response_normalization(
    _node: Call, x: Array, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0
) -> Array:
    """Divide x (N, C, ...) by (bias + alpha / size * sum of squares of `size` channels around) ** beta. ONNX LRN-1, LRN-13."""
    channels = _require_channels(x)
    if size < 1:
        raise InvalidArgument(f"size={size}; expected 1 or more")
    wide = widen(x)
    square = np.square(wide)
    total = square.copy()
    for offset in range(1, min(channels, size // 2 + 1)):
        total[:, :-offset] += square[:, offset:]
    for offset in range(1, min(channels, (size - 1) // 2 + 1)):
        total[:, offset:] += square[:, :-offset]
    np.multiply(total, alpha / size, out=total)
    np.add(total, bias, out=total)
    np.power(total, -beta, out=total)
    np.multiply(total, wide, out=total)
    return total.astype(x.dtype, copy=False)
