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

from sardonyx.ir import Value
from sardonyx.optimize.helpers.channels import Affine, channels_of, folded, normalization, weights_reason
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["FUSE_CONV_BATCHNORM"]


def _pattern(op: PatternBuilder, x: Term, w: Term, scale: Term, shift: Term, mean: Term, variance: Term) -> Term:
    bias = op.optional_constant("b")
    convolution = op.any_of(
        op.Conv(x, op.constant(w), bias, _as="convolution"),
        op.ConvTranspose(x, op.constant(w), bias, _as="convolution"),
    )
    statistics = [op.constant(value) for value in (scale, shift, mean, variance)]
    return op.BatchNormalization(convolution, *statistics)


def _check(match: Match) -> str | Affine:
    reason, weights = weights_reason(match), match.tensor("w")
    if reason is not None or weights is None:
        return reason or "the weights are no constant"
    return normalization(match, channels_of(match.node("convolution"), weights))


def _replace(op: Builder, match: Match, learned: Affine) -> Value:
    return folded(op, match, learned.factor, learned.shift)


FUSE_CONV_BATCHNORM = Rule("fuse_conv_batchnorm", _pattern, _replace, _check, aliases=("ConvBNFusion",))
