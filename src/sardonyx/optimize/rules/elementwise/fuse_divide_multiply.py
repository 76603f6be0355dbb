"""Divide instead of multiplying by a reciprocal.

    Mul(Div(1, a), b), Mul(Reciprocal(a), b)            ->      Div(b, a)            for a of the shape of the result

Left alone:
    a of another shape than the result: one reciprocal for many products takes less time than many divisions
    integers, whose reciprocal is 0 or 1
    a reciprocal that has other users
"""

from __future__ import annotations

from sardonyx.ir import Value
from sardonyx.ops.views.binary import Broadcast
from sardonyx.optimize.helpers.channels import FLOATS
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["FUSE_DIVIDE_MULTIPLY"]


def _pattern(op: PatternBuilder, a: Term, b: Term) -> Term:
    return op.Mul(op.any_of(op.Div(1, a), op.Reciprocal(a)), b)


def _check(match: Match) -> str | None:
    divisor, result = match["a"], match.outputs[0]
    if result.dtype not in FLOATS or not Broadcast.of(match.root).is_numpy:
        return f"opset {match.root.version} multiplies {result.dtype}"
    if divisor.shape is None or divisor.shape != result.shape:
        return f"the divisor has shape {divisor.shape}, the result {result.shape}"
    return None


def _replace(op: Builder, match: Match, learned: None) -> Value:
    return op.Div(match["b"], match["a"])


FUSE_DIVIDE_MULTIPLY = Rule("fuse_divide_multiply", _pattern, _replace, _check, aliases=("DivMulFusion",))
