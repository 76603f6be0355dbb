"""Put indices of other types in integers of 64 bits before OneHot.

    OneHot(i, depth, values)      ->      OneHot(Cast(i) {int64}, depth, values)

Floats are truncated, as the operator takes them.

Left alone:
    indices of int32 and int64, and 64-bit numbers without a sign, which int64 does not hold
"""

from __future__ import annotations

from sardonyx.dtypes import DataType
from sardonyx.ir import Value
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import standard
from sardonyx.optimize.terms import Term

__all__ = ["CAST_ONE_HOT_INDICES"]

_LEFT = (None, DataType.INT32, DataType.INT64, DataType.UINT64)


def _pattern(op: PatternBuilder, indices: Term, depth: Term, values: Term) -> Term:
    return op.OneHot(indices, depth, values)


def _check(match: Match) -> str | None:
    dtype = match["indices"].dtype
    return f"indices of type {dtype}" if dtype in _LEFT else None


def _replace(op: Builder, match: Match, learned: None) -> Value:
    whole = op.Cast(match["indices"], to=int(DataType.INT64))
    return op.OneHot(whole, match["depth"], match["values"], _attributes=match.root.attributes)


CAST_ONE_HOT_INDICES = Rule(
    "cast_one_hot_indices", _pattern, _replace, _check, takes_apart=standard("OneHot"), takes_legal_apart=True
)
