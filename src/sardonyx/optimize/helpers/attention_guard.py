"""The guard behind attention of com.microsoft: Where(IsNaN(y), 0, y).

A query that sees no key is NaN by com.microsoft, as a softmax written out makes it, and zeros by Attention of ai.onnx.
"""

from __future__ import annotations

import math

from sardonyx.ir import Node
from sardonyx.optimize.bounds import bounds_of
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.terms import Term

__all__ = ["guard_reason", "guarded", "has_guard"]


def guarded(op: PatternBuilder, attention: Term) -> Term:
    """Return Attention, captured by that name, with or without a guard."""
    return op.any_of(op.Where(op.IsNaN(attention), 0, attention), attention)


def has_guard(match: Match) -> bool:
    """Return whether the match has one."""
    return match.root is not match.node("attention")


def guard_reason(match: Match) -> str | None:
    """Return why attention is not replaced with, or without, its guard; None where it is.

    Where the mask, the value "added", hides no query all keys, the guard is against other NaN, and stays.
    """
    added = match.get("added")
    may_hide_all = added is not None and bounds_of(added, match.place.overridable)[0] == -math.inf
    if has_guard(match):
        return None if may_hide_all else "its guard is not for queries that see no key"
    users = [user for user, _ in match.node("attention").outputs[0].uses]
    is_guarded = any(isinstance(user, Node) and user.op_type == "IsNaN" and not user.domain for user in users)
    return "it has a guard, with which it is replaced" if is_guarded and may_hide_all else None
