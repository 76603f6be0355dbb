"""Losses of a classifier."""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.precision import quiet, widen
from sardonyx.providers.reference.kernels.softmax import log_softmax_into, softmax_rows
from sardonyx.providers.reference.registry import Call, kernel

__all__ = ["negative_log_likelihood_loss", "softmax_cross_entropy_loss"]


@kernel("NegativeLogLikelihoodLoss")
@quiet
def negative_log_likelihood_loss(
    _node: Call,
    x: Array,
    target: Array,
    weight: Array | None = None,
    *,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> Array:
    """Return -x at the target classes, weighted; x (N, C, ...), target (N, ...), weight (C).

    Shape of target out for reduction "none", a scalar for "sum" and "mean" (by the weights applied); type of x.
    ONNX NegativeLogLikelihoodLoss-12 to NegativeLogLikelihoodLoss-22.
    """
    return _loss(widen(x), target, weight, ignore_index, reduction).astype(x.dtype, copy=False)


@kernel("SoftmaxCrossEntropyLoss")
@quiet
def softmax_cross_entropy_loss(
    _node: Call,
    scores: Array,
    labels: Array,
    weights: Array | None = None,
    *,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> tuple[Array, Array]:
    """Return the negative log likelihood of log-softmax over axis 1 of scores (N, C, ...), and that log-softmax.

    Otherwise as NegativeLogLikelihoodLoss. ONNX SoftmaxCrossEntropyLoss-12, SoftmaxCrossEntropyLoss-13.
    """
    _require_classes(scores, labels, weights)
    wide = widen(scores)
    matrix = wide.reshape(*scores.shape[:2], -1) if scores.size and scores.ndim > 2 else wide
    log_probability = softmax_rows(log_softmax_into, matrix).reshape(scores.shape)
    loss = _loss(log_probability, labels, weights, ignore_index, reduction)
    return loss.astype(scores.dtype, copy=False), log_probability.astype(scores.dtype, copy=False)


def _loss(x: Array, target: Array, weight: Array | None, ignore_index: int | None, reduction: str) -> Array:
    """Return the loss in the type of `x`, which is a compute type."""
    if reduction not in ("none", "sum", "mean"):
        raise InvalidArgument(f"reduction={reduction!r}; expected none, sum or mean")
    _require_classes(x, target, weight)
    counts = np.ones(target.shape, bool) if ignore_index is None else target != ignore_index
    index = np.where(counts, target, 0).astype(np.int64)
    if index.size and not (index.min() >= 0 and index.max() < x.shape[1]):
        raise InvalidArgument(
            f"the target holds classes from {index.min()} to {index.max()}; expected [0, {x.shape[1] - 1}] or ignore_index"
        )
    factor = counts.astype(x.dtype)
    if weight is not None:
        factor = factor * widen(weight).astype(x.dtype)[index]
    loss = np.where(counts, -np.take_along_axis(x, index[:, None], axis=1)[:, 0], x.dtype.type(0)) * factor
    if reduction == "none":
        return np.asarray(loss)
    total = np.add.reduce(loss, axis=None)
    return np.asarray(total if reduction == "sum" else total / np.add.reduce(factor, axis=None))


def _require_classes(x: Array, target: Array, weight: Array | None) -> None:
    if x.ndim < 2 or target.shape != (x.shape[0], *x.shape[2:]):
        raise InvalidArgument(f"the scores have shape {x.shape} and the target {target.shape}; expected (N, C, ...) and (N, ...)")
    if weight is not None and weight.shape != (x.shape[1],):
        raise InvalidArgument(f"weight has shape {weight.shape}; expected ({x.shape[1]},), one for each class")
