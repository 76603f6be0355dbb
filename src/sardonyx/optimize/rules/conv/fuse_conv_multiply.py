"""Fold a multiplication by a constant per channel into the convolution before it.

    Mul(Conv(x, w, b?), c)                ->      Conv(x, w * c, b * c)
    Mul(ConvTranspose(x, w, b?), c)       ->      ConvTranspose likewise

computed in float64 and rounded once.

Left alone:
    a factor that is no constant, or varies along another axis than that of the channels, or makes the rank larger
    a convolution whose result has other users: both results are needed
    a product that is quantized: `defer_scales` puts the factor there
    weights or bias that are no constants, weights with other users, weights that are no floating-point numbers
"""

from __future__ import annotations

from sardonyx.dtypes import Array
from sardonyx.ir import Value
from sardonyx.optimize.helpers.channels import channels_of, folded, per_channel, weights_reason
from sardonyx.optimize.helpers.quantized import is_quantized
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["FUSE_CONV_MULTIPLY"]


def _pattern(op: PatternBuilder, x: Term, w: Term, c: Term) -> Term:
    bias = op.optional_constant("b")
    convolution = op.any_of(
        op.Conv(x, op.constant(w), bias, _as="convolution"),
        op.ConvTranspose(x, op.constant(w), bias, _as="convolution"),
    )
    return op.Mul(convolution, op.constant(c))


def _check(match: Match) -> str | Array:
    reason = weights_reason(match)
    if reason is not None or is_quantized(match.outputs[0]):
        return reason or "the product is quantized"
    weights, factor = match.tensor("w"), match.tensor("c")
    if weights is None or factor is None:
        return "the weights or the factor are no constants"
    found = per_channel(factor, channels_of(match.node("convolution"), weights), len(weights.shape))
    return f"the factor has shape {factor.shape}, which is not one number per channel" if found is None else found


def _replace(op: Builder, match: Match, factor: Array) -> Value:
    return folded(op, match, factor, None)


FUSE_CONV_MULTIPLY = Rule("fuse_conv_multiply", _pattern, _replace, _check, aliases=("ConvMulFusion",))
