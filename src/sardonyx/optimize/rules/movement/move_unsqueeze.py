"""Move an Unsqueeze behind the transpose that follows it.

    Transpose(Unsqueeze(x, a))        ->      Unsqueeze(x, b)         with b where the transpose puts the new dimensions

Left alone:
    a transpose that changes the order of x's own dimensions
    axes that are missing, repeated, or no constants, or negative while the rank is unknown
The Unsqueeze stays where it has other users.
"""

from __future__ import annotations

import numpy as np

from sardonyx.ir import Value
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.rules.movement.merge_unsqueezes import axes_of
from sardonyx.optimize.terms import Term
from sardonyx.optimize.transposes.permutation import permutation_of

__all__ = ["MOVE_UNSQUEEZE"]


def _pattern(op: PatternBuilder, x: Term) -> Term:
    return op.Transpose(op.Unsqueeze(x, op.rest("axes"), _as="unsqueeze", _shared=True))


def _check(match: Match) -> str | list[int]:
    axes, permutation = axes_of(match, match.node("unsqueeze")), permutation_of(match.root)
    if axes is None or permutation is None:
        return "the axes or the permutation are not known"
    kept = [axis for axis in permutation if axis not in axes]
    if kept != sorted(kept):
        return "the transpose changes the order of other dimensions"
    return [place for place, axis in enumerate(permutation) if axis in axes]


def _replace(op: Builder, match: Match, axes: list[int]) -> Value:
    node = match.node("unsqueeze")
    if "axes" in node.attributes:
        return op.Unsqueeze(match["x"], axes=axes, _version=node.version)
    return op.Unsqueeze(match["x"], np.array(axes, np.int64), _version=node.version)


MOVE_UNSQUEEZE = Rule("move_unsqueeze", _pattern, _replace, _check)
