"""Find a Gelu that is written out, exact or by tanh.

    x * 0.5 * (1 + Erf(x / sqrt 2))                                            ->      Gelu(x)
    x * 0.5 * (1 + Tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3)))               ->      Gelu(x) {approximate = "tanh"}

with the three factors multiplied in any order, x / sqrt 2 also as x * 0.7071, and x ** 3 also as x * x * x; the argument of Tanh
also as x * sqrt(2 / pi) * (1 + 0.044715 * x * x).

Left alone:
    constants that differ from these by more than one part in 10,000
    values between that have other users, as their results would be computed twice
    a result of another shape than x: one of the constants makes the rank larger
"""

from __future__ import annotations

import math

from sardonyx.ir import Value
from sardonyx.optimize.contract import Level
from sardonyx.optimize.helpers.result_type import changed_type_reason
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["FUSE_GELU", "FUSE_GELU_TANH"]

_TOLERANCE = 1e-4


def _halved_product(op: PatternBuilder, x: Term, gate: Term) -> Term:
    """Return half of x times gate, multiplied in any order."""
    half = op.number(0.5, _TOLERANCE)
    return op.any_of(op.Mul(op.Mul(x, gate), half), op.Mul(op.Mul(x, half), gate), op.Mul(x, op.Mul(gate, half)))


def _pattern(op: PatternBuilder, x: Term) -> Term:
    scaled = op.any_of(op.Div(x, op.number(math.sqrt(2), _TOLERANCE)), op.Mul(x, op.number(math.sqrt(0.5), _TOLERANCE)))
    return _halved_product(op, x, op.Add(op.Erf(scaled), 1))


def _tanh_pattern(op: PatternBuilder, x: Term) -> Term:
    cube = op.any_of(op.Pow(x, 3), op.Mul(x, op.Mul(x, x)))
    inner = op.any_of(
        op.Add(x, op.Mul(cube, op.number(0.044715, _TOLERANCE))),
        op.Add(x, op.Mul(op.Mul(op.Mul(x, op.number(0.044715, _TOLERANCE)), x), x)),
    )
    factor = op.number(math.sqrt(2 / math.pi), _TOLERANCE)
    square = op.any_of(op.Mul(op.Mul(x, op.number(0.044715, _TOLERANCE)), x), op.Mul(op.Mul(x, x), op.number(0.044715, _TOLERANCE)))
    argument = op.any_of(op.Mul(inner, factor), op.Mul(op.Mul(x, factor), op.Add(square, 1)))
    return _halved_product(op, x, op.Add(op.Tanh(argument), 1))


def _check(match: Match) -> str | None:
    return changed_type_reason(match["x"], match.outputs[0])


def _replace(op: Builder, match: Match, learned: None) -> Value:
    return op.Gelu(match["x"])


def _replace_tanh(op: Builder, match: Match, learned: None) -> Value:
    return op.Gelu(match["x"], approximate="tanh")


FUSE_GELU = Rule(
    "fuse_gelu",
    _pattern,
    _replace,
    _check,
    Level.EXTENDED,
    aliases=(
        "GeluFusion",
        "GeluFusionL1",
        "GeluFusionL2",
    ),
    summary="Replace x * (1 + Erf(x / sqrt 2)) / 2, in its forms, by Gelu.",
)
FUSE_GELU_TANH = Rule(
    "fuse_gelu_tanh",
    _tanh_pattern,
    _replace_tanh,
    _check,
    Level.EXTENDED,
    aliases=("FastGeluFusion",),
    summary="Replace the approximation of Gelu by Tanh, in its forms, by one Gelu that approximates.",
)
