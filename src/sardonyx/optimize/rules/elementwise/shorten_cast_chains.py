"""Skip a cast before another cast, even where it rounds, clips or wraps.

    Cast(Cast(x, to=B), to=C)      ->      Cast(x, to=C)

Results change where B does not hold every value: the session option `optimization.enable_cast_chain_elimination` asks for it.
`merge_casts` does what changes nothing, unasked.

Left alone: casts from or to strings and bools, which say what a value is and not how it is stored; an unknown type of x.
"""

from __future__ import annotations

from sardonyx.dtypes import DataType, is_float, is_integer
from sardonyx.ir import Value
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import OptIn
from sardonyx.optimize.terms import Term

__all__ = ["SHORTEN_CAST_CHAINS"]


def _pattern(op: PatternBuilder, x: Term) -> Term:
    return op.Cast(op.Cast(x, to=op.attribute("middle"), _shared=True), to=op.attribute("to"))


def _check(match: Match) -> str | None:
    types = [match["x"].dtype, DataType(match.attribute("middle")), DataType(match.attribute("to"))]
    other = [dtype for dtype in types if dtype is None or not (is_float(dtype) or is_integer(dtype))]
    return f"a cast is from or to {other[0]}, which has rules of its own" if other else None


def _replace(op: Builder, match: Match, learned: None) -> Value:
    return op.Cast(match["x"], _attributes=match.root.attributes)


SHORTEN_CAST_CHAINS = Rule(
    "shorten_cast_chains",
    _pattern,
    _replace,
    _check,
    tolerance=1.0,
    integer_steps=1 << 31,
    opt_in=OptIn("optimization.enable_cast_chain_elimination", "1", "casts that round, clip or wrap are dropped"),
    aliases=("CastChainElimination",),
)
