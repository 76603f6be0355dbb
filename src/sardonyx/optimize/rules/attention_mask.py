"""The mask of attention that is written out, as the operator takes it: one tensor that is added, or one of truth values.

    scores + a + b                           a + b
    Where(c, fill, scores) + a               Where(c, fill, 0) + a
    Max(scores + a, least)                   Max(a, least)
    Where(c, scores, -inf)                   c

A query that sees no key, whose row holds nothing but -inf, gives NaN written out and zeros by Attention. Where such rows may be and
no guard turns them to zeros, they become NaN in the mask.
"""

from __future__ import annotations

import math

import numpy as np

from sardonyx.ir import Dim, Shape, Value
from sardonyx.optimize.bounds import bounds_of
from sardonyx.optimize.rule import Builder
from sardonyx.optimize.rules.attention_scores import Added, Filling, Floor, Part, Scores

__all__ = ["mask_inputs", "mask_reason", "may_hide_all"]

_LEAST_FILL = 1e37
"""From here on a score of any size but for this disappears when it is added."""

_LOWEST = float(np.finfo(np.float32).min)

_AXES_ARE_INPUTS = 18
"""Of ReduceMax."""


def mask_reason(scores: Scores, shape: Shape, is_split: bool) -> str | None:
    """Why the mask of scores of this shape, (B, H, S, T) or (B x H, S, T), is none for Attention; None where it is."""
    for part in scores.parts:
        reason = _added_reason(part, shape, is_split)
        if reason is not None:
            return reason
    return None


def _added_reason(part: Part, shape: Shape, is_split: bool) -> str | None:
    if not isinstance(part, Floor):
        value = part.value if isinstance(part, Added) else part.condition
        if not _fits(value.shape, part.rank, shape, is_split):
            return f"the mask is {value.shape}; expected one that goes along all keys, and that does not make the scores larger"
    number = -math.inf if isinstance(part, Added) else part.fill if isinstance(part, Filling) else part.number
    if number > -_LEAST_FILL:
        return f"scores are replaced by {number}; expected -inf, or a number of at least -{_LEAST_FILL}"
    return None


def _fits(found: Shape | None, rank: int, scores: Shape, is_split: bool) -> bool:
    """Whether a mask that meets scores of `rank` dimensions is one for scores of this shape."""
    if not found or len(found) > rank or (rank == 4 and not is_split):
        return False
    wanted: tuple[Dim, ...] = (1, *scores[2:]) if rank == 3 and is_split else scores
    if found[-1] != wanted[-1] and isinstance(found[-1], int) and (found[-1] == 1 or isinstance(wanted[-1], int)):
        return False
    pairs = zip(found[-2::-1], wanted[-2::-1], strict=False)
    return all(dim in (1, want) for dim, want in pairs)


def may_hide_all(scores: Scores, overridable: frozenset[Value]) -> bool:
    """Whether the mask may hold -inf."""
    least = 0.0
    for part in scores.parts:
        if isinstance(part, Added):
            bounds = (bound * part.factor for bound in bounds_of(part.value, overridable))
            least += min(bounds)
        elif isinstance(part, Filling):
            least = min(least, part.fill)
        else:
            least = max(least, part.number)
        least = least if least >= _LOWEST else -math.inf
    return least == -math.inf


def mask_inputs(op: Builder, scores: Scores, *, hides_all: bool) -> list[Value]:
    """The mask as Attention takes it, nothing where there is none.

    Args:
        op: builds it.
        scores: what it masks.
        hides_all: whether rows of nothing but -inf may be, and must become NaN.
    """
    first = scores.parts[0] if len(scores.parts) == 1 else None
    if isinstance(first, Filling) and first.fill == -math.inf and not hides_all:
        return [first.condition if first.inverted else op.Not(first.condition)]
    mask: Value | None = None
    for part in scores.parts:
        mask = _after(op, part, mask)
    if mask is None:
        return []
    if not hides_all:
        return [mask]
    is_hidden = op.Equal(op.ReduceMax(mask, [-1], _version=_AXES_ARE_INPUTS), np.float32(-math.inf))
    return [op.Where(is_hidden, np.float32(math.nan), mask)]


def _after(op: Builder, part: Part, mask: Value | None) -> Value | None:
    """What is added to the scores after a step, given what was before."""
    if isinstance(part, Added):
        value = part.value if part.factor == 1 else op.Mul(part.value, np.float32(part.factor))
        return value if mask is None else op.Add(mask, value)
    if isinstance(part, Filling):
        fill, kept = np.float32(part.fill), np.float32(0) if mask is None else mask
        return op.Where(part.condition, kept, fill) if part.inverted else op.Where(part.condition, fill, kept)
    return None if mask is None else op.Max(mask, np.float32(part.number))
