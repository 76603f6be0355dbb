"""Read transposed operands of a product in place, and scale where it stores its result.

    MatMul(Transpose(a), b)               ->      com.microsoft.FusedMatMul(a, b) {transA = 1}, and likewise for b
    MatMul(a, b) * k                      ->      FusedMatMul(a, b) {alpha = k}, for a constant number k; likewise / k

and so with a FusedMatMul in the place of the MatMul.

Left alone:
    types other than float and float16; vectors, with which onnxruntime 1.31 computes something else
    a transpose that does anything but exchange the last two of two or more dimensions
    a product that has other users, where it is scaled; the transpose stays where it has other users
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from sardonyx.ir import Node, Value
from sardonyx.ops.views.reshape import Transpose
from sardonyx.optimize.contract import Level
from sardonyx.optimize.helpers.activation import fused_type_reason
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import microsoft
from sardonyx.optimize.terms import Term

__all__ = ["FUSE_MATMUL_SCALE", "FUSE_MATMUL_TRANSPOSE", "exchanges_last"]

_MICROSOFT = "com.microsoft"


def _products(op: PatternBuilder, a: Term, b: Term) -> tuple[Term, Term]:
    fused = op.FusedMatMul(a, b, _domain=_MICROSOFT, _as="product", transBatchA=0, transBatchB=0)
    return op.MatMul(a, b, _as="product"), fused


def _pattern(op: PatternBuilder, a: Term, b: Term) -> Term:
    left, right = op.Transpose(a, _as="left", _shared=True), op.Transpose(b, _as="right", _shared=True)
    return op.any_of(*_products(op, left, b), *_products(op, a, right))


def _check(match: Match) -> str | None:
    (node,) = [node for node in match.nodes if node is not match.root]
    if not exchanges_last(node):
        return "the transpose moves other dimensions"
    return fused_type_reason(match.outputs[0]) or _rank_reason(match.node("product"))


def _rank_reason(product: Node) -> str | None:
    shapes = [None if value is None else value.shape for value in product.inputs]
    return None if all(shape is not None and len(shape) > 1 for shape in shapes) else f"an operand of {shapes} is no matrix"


def exchanges_last(node: Node) -> bool:
    """Return whether a Transpose exchanges the last two dimensions and keeps the others."""
    value, perm = node.inputs[0], Transpose.of(node).permutation
    rank = len(value.shape) if value is not None and value.shape is not None else 0
    order = list(perm) if perm is not None else list(reversed(range(rank)))
    return rank > 1 and order == [*range(rank - 2), rank - 1, rank - 2]


def _replace(op: Builder, match: Match, learned: None) -> Value:
    name = "transA" if match.root.inputs[0] is not match["a"] else "transB"
    return _fused(op, match, {name: 1 - int(match.root.get(name, 0))})


def _fused(op: Builder, match: Match, changes: Mapping[str, int | float]) -> Value:
    node = match.node("product")
    attributes = node.attributes if node.op_type == "FusedMatMul" else {}
    return op.FusedMatMul(match["a"], match["b"], _domain=_MICROSOFT, _attributes=attributes, **changes)


def _scale_pattern(op: PatternBuilder, a: Term, b: Term, factor: Term) -> Term:
    product = op.any_of(*_products(op, a, b))
    return op.any_of(op.Mul(product, op.constant(factor)), op.Div(product, op.constant(factor)))


def _check_scale(match: Match) -> str | float:
    array, result = match.constant("factor", 1), match.outputs[0]
    if array is None or array.size != 1 or match.node("product").output.shape != result.shape or result.shape is None:
        return f"the factor is {match['factor'].shape}, expected one number"
    factor = float(array.reshape(()))
    if match.root.op_type == "Div":
        factor = 1 / factor if factor else math.inf
    reason = fused_type_reason(result) or _rank_reason(match.node("product"))
    return reason or (factor if math.isfinite(factor) else "the factor is not finite")


def _replace_scale(op: Builder, match: Match, factor: float) -> Value:
    node = match.node("product")
    alpha = node.number("alpha", 1.0) if node.op_type == "FusedMatMul" else 1.0
    return _fused(op, match, {"alpha": alpha * factor})


FUSE_MATMUL_TRANSPOSE = Rule(
    "fuse_matmul_transpose",
    _pattern,
    _replace,
    _check,
    Level.EXTENDED,
    makes=microsoft("FusedMatMul"),
    aliases=("MatmulTransposeFusion",),
    summary="Fold the transposition of an operand into a product, as FusedMatMul of com.microsoft.",
)
FUSE_MATMUL_SCALE = Rule(
    "fuse_matmul_scale",
    _scale_pattern,
    _replace_scale,
    _check_scale,
    Level.EXTENDED,
    makes=microsoft("FusedMatMul"),
    aliases=("MatMulScaleFusion",),
    summary="Fold a factor into the product before it, as FusedMatMul of com.microsoft.",
)
