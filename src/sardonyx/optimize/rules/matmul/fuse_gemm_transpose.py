"""Fold the transposition of an operand into Gemm.

    Gemm(Transpose(a), b, c?) {transA = t}            ->      Gemm(a, b, c?) {transA = 1 - t}, and likewise for b

Left alone:
    a transpose that does not exchange the two axes of a matrix
The transpose stays where it has other users.
"""

from __future__ import annotations

from sardonyx.ir import Value
from sardonyx.ops.views.reshape import Transpose
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["FUSE_GEMM_TRANSPOSE"]


def _pattern(op: PatternBuilder, a: Term, b: Term) -> Term:
    return op.any_of(
        op.Gemm(op.Transpose(a, _as="left", _shared=True), b, op.optional("c")),
        op.Gemm(a, op.Transpose(b, _as="right", _shared=True), op.optional("c")),
    )


def _check(match: Match) -> str | None:
    (node,) = [node for node in match.nodes if node is not match.root]
    perm, value = Transpose.of(node).permutation, node.inputs[0]
    is_matrix = value is not None and value.shape is not None and len(value.shape) == 2
    if list(perm) != [1, 0] if perm is not None else not is_matrix:
        return "the transpose does not exchange the axes of a matrix"
    return None


def _replace(op: Builder, match: Match, learned: None) -> Value:
    node = match.root
    name = "transA" if node.inputs[0] is not match["a"] else "transB"
    bias = match.get("c")
    flipped = {name: int(not node.flag(name))}
    return op.Gemm(match["a"], match["b"], *([] if bias is None else [bias]), _attributes=node.attributes, **flipped)


FUSE_GEMM_TRANSPOSE = Rule("fuse_gemm_transpose", _pattern, _replace, _check, aliases=("GemmTransposeFusion",))
