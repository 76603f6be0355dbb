"""Write losses of a classifier as the look-ups and sums that they stand for.

    NegativeLogLikelihoodLoss(x, target, w?)      ->      found = GatherElements(x, target with 0 for ignore_index, axis 1)
                                                          factor = Gather(w, target), or 1; 0 where it is ignored
                                                          -found * factor, its sum, or that over the sum of factors
    SoftmaxCrossEntropyLoss(x, target, w?)        ->      the same of LogSoftmax(x, axis 1), which may be an output too

A class below 0 is looked up where there is none, so that it is an error as any other that is out of range. 16-bit types are
computed in float.

Left alone:
    scores and targets whose shapes are not known to fit; another reduction than none, sum and mean
"""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.ir import Value
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import standard
from sardonyx.optimize.terms import Term

__all__ = ["EXPAND_CROSS_ENTROPY", "EXPAND_CROSS_ENTROPY_PROBABILITIES", "EXPAND_LIKELIHOOD_LOSS"]

_WIDE = {DataType.FLOAT: np.float32, DataType.DOUBLE: np.float64}
_AXES_ARE_INPUTS, _SOFTMAX_ALONG_AXIS = 18, 13


def _likelihood_pattern(op: PatternBuilder, x: Term, target: Term) -> Term:
    return op.NegativeLogLikelihoodLoss(x, target, op.optional("weight"))


def _entropy_pattern(op: PatternBuilder, x: Term, target: Term) -> Term:
    return op.SoftmaxCrossEntropyLoss(x, target, op.optional("weight"))


def _probabilities_pattern(op: PatternBuilder, x: Term, target: Term) -> tuple[Term, ...]:
    return op.outputs(op.SoftmaxCrossEntropyLoss(x, target, op.optional("weight")), 2)


def _check(match: Match) -> str | None:
    x, target, weight = match["x"], match["target"], match.get("weight")
    shape = x.shape or ()
    if len(shape) < 2 or target.shape != (shape[0], *shape[2:]) or x.dtype is None:
        return f"the scores are {x.shape} and the target {target.shape}, which are not known to fit"
    if weight is not None and weight.shape != shape[1:2]:
        return f"the weights are {weight.shape}, which are not known to be one for each of {shape[1]} classes"
    if match.root.text("reduction", "mean") not in ("none", "sum", "mean"):
        return "the reduction is neither none, sum nor mean"
    return None if target.dtype in (DataType.INT32, DataType.INT64) else f"classes of type {target.dtype}"


def _replace_likelihood(op: Builder, match: Match, learned: None) -> Value:
    return _narrow(op, _loss(op, match, _wide(op, match["x"])), match["x"])


def _replace_entropy(op: Builder, match: Match, learned: None) -> Value:
    return _replace_probabilities(op, match, learned)[0]


def _replace_probabilities(op: Builder, match: Match, learned: None) -> tuple[Value, Value]:
    x = match["x"]
    logarithms = op.node("LogSoftmax", _wide(op, x), axis=1, _version=max(op.version(), _SOFTMAX_ALONG_AXIS))
    return _narrow(op, _loss(op, match, logarithms), x), _narrow(op, logarithms, x)


def _wide(op: Builder, value: Value) -> Value:
    return value if value.dtype in _WIDE else op.Cast(value, to=int(DataType.FLOAT))


def _narrow(op: Builder, value: Value, like: Value) -> Value:
    return value if like.dtype in _WIDE or like.dtype is None else op.Cast(value, to=int(like.dtype))


def _loss(op: Builder, match: Match, x: Value) -> Value:
    """Return the loss of logarithms of probabilities."""
    target, weight, ignored = match["target"], match.get("weight"), match.root.integer("ignore_index")
    whole = np.int32 if target.dtype is DataType.INT32 else np.int64
    kind = np.float64 if x.dtype is DataType.DOUBLE else np.float32
    classes = op.Where(op.Less(target, whole(0)), whole(np.iinfo(whole).max), target)
    counts = None
    if ignored is not None:
        counts = op.Not(op.Equal(target, whole(ignored)))
        classes = op.Where(counts, classes, whole(0))
    along = np.array([1], np.int64)
    found = op.Squeeze(op.GatherElements(x, op.Unsqueeze(classes, along), axis=1), along)
    loss = op.Neg(found)
    factor = None if weight is None else op.Gather(_wide(op, weight), classes, axis=0)
    if factor is not None:
        loss = op.Mul(loss, factor)
    if counts is not None:
        loss = op.Where(counts, loss, kind(0))
        factor = op.Where(counts, kind(1) if factor is None else factor, kind(0))
    reduction = match.root.text("reduction", "mean")
    if reduction == "none":
        return loss
    total = _summed(op, loss)
    if reduction == "sum":
        return total
    count = op.Cast(op.Size(target), to=int(x.dtype or DataType.FLOAT)) if factor is None else _summed(op, factor)
    return op.Div(total, count)


def _summed(op: Builder, x: Value) -> Value:
    return op.node("ReduceSum", x, keepdims=0, _version=max(op.version(), _AXES_ARE_INPUTS))


EXPAND_LIKELIHOOD_LOSS = Rule(
    "expand_likelihood_loss",
    _likelihood_pattern,
    _replace_likelihood,
    _check,
    takes_apart=standard("NegativeLogLikelihoodLoss"),
    summary="Write NegativeLogLikelihoodLoss as look-ups and a sum.",
)
EXPAND_CROSS_ENTROPY = Rule(
    "expand_cross_entropy",
    _entropy_pattern,
    _replace_entropy,
    _check,
    takes_apart=standard("SoftmaxCrossEntropyLoss"),
    summary="Write SoftmaxCrossEntropyLoss as LogSoftmax, look-ups and a sum.",
)
EXPAND_CROSS_ENTROPY_PROBABILITIES = Rule(
    "expand_cross_entropy_probabilities",
    _probabilities_pattern,
    _replace_probabilities,
    _check,
    takes_apart=standard("SoftmaxCrossEntropyLoss"),
    summary="Write SoftmaxCrossEntropyLoss whose logarithms are used as LogSoftmax, look-ups and a sum.",
)
