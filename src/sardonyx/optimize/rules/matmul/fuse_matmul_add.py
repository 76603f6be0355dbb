"""Fold an addition into the product before it, as Gemm.

    Add(MatMul(a, w), c)                        ->      Gemm(a, w, c)         for a matrix a, a constant matrix w,
                                                                              and c a row or of the size of the result
    Add(Gemm(a, b), c), Sum(Gemm(a, b), c)      ->      Gemm(a, b, c)         for such c

Left alone:
    products of more than two dimensions, or of which w is no constant: kernels prepare constant matrices
    a Gemm that adds something already
    types other than floating-point, and opsets that broadcast by an attribute (Add before 7)
    a product that has other users: both results are needed
"""

from __future__ import annotations

from sardonyx.ir import Value
from sardonyx.ops.views.binary import Broadcast
from sardonyx.optimize.helpers.channels import FLOATS
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["FUSE_MATMUL_ADD"]


def _pattern(op: PatternBuilder, a: Term, b: Term, c: Term) -> Term:
    gemm = op.Gemm(a, b, _as="product")
    return op.any_of(op.Add(op.any_of(op.MatMul(a, op.constant(b), _as="product"), gemm), c), op.Sum(gemm, c))


def _check(match: Match) -> str | None:
    result, added, node = match.outputs[0], match["c"], match.node("product")
    shapes = [value.shape for value in (match["a"], match["b"], result)]
    if any(shape is None or len(shape) != 2 for shape in shapes) or result.shape is None:
        return f"the shapes are {shapes}, expected matrices"
    if result.dtype not in FLOATS or added.dtype is not result.dtype or not Broadcast.of(match.root).is_numpy:
        return f"opset {match.root.version} adds {added.dtype} to {result.dtype}"
    columns = result.shape[1]
    if added.shape not in ((columns,), (1, columns), result.shape) or node.output.shape != result.shape:
        return f"what is added has shape {added.shape}, expected a row of {columns} or {result.shape}"
    return None


def _replace(op: Builder, match: Match, learned: None) -> Value:
    node = match.node("product")
    attributes = node.attributes if node.op_type == "Gemm" else {}
    return op.Gemm(match["a"], match["b"], match["c"], _attributes=attributes, beta=1.0 if "beta" in attributes else None)


FUSE_MATMUL_ADD = Rule(
    "fuse_matmul_add",
    _pattern,
    _replace,
    _check,
    aliases=(
        "GemmSumFusion",
        "MatMulAddFusion",
    ),
)
