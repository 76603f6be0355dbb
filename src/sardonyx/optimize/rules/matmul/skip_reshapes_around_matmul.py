"""Remove the reshapes around a product that merge leading dimensions and split them again.

    Reshape(Gemm(Reshape(x, [-1, K]), w, c?), [..., N])            ->      MatMul(x, w) + c             for x (..., K), w constant
    Reshape(MatMul(Reshape(x, [-1, K]), w), [..., N])              ->      MatMul(x, w)

so that what follows, an activation or a residual of the shape of the result, can be computed where the product is stored.

Left alone:
    reshapes that join or split the last dimension, or shapes that are not known to be the same before and after
    w that is no constant matrix; transA, alpha or beta
    c that is no row
    a product whose result has other users
The first reshape stays where it has other users.
"""

from __future__ import annotations

import numpy as np

from sardonyx.ir import Value
from sardonyx.ops.views.matmul import Gemm
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["SKIP_RESHAPES_AROUND_MATMUL"]


def _pattern(op: PatternBuilder, x: Term, w: Term) -> Term:
    rows = op.Reshape(x, op.rest("rows"), _shared=True)
    gemm = op.Gemm(rows, op.constant(w), op.optional("c"), transA=0, _as="product")
    return op.Reshape(op.any_of(gemm, op.MatMul(rows, op.constant(w), _as="product")), op.rest("shape"))


def _check(match: Match) -> str | None:
    node, x, result = match.node("product"), match["x"].shape, match.outputs[0].shape
    weights, left, made = match.tensor("w"), node.inputs[0], node.output.shape
    if weights is None or len(weights.shape) != 2 or left is None or left.shape is None or len(left.shape) != 2:
        return "the product is not one of a matrix and a constant matrix"
    if x is None or result is None or made is None or len(x) < 3 or x[-1] != left.shape[1] or result != (*x[:-1], made[1]):
        return f"{x} becomes {result}, which are not known to differ in the last dimension alone"
    if node.op_type == "Gemm" and Gemm.of(node).is_scaled:
        return "alpha or beta is set"
    bias = match.get("c")
    if bias is not None and bias.shape not in ((made[1],), (1, made[1])):
        return f"what is added has shape {bias.shape}, expected a row of {made[1]}"
    return None


def _replace(op: Builder, match: Match, learned: None) -> Value:
    node, weights, bias = match.node("product"), match.tensor("w"), match.get("c")
    if weights is None:
        raise ValueError("the weights are no constant")
    is_transposed = node.op_type == "Gemm" and Gemm.of(node).transposes_b
    matrix = op.constant(np.ascontiguousarray(weights.numpy().T), f"{match['w'].name}/transposed") if is_transposed else match["w"]
    made = op.MatMul(match["x"], matrix)
    return made if bias is None else op.Add(made, bias)


SKIP_RESHAPES_AROUND_MATMUL = Rule("skip_reshapes_around_matmul", _pattern, _replace, _check)
