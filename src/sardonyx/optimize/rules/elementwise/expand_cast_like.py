"""Write a conversion to the type of another value as a Cast.

    CastLike(x, target) {saturate, round_mode}      ->      Cast(x) {to, saturate, round_mode}

so that it is computed where x is stored, and the other value is not waited for.

Left alone:
    a target whose type is not known
"""

from __future__ import annotations

from sardonyx.dtypes import DataType
from sardonyx.ir import Value
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import standard
from sardonyx.optimize.terms import Term

__all__ = ["EXPAND_CAST_LIKE"]


def _pattern(op: PatternBuilder, x: Term, target: Term) -> Term:
    return op.CastLike(x, target)


def _check(match: Match) -> str | DataType:
    dtype = match["target"].dtype
    return "the type of the target is not known" if dtype is None or dtype is DataType.UNDEFINED else dtype


def _replace(op: Builder, match: Match, dtype: DataType) -> Value:
    return op.Cast(match["x"], to=int(dtype), _attributes=match.root.attributes)


EXPAND_CAST_LIKE = Rule("expand_cast_like", _pattern, _replace, _check, takes_apart=standard("CastLike"))
