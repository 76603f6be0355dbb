"""Write convolutions and products of com.microsoft that take an activation as what ai.onnx has for them.

    FusedConv(x, w, b?, z?) {activation, activation_params}      ->      activation(Conv(x, w, b) + z)
    FusedGemm(a, b, c?) {activation, activation_alpha …}         ->      activation(Gemm(a, b, c))
    FusedMatMul(a, b) {alpha, transA, transB}                    ->      MatMul(a, b) * alpha, transposed before
    TransposeMatMul(a, b) {alpha, transA, transB}                ->      the same
    FusedMatMulActivation(a, b) {activation, activation_axis …}  ->      activation(FusedMatMul(a, b)), likewise

so that any provider computes them; the CPU provider computes what follows where it stores the product.

Left alone:
    types other than float and float16, for which the operators are not defined
    activations other than those below, and FusedMatMul that transposes batches, vectors, or operands of unknown rank
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sardonyx.dtypes import Array, DataType
from sardonyx.ir import Node, Value
from sardonyx.optimize.helpers.activation import PARAMETERS, fused_type_reason
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import microsoft
from sardonyx.optimize.terms import Term

__all__ = ["EXPAND_FUSED_PRODUCTS", "EXPAND_TRANSPOSE_MATMUL"]

_MICROSOFT = "com.microsoft"

_PRODUCTS = ("FusedMatMul", "FusedMatMulActivation", "TransposeMatMul")
_OWN = frozenset(["activation", "activation_params", "activation_alpha", "activation_beta", "activation_gamma"])
"""Attributes that the operator has for the activation."""


def _pattern(op: PatternBuilder) -> Term:
    return op.any_of(
        op.FusedConv(op.rest("inputs"), _domain=_MICROSOFT),
        op.FusedGemm(op.rest("inputs"), _domain=_MICROSOFT),
        *(op.node(name, op.rest("inputs"), transBatchA=0, transBatchB=0, _domain=_MICROSOFT) for name in _PRODUCTS[:2]),
    )


def _transposing_pattern(op: PatternBuilder) -> Term:
    return op.TransposeMatMul(op.rest("inputs"), _domain=_MICROSOFT)


def _check(match: Match) -> str | None:
    node, inputs = match.root, match.rest("inputs")
    values = [value for value in inputs if value is not None]
    reason = fused_type_reason(*values, node.output)
    if reason is not None:
        return reason
    if node.op_type in _PRODUCTS:
        transposed = [value for value, name in zip(inputs, ("transA", "transB"), strict=False) if node.flag(name)]
        if not all(value is not None and value.shape is not None and len(value.shape) > 1 for value in transposed):
            return "what is transposed is a vector, or of unknown rank"
    name = _activation(node)
    if name and not _is_known(node, name):
        return f"the activation is {name!r}, expected one of {', '.join(PARAMETERS)} with its parameters"
    return None


def _is_known(node: Node, name: str) -> bool:
    if name == "Softmax":
        return node.op_type == "FusedMatMulActivation"
    return name in PARAMETERS and (name != "Clip" or len(_parameters(node)) == len(PARAMETERS[name]))


def _activation(node: Node) -> str:
    return node.text("activation", "")


def _parameters(node: Node) -> Sequence[float]:
    if node.op_type == "FusedConv":
        return node.numbers("activation_params", ())
    given = (node.number("activation_alpha"), node.number("activation_beta"))
    return tuple(value for value in given if value is not None)


def _replace(op: Builder, match: Match, learned: None) -> Value:
    node, inputs = match.root, match.rest("inputs")
    if node.op_type in _PRODUCTS:
        return _activated(op, node, _product(op, node, inputs))
    attributes = {name: value for name, value in node.attributes.items() if name not in _OWN}
    if node.op_type == "FusedGemm":
        return _activated(op, node, op.Gemm(*inputs, _attributes=attributes))
    made = op.Conv(*inputs[:3], _attributes=attributes)
    return _activated(op, node, made if len(inputs) < 4 or inputs[3] is None else op.Add(made, inputs[3]))


def _activated(op: Builder, node: Node, value: Value) -> Value:
    name, parameters = _activation(node), _parameters(node)
    if name == "":
        return value
    if name == "Softmax":
        return op.Softmax(value, axis=node.integer("activation_axis", -1))
    if name == "Clip":
        return op.Clip(value, *(_number(limit, value) for limit in parameters), _version=13)
    return op.node(name, value, **dict(zip(PARAMETERS[name], map(float, parameters), strict=False)))


def _product(op: Builder, node: Node, inputs: Sequence[Value | None]) -> Value:
    sides = (_transposed(op, value) if node.flag(name) else value for value, name in zip(inputs, ("transA", "transB"), strict=True))
    alpha, made = node.number("alpha", 1.0), op.MatMul(*sides)
    return made if alpha == 1 else op.Mul(made, _number(alpha, made))


def _number(number: float, like: Value) -> Array:
    """Return `number` in the type of a value, as large as that has it."""
    dtype = np.float16 if like.dtype is DataType.FLOAT16 else np.float32
    return np.array(np.clip(number, np.finfo(dtype).min, np.finfo(dtype).max), dtype)


def _transposed(op: Builder, value: Value | None) -> Value:
    """Return the last two dimensions exchanged."""
    rank = len(value.shape or ()) if value is not None else 0
    return op.Transpose(value, perm=[*range(rank - 2), rank - 1, rank - 2])


EXPAND_FUSED_PRODUCTS = Rule(
    "expand_fused_products",
    _pattern,
    _replace,
    _check,
    takes_apart=microsoft("FusedConv", "FusedGemm", "FusedMatMul", "FusedMatMulActivation"),
    takes_legal_apart=True,
)
EXPAND_TRANSPOSE_MATMUL = Rule(
    "expand_transpose_matmul",
    _transposing_pattern,
    _replace,
    _check,
    takes_apart=microsoft("TransposeMatMul"),
    summary="Write TransposeMatMul as MatMul.",
)
