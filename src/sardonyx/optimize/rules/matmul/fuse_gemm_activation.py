"""Fold an activation into the Gemm before it, as FusedGemm of com.microsoft.

    Relu(Gemm(a, b, c?))              ->      com.microsoft.FusedGemm(a, b, c) {activation = "Relu"}

and likewise Sigmoid, Tanh, LeakyRelu, Softplus, Softsign. The numbers are the same.

Left alone:
    types other than float and float16, for which the operator is not defined
    a product that has other users
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

__all__ = ["FUSE_GEMM_ACTIVATION"]

_ACTIVATIONS = ("LeakyRelu", "Relu", "Sigmoid", "Softplus", "Softsign", "Tanh")


def _pattern(op: PatternBuilder) -> Term:
    return any_activation(op, _ACTIVATIONS, op.Gemm(op.rest("inputs"), _as="product"))


def _check(match: Match) -> str | tuple[str, list[float]]:
    return fused_type_reason(match.outputs[0]) or activation_of(match)


def _replace(op: Builder, match: Match, activation: tuple[str, list[float]]) -> Value:
    name, parameters = activation
    return op.FusedGemm(
        *match.rest("inputs"),
        _domain="com.microsoft",
        _attributes=match.node("product").attributes,
        activation=name,
        activation_alpha=parameters[0] if parameters else None,
    )


FUSE_GEMM_ACTIVATION = Rule(
    "fuse_gemm_activation",
    _pattern,
    _replace,
    _check,
    Level.EXTENDED,
    makes=microsoft("FusedGemm"),
    aliases=("GemmActivationFusion",),
)
