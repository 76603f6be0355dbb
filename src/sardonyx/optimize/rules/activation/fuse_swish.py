"""Replace x * Sigmoid(alpha * x), in its forms, by Swish (SiLU, quick Gelu).

    x * Sigmoid(x)                                    ->      Swish(x)
    x * Sigmoid(alpha * x)                            ->      Swish(x) {alpha}
    x / (1 + Exp(-x))                                 ->      Swish(x)

so that x has one reader, and what makes it can compute the activation where it stores.

Left alone:
    an alpha that is not one constant number
    a sigmoid that has other users, as it would be computed twice
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

__all__ = ["FUSE_SWISH"]


def _pattern(op: PatternBuilder, x: Term) -> Term:
    return op.any_of(
        op.Mul(x, op.Sigmoid(x)),
        op.Mul(x, op.Sigmoid(op.Mul(x, op.constant("alpha")))),
        op.Div(x, op.Add(op.Exp(op.Neg(x)), 1)),
    )


def _check(match: Match) -> str | float:
    reason = changed_type_reason(match["x"], match.outputs[0])
    if reason is not None:
        return reason
    if match.get("alpha") is None:
        return 1.0
    alpha = match.constant("alpha", 1)
    return "alpha is not one number" if alpha is None or alpha.size != 1 else float(alpha.reshape(()))


def _replace(op: Builder, match: Match, alpha: float) -> Value:
    return op.Swish(match["x"], alpha=None if alpha == 1 else alpha)


FUSE_SWISH = Rule("fuse_swish", _pattern, _replace, _check, Level.EXTENDED, aliases=("QuickGeluFusion",))
