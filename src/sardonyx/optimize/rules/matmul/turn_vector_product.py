"""Multiply a vector from the other side instead of transposing the matrix.

    MatMul(Transpose(a), v)           ->      MatMul(v, a)            for a vector v
    MatMul(v, Transpose(b))           ->      MatMul(b, v)

as FusedMatMul reads transposed operands, but of two matrices only.

Left alone:
    a transpose that does anything but exchange the last two dimensions, and one that has other users
    v whose rank is not known to be 1
"""

from __future__ import annotations

from sardonyx.ir import Value
from sardonyx.optimize.contract import Level
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.rules.matmul.fuse_matmul_transpose import exchanges_last
from sardonyx.optimize.target import microsoft
from sardonyx.optimize.terms import Term

__all__ = ["TURN_VECTOR_PRODUCT"]


def _pattern(op: PatternBuilder, matrix: Term, vector: Term) -> Term:
    turned = op.Transpose(matrix, _as="transpose")
    return op.any_of(op.MatMul(turned, vector), op.MatMul(vector, turned))


def _check(match: Match) -> str | None:
    shape = match["vector"].shape
    if shape is None or len(shape) != 1:
        return f"the other operand is {shape}, expected a vector"
    return None if exchanges_last(match.node("transpose")) else "the transpose moves other dimensions"


def _replace(op: Builder, match: Match, learned: None) -> Value:
    matrix, vector = match["matrix"], match["vector"]
    operands = (vector, matrix) if match.root.inputs[1] is vector else (matrix, vector)
    return op.MatMul(*operands, _version=match.root.version)


TURN_VECTOR_PRODUCT = Rule("turn_vector_product", _pattern, _replace, _check, Level.EXTENDED, makes=microsoft("FusedMatMul"))
