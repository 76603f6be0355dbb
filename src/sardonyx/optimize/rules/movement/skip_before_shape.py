"""Ask the value before an operator that changes no shape for its shape.

    Shape(f(x)), Size(f(x))            ->      Shape(x), Size(x)            for f: Cast and unary element-wise operators
    Gather(Shape(Transpose(x)), i)     ->      Gather(Shape(x), j)          j: the constant i, permuted

Left alone: indices that are no constants; f stays where it has other users. So the shape does not wait for the numbers, and a Cast
that only Shape reads goes.
"""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.ir import Value
from sardonyx.ops.views.reshape import Transpose
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["SKIP_BEFORE_SHAPE", "SKIP_TRANSPOSE_BEFORE_SHAPE"]

_SHAPE_KEEPING = (
    "Cast",
    "Abs",
    "Neg",
    "Relu",
    "Sigmoid",
    "Tanh",
    "Exp",
    "Log",
    "Sqrt",
    "Erf",
    "Not",
    "Identity",
    "Gelu",
    "LeakyRelu",
    "Clip",
    "Softmax",
)


def _pattern(op: PatternBuilder, x: Term) -> Term:
    inner = op.any_of(*(op.node(name, x, op.rest("operands"), _shared=True) for name in _SHAPE_KEEPING))
    return op.any_of(op.Shape(inner), op.Size(inner))


def _replace(op: Builder, match: Match, learned: None) -> Value:
    return op.node(match.root.op_type, match["x"], _attributes=match.root.attributes)


def _transpose_pattern(op: PatternBuilder, x: Term, indices: Term) -> Term:
    transposed = op.Transpose(x, _as="transpose", _shared=True)
    return op.Gather(op.Shape(transposed, _as="shape", _shared=True), op.constant(indices), axis=0)


def _check_transpose(match: Match) -> str | Array:
    perm, indices, shape = Transpose.of(match.node("transpose")).permutation, match.constant("indices"), match.node("shape")
    if perm is None or indices is None or shape.integer("start", 0) or shape.integer("end") is not None:
        return "the indices, or the dimensions that they count, are not known"
    return np.asarray(perm, np.int64)[indices]


def _replace_transpose(op: Builder, match: Match, indices: Array) -> Value:
    return op.Gather(op.Shape(match["x"], _version=match.node("shape").version), indices, _attributes=match.root.attributes)


SKIP_BEFORE_SHAPE = Rule(
    "skip_before_shape",
    _pattern,
    _replace,
    aliases=("PreShapeNodeElimination",),
    summary="Read the shape of a value before an operator that changes no shape instead of after.",
)
SKIP_TRANSPOSE_BEFORE_SHAPE = Rule(
    "skip_transpose_before_shape",
    _transpose_pattern,
    _replace_transpose,
    _check_transpose,
    summary="Read a dimension of a value before a transpose instead of after.",
)
