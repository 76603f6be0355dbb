"""Exchange the branches of a Where instead of negating its condition.

    Where(Not(c), x, y)            ->      Where(c, y, x)

Left alone: nothing; Not stays where it has other users.
"""

from __future__ import annotations

from sardonyx.ir import Value
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["SWAP_WHERE_BRANCHES"]


def _pattern(op: PatternBuilder, c: Term, x: Term, y: Term) -> Term:
    return op.Where(op.Not(c, _shared=True), x, y)


def _replace(op: Builder, match: Match, learned: None) -> Value:
    return op.Where(match["c"], match["y"], match["x"])


SWAP_WHERE_BRANCHES = Rule("swap_where_branches", _pattern, _replace, aliases=("NotWhereFusion",))
