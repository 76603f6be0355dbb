"""Fold an activation into the convolution before it, as FusedConv of com.microsoft.

    Relu(Conv(x, w, b?))              ->      com.microsoft.FusedConv(x, w, b) {activation = "Relu"}
    Relu(FusedConv(x, w, b, z))       ->      FusedConv(x, w, b, z) {activation = "Relu"}

and likewise Sigmoid, Tanh, LeakyRelu, HardSwish, HardSigmoid, and Clip by constant limits. The numbers are the same.

Left alone:
    types other than float and float16, for which the operator is not defined
    a convolution that has other users, and a FusedConv that has an activation
"""

from __future__ import annotations

from sardonyx.ir import Value
from sardonyx.optimize.contract import Level
from sardonyx.optimize.helpers.activation import activation_of, any_activation, fused_type_reason
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import microsoft
from sardonyx.optimize.terms import Term

__all__ = ["FUSE_CONV_ACTIVATION"]

_ACTIVATIONS = ("Clip", "HardSigmoid", "HardSwish", "LeakyRelu", "Relu", "Sigmoid", "Tanh")
_MICROSOFT = "com.microsoft"


def _pattern(op: PatternBuilder) -> Term:
    inputs = op.rest("inputs")
    fused = op.FusedConv(inputs, _domain=_MICROSOFT, _as="conv", activation=lambda name: not name)
    return any_activation(op, _ACTIVATIONS, op.any_of(op.Conv(inputs, _as="conv"), fused))


def _check(match: Match) -> str | tuple[str, list[float]]:
    return fused_type_reason(match.outputs[0]) or activation_of(match)


def _replace(op: Builder, match: Match, activation: tuple[str, list[float]]) -> Value:
    name, parameters = activation
    return op.FusedConv(
        *match.rest("inputs"),
        _domain=_MICROSOFT,
        _attributes=match.node("conv").attributes,
        activation=name,
        activation_params=parameters or None,
    )


FUSE_CONV_ACTIVATION = Rule(
    "fuse_conv_activation",
    _pattern,
    _replace,
    _check,
    Level.EXTENDED,
    makes=microsoft("FusedConv"),
    aliases=(
        "ConvActivationFusion",
        "ConvAddActivationFusion",
    ),
)
