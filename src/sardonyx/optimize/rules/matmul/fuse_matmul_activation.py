"""Fold an activation into the product before it, as FusedMatMulActivation of com.microsoft.

    Softmax(MatMul(a, b)) {axis = -1}                ->      com.microsoft.FusedMatMulActivation(a, b) {activation = "Softmax"}
    Relu(FusedMatMul(a, b) {transB = 1, alpha})      ->      FusedMatMulActivation(a, b) {transB = 1, alpha, activation = "Relu"}

and likewise Elu, HardSigmoid, LeakyRelu, Sigmoid, Softplus, Softsign, Tanh and ThresholdedRelu. Only for providers that prefer the
operator: onnxruntime's CPU provider lacks it, and the CPU provider here computes activations where it stores a product anyway.

Left alone:
    types other than float and float16; a Softmax along another axis than the last
    a product that has other users, or transposes batches
"""

from __future__ import annotations

from sardonyx.ir import Value
from sardonyx.ops.views.softmax import Softmax
from sardonyx.optimize.contract import Level
from sardonyx.optimize.helpers.activation import PARAMETERS, any_activation, fused_type_reason
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import microsoft
from sardonyx.optimize.terms import Term, attribute_value

__all__ = ["FUSE_MATMUL_ACTIVATION"]

_MICROSOFT = "com.microsoft"
_ACTIVATIONS = ("Elu", "HardSigmoid", "LeakyRelu", "Relu", "Sigmoid", "Softmax", "Softplus", "Softsign", "Tanh", "ThresholdedRelu")


def _pattern(op: PatternBuilder, a: Term, b: Term) -> Term:
    fused = op.FusedMatMul(a, b, _domain=_MICROSOFT, _as="product", transBatchA=0, transBatchB=0)
    return any_activation(op, _ACTIVATIONS, op.any_of(op.MatMul(a, b, _as="product"), fused))


def _check(match: Match) -> str | None:
    result = match.outputs[0]
    if match.root.op_type == "Softmax":
        axis, rank = Softmax.of(match.root).axis, len(result.shape or ())
        if axis not in (-1, rank - 1) or not rank:
            return f"the axis is {axis}, expected the last of {result.shape}"
    return fused_type_reason(result)


def _replace(op: Builder, match: Match, learned: None) -> Value:
    name = match.root.op_type
    parameters = {f"activation_{key}": float(attribute_value(match.root, key)) for key in PARAMETERS.get(name, ())}
    return op.FusedMatMulActivation(
        match["a"],
        match["b"],
        _domain=_MICROSOFT,
        _attributes=match.node("product").attributes,
        activation=name,
        activation_axis=-1 if name == "Softmax" else None,
        **parameters,
    )


FUSE_MATMUL_ACTIVATION = Rule(
    "fuse_matmul_activation",
    _pattern,
    _replace,
    _check,
    Level.EXTENDED,
    makes=microsoft("FusedMatMulActivation"),
    aliases=("MatMulActivationFusion",),
)
