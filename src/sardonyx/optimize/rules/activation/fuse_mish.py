"""Replace x * Tanh(Softplus(x)), in its forms, by Mish.

    x * Tanh(Softplus(x))                 ->      Mish(x)
    x * Tanh(Log(1 + Exp(x)))             ->      Mish(x)

Left alone:
    values between that have other users, as they would be computed twice
    a result of another shape or type than x
"""

from __future__ import annotations

from sardonyx.ir import Value
from sardonyx.optimize.contract import Level
from sardonyx.optimize.helpers.result_type import changed_type_reason
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["FUSE_MISH"]


def _pattern(op: PatternBuilder, x: Term) -> Term:
    return op.Mul(x, op.Tanh(op.any_of(op.Softplus(x), op.Log(op.Add(op.Exp(x), 1)))))


def _check(match: Match) -> str | None:
    return changed_type_reason(match["x"], match.outputs[0])


def _replace(op: Builder, match: Match, learned: None) -> Value:
    return op.Mish(match["x"])


FUSE_MISH = Rule("fuse_mish", _pattern, _replace, _check, Level.EXTENDED)
