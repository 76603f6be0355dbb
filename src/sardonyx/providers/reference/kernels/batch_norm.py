"""Batch normalization, whose meaning changed with almost every version.

The modes, by opset:

    opset 1, 6    test mode if `is_test`; per channel, or per activation if not `spatial`
    opset 7       training where the node has further outputs; `spatial` as before
    opset 9       the same without `spatial`
    opset 14      training if `training_mode`; three outputs
"""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.ops.views.normalize import BatchNormalization
from sardonyx.providers.reference.algorithms.precision import compute_type, quiet, widen
from sardonyx.providers.reference.registry import Call, kernel

__all__ = ["batch_normalization", "batch_normalization_1", "batch_normalization_7"]


@kernel("BatchNormalization", since=1, view=BatchNormalization)
@quiet
def batch_normalization_1(
    _node: Call,
    x: Array,
    scale: Array,
    bias: Array,
    mean: Array,
    variance: Array,
    *,
    view: BatchNormalization,
) -> tuple[Array, ...]:
    """Normalize x of shape (N, C, ...); statistics of shape (C) or, if not `spatial`, (C, ...). ONNX BatchNormalization-1, -6.

    Training, unless `is_test`, returns running and saved statistics after the result.
    """
    if not view.is_training:
        return (_normalize(x, scale, bias, mean, variance, view),)
    return _train_5(x, (scale, bias, mean, variance), view)


@kernel("BatchNormalization", since=7, view=BatchNormalization)
@quiet
def batch_normalization_7(
    node: Call,
    x: Array,
    scale: Array,
    bias: Array,
    mean: Array,
    variance: Array,
    *,
    view: BatchNormalization,
) -> tuple[Array, ...]:
    """Normalize as opset 1 does; a node with more outputs than the first trains. ONNX BatchNormalization-7, -9."""
    if not any(node.present[1:]):
        return (_normalize(x, scale, bias, mean, variance, view),)
    return _train_5(x, (scale, bias, mean, variance), view)


@kernel("BatchNormalization", since=14, view=BatchNormalization)
@quiet
def batch_normalization(
    _node: Call,
    x: Array,
    scale: Array,
    bias: Array,
    mean: Array,
    variance: Array,
    *,
    view: BatchNormalization,
) -> tuple[Array, ...]:
    """Normalize x of shape (N, C, ...) by the statistics given, of shape (C). ONNX BatchNormalization-14, -15.

    With `training_mode`, by those of the batch, and return the running mean and variance (population) after the result.
    """
    if not view.is_training:
        return (_normalize(x, scale, bias, mean, variance, view),)
    return _train_5(x, (scale, bias, mean, variance), view)[:3]


def _train_5(x: Array, parameters: tuple[Array, Array, Array, Array], view: BatchNormalization) -> tuple[Array, ...]:
    """Return the result, the running mean and variance, and the mean and variance of this batch."""
    spatial, momentum = view.is_per_channel, view.momentum
    scale, bias, mean, variance = parameters
    _require_statistics(x, parameters, spatial)
    axes = tuple(axis for axis in range(x.ndim) if axis != 1) if spatial and x.ndim > 1 else (0,)
    exact = widen(x)
    batch_mean = exact.mean(axis=axes, dtype=np.float64).reshape(mean.shape)
    shape = _parameter_shape(x, spatial)
    centred = exact - batch_mean.reshape(shape).astype(exact.dtype)
    batch_variance = np.square(centred).mean(axis=axes, dtype=np.float64).reshape(variance.shape)
    y = _normalize(x, scale, bias, batch_mean, batch_variance, view)
    running_mean = mean.astype(np.float64) * momentum + batch_mean * (1 - momentum)
    running_variance = variance.astype(np.float64) * momentum + batch_variance * (1 - momentum)
    return (
        y,
        running_mean.astype(mean.dtype),
        running_variance.astype(variance.dtype),
        batch_mean.astype(mean.dtype),
        batch_variance.astype(variance.dtype),
    )


def _normalize(x: Array, scale: Array, bias: Array, mean: Array, variance: Array, view: BatchNormalization) -> Array:
    """Return (x - mean) / sqrt(variance + epsilon) * scale + bias as x a + b; a and b are made in float64."""
    spatial, epsilon = view.is_per_channel, view.epsilon
    _require_statistics(x, (scale, bias, mean, variance), spatial)
    shape = _parameter_shape(x, spatial)
    factor = scale.astype(np.float64) / np.sqrt(variance.astype(np.float64) + epsilon)
    offset = bias.astype(np.float64) - mean.astype(np.float64) * factor
    wide = compute_type(x.dtype)
    y: Array = np.multiply(widen(x), factor.reshape(shape).astype(wide))
    np.add(y, offset.reshape(shape).astype(wide), out=y)
    return y.astype(x.dtype, copy=False)


def _parameter_shape(x: Array, spatial: bool) -> tuple[int, ...]:
    """Return the shape under which scale, bias, mean and variance broadcast to x."""
    if not spatial:
        return tuple(x.shape[1:])
    return (-1, *[1] * (x.ndim - 2)) if x.ndim > 1 else (1,)


def _require_statistics(x: Array, parameters: tuple[Array, Array, Array, Array], spatial: bool) -> None:
    if x.ndim == 0:
        raise InvalidArgument("X is a scalar; expected shape (N, C, ...)")
    channels = x.shape[1:2] or (1,)
    expected = channels if spatial else x.shape[1:]
    for name, array in zip(("scale", "B", "mean", "var"), parameters, strict=True):
        if array.shape != expected and not (spatial and array.size == channels[0] and array.ndim <= 1):
            raise InvalidArgument(f"{name} has shape {array.shape}; expected {expected} for X of shape {x.shape}")
