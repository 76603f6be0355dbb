"""Fold a factor into the constant matrix of a product.

    Mul(MatMul(a, w), k)              ->      MatMul(a, w * k)                    for a constant k: a number, or one for each column
    Mul(Gemm(a, w, c?), k)            ->      Gemm(a, w * k, c * k)
    Gemm(a, w, c?) {alpha, beta}      ->      Gemm(a, w * alpha, c * beta)        where alpha or beta is not 1; any c where beta is

and Div by k likewise, computed in float64 and rounded once.

Left alone:
    w, k or c that are no constants, and w that is no matrix
    w that has other users: it would be stored twice
    types other than floating-point; a k that is not finite, or that would make the result larger
    a product that has other users: both results are needed
    a product that is quantized: `defer_scales` puts the factor there
"""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.ir import Value
from sardonyx.ops.views.matmul import Gemm
from sardonyx.optimize.helpers.channels import FLOATS
from sardonyx.optimize.helpers.quantized import is_quantized
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["FOLD_GEMM_SCALES", "FUSE_MATMUL_MULTIPLY"]


def _pattern(op: PatternBuilder, a: Term, w: Term) -> Term:
    weights, factor = op.constant(w), op.constant("factor")
    gemm = op.Gemm(a, weights, op.optional_constant("c"), _as="product")
    product = op.any_of(op.MatMul(a, weights, _as="product"), gemm)
    return op.any_of(op.Mul(product, factor), op.Div(product, factor))


def _check(match: Match) -> str | Array:
    reason = _weights_reason(match)
    if reason is not None or is_quantized(match.outputs[0]):
        return reason or "the product is quantized"
    node, result, weights = match.node("product"), match.outputs[0], match.tensor("w")
    columns = 0 if weights is None else weights.shape[Gemm.of(node).column_axis]
    factor = match.constant("factor", max(columns, 1))
    if factor is None or factor.shape not in ((), (1,), (columns,), (1, columns)) or node.output.shape != result.shape:
        return f"the factor has shape {match['factor'].shape}, expected a number or one for each of {columns} columns"
    with np.errstate(divide="ignore"):
        wide = factor.astype(np.float64).reshape(-1)
        scale: Array = 1 / wide if match.root.op_type == "Div" else wide
    return scale if np.isfinite(scale).all() else "the factor is not finite"


def _weights_reason(match: Match) -> str | None:
    weights = match.tensor("w")
    if weights is None or len(weights.shape) != 2 or weights.dtype not in FLOATS:
        return "the weights are no matrix of floating-point numbers"
    return "the weights have other users" if match["w"].use_count > 1 else None


def _replace(op: Builder, match: Match, scale: Array) -> Value:
    node = match.node("product")
    if node.op_type == "MatMul":
        return op.MatMul(match["a"], _scaled(op, match, "w", scale), _version=node.version)
    return _gemm(op, match, scale)


def _gemm(op: Builder, match: Match, scale: Array) -> Value:
    """Return the Gemm of a match with a result that is multiplied by `scale`, without alpha and beta."""
    node = match.node("product")
    view = Gemm.of(node)
    alpha, beta = view.alpha, view.beta
    columns = scale[:, None] if view.transposes_b and scale.size > 1 else scale
    inputs = [match["a"], _scaled(op, match, "w", columns * alpha)]
    if match.get("c") is not None:
        inputs.append(match["c"] if match.tensor("c") is None else _scaled(op, match, "c", scale * beta))
    return op.Gemm(*inputs, _attributes=node.attributes, _version=node.version, alpha=1.0, beta=1.0)


def _scaled(op: Builder, match: Match, name: str, scale: Array) -> Value:
    tensor = match.tensor(name)
    if tensor is None:
        raise ValueError(f"{name} is no constant")
    return op.constant((tensor.numpy().astype(np.float64) * scale).astype(tensor.dtype.numpy), f"{match[name].name}/scaled")


def _gemm_pattern(op: PatternBuilder, a: Term, w: Term) -> Term:
    return op.Gemm(a, op.constant(w), op.optional("c"), _as="product")


def _check_gemm(match: Match) -> str | None:
    node = match.node("product")
    alpha, beta = Gemm.of(node).alpha, 1 if match.get("c") is None else Gemm.of(node).beta
    if alpha == 1 and beta == 1:
        return "alpha and beta are 1"
    if beta == 0:
        return "beta is 0, under which C may hold anything"
    if beta != 1 and match.tensor("c") is None:
        return "beta scales a C that is no constant"
    return _weights_reason(match)


def _replace_gemm(op: Builder, match: Match, learned: None) -> Value:
    return _gemm(op, match, np.ones(1))


FUSE_MATMUL_MULTIPLY = Rule(
    "fuse_matmul_multiply",
    _pattern,
    _replace,
    _check,
    aliases=("MatMulScaleFusion",),
    summary="Fold a constant factor into the constant matrix of the product before it.",
)
FOLD_GEMM_SCALES = Rule(
    "fold_gemm_scales",
    _gemm_pattern,
    _replace_gemm,
    _check_gemm,
    aliases=("MatMulScaleFusion",),
    summary="Fold alpha and beta of a Gemm into its constant operands.",
)
