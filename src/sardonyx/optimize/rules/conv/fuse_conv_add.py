"""Fold the addition of a constant per channel into the convolution before it.

    Add(Conv(x, w, b?), c)                ->      Conv(x, w, b + c)
    Add(ConvTranspose(x, w, b?), c)       ->      ConvTranspose likewise

computed in float64 and rounded once.

Left alone:
    a summand that is no constant, or varies along another axis than that of the channels, or makes the rank larger
    a convolution whose result has other users: both results are needed
    weights or bias that are no constants, weights with other users, weights that are no floating-point numbers
"""

from __future__ import annotations

from sardonyx.dtypes import Array
from sardonyx.ir import Value
from sardonyx.optimize.helpers.channels import channels_of, folded, per_channel, weights_reason
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["FUSE_CONV_ADD"]


def _pattern(op: PatternBuilder, x: Term, w: Term, c: Term) -> Term:
    bias = op.optional_constant("b")
    convolution = op.any_of(
        op.Conv(x, op.constant(w), bias, _as="convolution"),
        op.ConvTranspose(x, op.constant(w), bias, _as="convolution"),
    )
    return op.Add(convolution, op.constant(c))


def _check(match: Match) -> str | Array:
    reason = weights_reason(match)
    if reason is not None:
        return reason
    weights, summand = match.tensor("w"), match.tensor("c")
    if weights is None or summand is None:
        return "the weights or the summand are no constants"
    found = per_channel(summand, channels_of(match.node("convolution"), weights), len(weights.shape))
    return f"the summand has shape {summand.shape}, which is not one number per channel" if found is None else found


def _replace(op: Builder, match: Match, summand: Array) -> Value:
    return folded(op, match, None, summand)


FUSE_CONV_ADD = Rule("fuse_conv_add", _pattern, _replace, _check, aliases=("ConvAddFusion",))
