"""What ai.onnx.ml's models do with scores at the end: post transforms, class labels, rows from inputs of rank 1 or 2."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument

__all__ = ["as_rows", "label_array", "logistic", "post_transformed", "probit", "regressed", "two_columns"]


def as_rows(data: Array) -> Array:
    """Return the input as (N, F); one of rank 1 is a single row, as in ONNX Runtime."""
    if data.ndim not in (1, 2):
        raise InvalidArgument(f"the input has shape {data.shape}; expected (N, F)")
    return data[None] if data.ndim == 1 else data


def label_array(strings: Sequence[str], integers: Sequence[int]) -> Array:
    """Return the class labels as an object or an int64 array, whichever the model gives."""
    if strings:
        labels = np.empty(len(strings), object)
        labels[:] = strings
        return labels
    if not integers:
        raise InvalidArgument("the model has no class labels; expected classlabels_strings or classlabels_ints")
    return np.array(integers, np.int64)


def logistic(scores: Array) -> Array:
    """Return 1 / (1 + exp(-x)) without overflow: the exponential is taken of -|x|. NaN stays NaN."""
    positive = 1 / (1 + np.exp(-np.abs(scores)))
    result: Array = np.where(scores < 0, 1 - positive, positive).astype(scores.dtype, copy=False)
    return result


def probit(scores: Array) -> Array:
    """Return the quantile of the normal distribution, sqrt(2) * erfinv(2x - 1), by Winitzki's formula with a = 0.147.

    Relative error up to 2e-3: the formula and its constants are those of ONNX Runtime, whose models were tuned with it.
    0 gives -inf, 1 gives inf, outside [0, 1] NaN.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        x = np.asarray(2 * scores - 1, np.float32)
        log = np.log((1 - x) * (1 + x))
        half = np.float32(2 / (3.14159 * 0.147)) + np.float32(0.5) * log
        size = np.sqrt(-half + np.sqrt(half * half - np.float32(1 / 0.147) * log))
    result: Array = np.where(x < 0, -size, size) * np.float32(1.41421356)
    return result.astype(scores.dtype, copy=False)


def _softmax(scores: Array) -> Array:
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    result: Array = powers / powers.sum(axis=-1, keepdims=True)
    return result


def _softmax_zero(scores: Array) -> Array:
    """Return Softmax over the scores that are not 0 (within 1e-7); those that are stay 0."""
    top = scores.max(axis=-1, keepdims=True)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        some = np.abs(scores) > 1e-7
        powers = np.where(some, np.exp(scores - top), scores * np.exp(-top))
        result: Array = powers / powers.sum(axis=-1, keepdims=True, where=some)
    return result


_TRANSFORMS: dict[str, Callable[[Array], Array]] = {
    "NONE": lambda scores: scores,
    "LOGISTIC": logistic,
    "SOFTMAX": _softmax,
    "SOFTMAX_ZERO": _softmax_zero,
    "PROBIT": probit,
}
"""post_transform -> what it makes of scores (N, E); each row stands for itself."""


def post_transformed(scores: Array, post_transform: str) -> Array:
    """Return scores (N, E) after the transform of that name; `scores` itself is not changed."""
    if post_transform not in _TRANSFORMS:
        raise InvalidArgument(f"post_transform={post_transform!r}; expected one of {', '.join(_TRANSFORMS)}")
    return _TRANSFORMS[post_transform](scores) if scores.size else scores


def regressed(scores: Array, post_transform: str) -> Array:
    """Return scores of a regressor (N, targets) after the transform; with one target only PROBIT acts, as in ONNX Runtime."""
    if scores.shape[1] == 1 and post_transform in _TRANSFORMS and post_transform != "PROBIT":
        return scores
    return post_transformed(scores, post_transform)


def two_columns(score: Array, is_probability: bool, post_transform: str) -> Array:
    """Return the one score s (N,) of a binary classifier as one column per class, by the rules of ONNX Runtime.

    (1 - s, s), or (-s, s) for a score that is no probability; for LOGISTIC the logistic function of (-s, s), for PROBIT the
    probit of the pair; the softmaxes do not act.
    """
    if post_transform == "LOGISTIC":
        return np.stack([logistic(-score), logistic(score)], axis=1)
    pair = np.stack([1 - score if is_probability else -score, score], axis=1)
    return probit(pair) if post_transform == "PROBIT" else pair
