"""Ask the value before an operator that changes no shape for its shape.

    Shape(f(x)), Size(f(x))            ->      Shape(x), Size(x)            for f: Cast and unary element-wise operators

Left alone: nothing; f stays where it has other users. So the shape does not wait for the numbers, and a Cast that only Shape
reads goes.
"""

from __future__ import annotations

from sardonyx.ir import Value
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["SKIP_BEFORE_SHAPE"]

_SHAPE_KEEPING = (
    "Cast", "Abs", "Neg", "Relu", "Sigmoid", "Tanh", "Exp", "Log", "Sqrt", "Erf", "Not", "Identity", "Gelu", "LeakyRelu", "Clip",
    "Softmax",
)  # fmt: skip


def _pattern(op: PatternBuilder, x: Term) -> Term:
    inner = op.any_of(*(op.node(name, x, op.rest("operands"), _shared=True) for name in _SHAPE_KEEPING))
    return op.any_of(op.Shape(inner), op.Size(inner))


def _replace(op: Builder, match: Match, learned: None) -> Value:
    return op.node(match.root.op_type, match["x"], _attributes=match.root.attributes)


SKIP_BEFORE_SHAPE = Rule("skip_before_shape", _pattern, _replace)
