"""Write a batch normalization that trains as statistics of the batch and what follows from them.

    y, m, v = BatchNormalization(x, scale, bias, mean, var) {training_mode}
        ->      a = ReduceMean(x, all axes but 1), c = x - a, b = ReduceMean(c * c, the same axes)
                y = c * (scale / Sqrt(b + epsilon)) + bias
                m = mean * momentum + a * (1 - momentum), v = var * momentum + b * (1 - momentum)

Left alone:
    versions before 14, where other attributes and outputs say that it trains
    types other than float and double, or several of them; x of unknown rank, or without an axis of channels
"""

from __future__ import annotations

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import DataType
from sardonyx.ir import Value
from sardonyx.ops.views.normalize import BatchNormalization
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import standard
from sardonyx.optimize.terms import Term

__all__ = ["EXPAND_BATCH_NORM_TRAINING", "EXPAND_BATCH_NORM_UPDATES"]

_KINDS = {DataType.FLOAT: np.float32, DataType.DOUBLE: np.float64}
_AXES_ARE_INPUTS = 18
_INPUTS = ("x", "scale", "bias", "mean", "var")


@dataclasses.dataclass(frozen=True, slots=True)
class _Batch:
    """Statistics of a batch, each (C, 1, …)."""

    centred: Value
    """The elements less their mean."""
    mean: Value
    """The mean."""
    variance: Value
    """The mean of squares of what is centred."""


def _pattern(op: PatternBuilder, x: Term, scale: Term, bias: Term, mean: Term, var: Term) -> Term:
    return op.BatchNormalization(x, scale, bias, mean, var)


def _updates_pattern(op: PatternBuilder, x: Term, scale: Term, bias: Term, mean: Term, var: Term) -> tuple[Term, ...]:
    return op.outputs(op.BatchNormalization(x, scale, bias, mean, var), 3)


def _check(match: Match) -> str | None:
    x, values = match["x"], [match[name] for name in _INPUTS]
    if not match.root.flag("training_mode"):
        return "it does not train, or not by training_mode"
    if x.dtype not in _KINDS or len({value.dtype for value in values}) > 1:
        return "it is not of float alone, or of double"
    if x.shape is None or len(x.shape) < 2:
        return "x has no axis of channels, or is of unknown rank"
    if any(value.shape != x.shape[1:2] for value in values[1:]):
        return "its parameters are not known to be one for each channel"
    return None


def _replace(op: Builder, match: Match, learned: None) -> Value:
    return _normalized(op, match, _statistics(op, match))


def _replace_updates(op: Builder, match: Match, learned: None) -> tuple[Value, ...]:
    batch = _statistics(op, match)
    rank, momentum = len(match["x"].shape or ()), BatchNormalization.of(match.root).momentum
    kind = _KINDS[match["x"].dtype or DataType.FLOAT]
    found = [_normalized(op, match, batch)]
    for name, statistic in (("mean", batch.mean), ("var", batch.variance)):
        axes = np.array([0, *range(2, rank)], np.int64)
        flat = op.Squeeze(statistic, axes)
        found.append(op.Add(op.Mul(match[name], kind(momentum)), op.Mul(flat, kind(1 - momentum))))
    return tuple(found)


def _statistics(op: Builder, match: Match) -> _Batch:
    x = match["x"]
    axes = np.array([axis for axis in range(len(x.shape or ())) if axis != 1], np.int64)
    version = max(op.version(), _AXES_ARE_INPUTS)
    mean = op.node("ReduceMean", x, axes, keepdims=1, _version=version)
    centred = op.Sub(x, mean)
    return _Batch(centred, mean, op.node("ReduceMean", op.Mul(centred, centred), axes, keepdims=1, _version=version))


def _normalized(op: Builder, match: Match, batch: _Batch) -> Value:
    kind = _KINDS[match["x"].dtype or DataType.FLOAT]
    epsilon = kind(BatchNormalization.of(match.root).epsilon)
    behind = np.array(range(1, len(match["x"].shape or ()) - 1), np.int64)
    scale, bias = (op.Unsqueeze(match[name], behind) if len(behind) else match[name] for name in ("scale", "bias"))
    factor = op.Div(scale, op.Sqrt(op.Add(batch.variance, epsilon)))
    return op.Add(op.Mul(batch.centred, factor), bias)


EXPAND_BATCH_NORM_TRAINING = Rule(
    "expand_batch_norm_training",
    _pattern,
    _replace,
    _check,
    takes_apart=standard("BatchNormalization"),
    takes_legal_apart=True,
    summary="Write BatchNormalization that trains as reductions.",
)
EXPAND_BATCH_NORM_UPDATES = Rule(
    "expand_batch_norm_updates",
    _updates_pattern,
    _replace_updates,
    _check,
    takes_apart=standard("BatchNormalization"),
    takes_legal_apart=True,
    summary="Write BatchNormalization that trains, and whose running statistics are read, as reductions.",
)
