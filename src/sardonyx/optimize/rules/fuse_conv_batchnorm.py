"""Fold a batch normalization into the convolution before it.

    BatchNormalization(Conv(x, w, b?), scale, shift, mean, variance)      ->      Conv(x, w * k, (b - mean) * k + shift)
    BatchNormalization(ConvTranspose(x, w, b?), ...)                      ->      ConvTranspose likewise

with k = scale / sqrt(variance + epsilon) per output channel, computed in float64 and rounded once.

Left alone:
    weights, bias or statistics that are no constants: they may differ from run to run
    a normalization in training mode, which computes statistics, or one whose further outputs are used
    a convolution whose result has other users: both results are needed
    weights with other users: they would be stored twice
    weights that are no floating-point numbers: quantized ones have scales of their own
    statistics that do not have one element per output channel, or a variance below -epsilon: the model is invalid
"""

from __future__ import annotations

import dataclasses

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.ir import Value
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.rules.channels import channels_of, folded, weights_reason
from sardonyx.optimize.terms import Term, attribute_value

__all__ = ["FUSE_CONV_BATCHNORM"]


def _pattern(op: PatternBuilder, x: Term, w: Term, scale: Term, shift: Term, mean: Term, variance: Term) -> Term:
    bias = op.optional_constant("b")
    convolution = op.any_of(
        op.Conv(x, op.constant(w), bias, _as="convolution"),
        op.ConvTranspose(x, op.constant(w), bias, _as="convolution"),
    )
    statistics = [op.constant(value) for value in (scale, shift, mean, variance)]
    return op.BatchNormalization(convolution, *statistics)


@dataclasses.dataclass(frozen=True, slots=True)
class _Learned:
    factor: Array
    """By what each output channel is multiplied, float64."""
    shift: Array
    """What is added to it then, float64."""


def _check(match: Match) -> str | _Learned:
    node = match.root
    if node.get("training_mode", 0) or (node.version < 7 and not node.get("is_test", 0)):
        return "the normalization is in training mode"
    reason = weights_reason(match)
    if reason is not None:
        return reason
    weights = match.tensor("w")
    channels = 0 if weights is None else channels_of(match.node("convolution"), weights)
    statistics = [match.constant(name, channels) for name in ("scale", "shift", "mean", "variance")]
    if any(array is None or array.shape != (channels,) for array in statistics):
        return f"the statistics do not have one element for each of the {channels} output channels"
    scale, shift, mean, variance = (array.astype(np.float64) for array in statistics if array is not None)
    if (variance + attribute_value(node, "epsilon") <= 0).any():
        return "the variance is not positive"
    factor = scale / np.sqrt(variance + attribute_value(node, "epsilon"))
    return _Learned(factor, shift - mean * factor)


def _replace(op: Builder, match: Match, learned: _Learned) -> Value:
    return folded(op, match, learned.factor, learned.shift)


FUSE_CONV_BATCHNORM = Rule("fuse_conv_batchnorm", _pattern, _replace, _check)
