"""Merge two transposes, or drop both where they cancel.

    Transpose(Transpose(x, perm=p), perm=q)      ->      Transpose(x, perm=[p[i] for i in q]), or x where that is 0, 1, 2 …

Left alone:
    perm missing while the rank is unknown: the default, the axes in reverse, depends on the rank
    perms of different length: the model is invalid
The inner transpose stays where it has other users.
"""

from __future__ import annotations

from sardonyx.ir import Value
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term
from sardonyx.optimize.transposes.permutation import permutation_of

__all__ = ["MERGE_TRANSPOSES"]


def _pattern(op: PatternBuilder, x: Term) -> Term:
    return op.Transpose(op.Transpose(x, _as="inner", _shared=True))


def _check(match: Match) -> str | list[int]:
    first, second = permutation_of(match.node("inner")), permutation_of(match.root)
    if first is None or second is None:
        return "the rank is unknown and perm is missing"
    if len(first) != len(second):
        return f"the permutations {first} and {second} do not fit"
    return [first[axis] for axis in second]


def _replace(op: Builder, match: Match, perm: list[int]) -> Value:
    return match["x"] if perm == list(range(len(perm))) else op.Transpose(match["x"], perm=perm)


MERGE_TRANSPOSES = Rule("merge_transposes", _pattern, _replace, _check, aliases=("TransposeOptimizer",))
