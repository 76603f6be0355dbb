"""Write gates and distances of com.microsoft, and masks of Dropout, as the operators that they stand for.

    GatedAdd(x, y, gate)             ->      x + y * gate
    BiasAdd(x, bias, skip)           ->      x + bias + skip
    ScaledSiLU(x) {alpha}            ->      Swish(x * alpha)
    CDist(a, b) {metric}             ->      max(|a|^2 + |b|^2 - 2 a b^T, 0), or its root
    y, mask = Dropout(x)             ->      x, and True as often as x has elements

Left alone:
    types other than float, and float16 where operators round each product
    a scale that is an input, and matrices whose rank is not 2
    Dropout that may train, or whose mask is in the type of x
"""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.ir import Value
from sardonyx.ops.views.random import Dropout
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import microsoft, standard
from sardonyx.optimize.terms import Term

__all__ = ["EXPAND_DISTANCES", "EXPAND_DROPOUT_MASK", "EXPAND_GATES"]

_MICROSOFT = "com.microsoft"
_GATES = ("BiasAdd", "GatedAdd", "ScaledSiLU")
_AXES_ARE_INPUTS = 18


def _pattern(op: PatternBuilder) -> Term:
    return op.any_of(*(op.node(name, op.rest("inputs"), _domain=_MICROSOFT) for name in _GATES))


def _check(match: Match) -> str | None:
    node, inputs = match.root, match.rest("inputs")
    if any(value is not None and value.dtype is not DataType.FLOAT for value in inputs):
        return "it is not of float"
    if node.op_type == "ScaledSiLU":
        return "its scale is an input" if len(inputs) > 1 and inputs[1] is not None else None
    shapes = [value.shape if value is not None else None for value in inputs]
    x, other, last = (*shapes, None, None, None)[:3]
    fits = x is not None and (
        (other == x and last == (*x[:-1], 1)) if node.op_type == "GatedAdd" else (other == x[-1:] and last == x)
    )
    return None if fits else f"its inputs of shapes {shapes} are not known to fit"


def _replace(op: Builder, match: Match, learned: None) -> Value:
    node, inputs = match.root, match.rest("inputs")
    if node.op_type == "GatedAdd":
        return op.Add(inputs[0], op.Mul(inputs[1], inputs[2]))
    if node.op_type == "BiasAdd":
        return op.Add(op.Add(inputs[0], inputs[1]), inputs[2])
    alpha = node.number("alpha", 1.0)
    return op.Swish(inputs[0] if alpha == 1 else op.Mul(inputs[0], np.float32(alpha)), alpha=1.0)


def _distance_pattern(op: PatternBuilder, a: Term, b: Term) -> Term:
    return op.CDist(a, b, _domain=_MICROSOFT)


def _check_distance(match: Match) -> str | None:
    a, b, metric = match["a"], match["b"], match.root.text("metric", "sqeuclidean")
    if {a.dtype, b.dtype} != {DataType.FLOAT} or a.shape is None or b.shape is None or len(a.shape) != 2 or len(b.shape) != 2:
        return "it is not of two matrices of float"
    if a.shape[1] != b.shape[1]:
        return f"that rows of {a.shape[1]} and {b.shape[1]} elements are as long is not known"
    return None if metric in ("sqeuclidean", "euclidean") else f"metric={metric!r}"


def _replace_distance(op: Builder, match: Match, learned: None) -> Value:
    a, b = match["a"], match["b"]
    version = max(op.version(), _AXES_ARE_INPUTS)
    along = np.array([1], np.int64)
    left = op.node("ReduceSumSquare", a, along, keepdims=1, _version=version)
    right = op.node("ReduceSumSquare", b, along, keepdims=0, _version=version)
    product = op.Mul(op.MatMul(a, op.Transpose(b, perm=[1, 0])), np.float32(2))
    squared = op.Max(op.Sub(op.Add(left, right), product), np.float32(0))
    return op.Sqrt(squared) if match.root.text("metric", "sqeuclidean") == "euclidean" else squared


def _dropout_pattern(op: PatternBuilder, x: Term) -> tuple[Term, ...]:
    return op.outputs(op.Dropout(x, op.optional("ratio"), op.optional("training")), 2)


def _check_dropout(match: Match) -> str | None:
    view = Dropout.of(match.root, match.inputs(match.root))
    if view.is_training is not False:
        return "it may train"
    return None if view.has_flag_mask else "the mask is in the type of the data"


def _replace_dropout(op: Builder, match: Match, learned: None) -> tuple[Value, ...]:
    x = match["x"]
    return op.Identity(x), op.Expand(np.array(True), op.Shape(x))


EXPAND_GATES = Rule(
    "expand_gates",
    _pattern,
    _replace,
    _check,
    takes_apart=microsoft(*_GATES),
    summary="Write GatedAdd, BiasAdd and ScaledSiLU as sums and products.",
)
EXPAND_DISTANCES = Rule(
    "expand_distances",
    _distance_pattern,
    _replace_distance,
    _check_distance,
    takes_apart=microsoft("CDist"),
    summary="Write CDist as a product of matrices and sums of squares.",
)
EXPAND_DROPOUT_MASK = Rule(
    "expand_dropout_mask",
    _dropout_pattern,
    _replace_dropout,
    _check_dropout,
    takes_apart=standard("Dropout"),
    summary="Write Dropout whose mask is read as its input and a mask of True.",
)
