"""Find a Swish (SiLU) that is written out.

    x * Sigmoid(x)      ->      Swish(x)

so that x has one reader, and what makes it can compute the activation where it stores.

Left alone:
    a sigmoid that has other users, as it would be computed twice
    a result of another shape or type than x
"""

from __future__ import annotations

from sardonyx.ir import Value
from sardonyx.optimize.contract import Level
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["FUSE_SWISH"]


def _pattern(op: PatternBuilder, x: Term) -> Term:
    return op.Mul(x, op.Sigmoid(x))


def _check(match: Match) -> str | None:
    value, result = match["x"], match.outputs[0]
    if value.shape is None or value.shape != result.shape or value.dtype is not result.dtype:
        return f"the result is {result.dtype} {result.shape}, the value {value.dtype} {value.shape}"
    return None


def _replace(op: Builder, match: Match, learned: None) -> Value:
    return op.Swish(match["x"])


FUSE_SWISH = Rule("fuse_swish", _pattern, _replace, _check, Level.EXTENDED)
