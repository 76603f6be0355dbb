"""Slice once where a slice is sliced along other axes.

    Slice(Slice(x, s, e, a, k), t, f, b, l)            ->      Slice(x, s ++ t, e ++ f, a ++ b, k ++ l)

Left alone:
    starts, ends, axes or steps that are no constants, or in attributes (before opset 10)
    axes that are missing, or along which both slice
    negative axes while the rank is unknown
The inner slice stays where it has other users.
"""

from __future__ import annotations

import numpy as np

from sardonyx.ir import Node, Value
from sardonyx.optimize.edit import small_constant
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["MERGE_SLICES"]

_Places = tuple[list[int], list[int], list[int], list[int]]
"""Starts, ends, axes, steps."""


def _pattern(op: PatternBuilder, x: Term) -> Term:
    return op.Slice(op.Slice(x, op.rest("inner"), _as="slice", _shared=True), op.rest("outer"))


def _check(match: Match) -> str | _Places:
    inner, outer = _places(match, match.node("slice")), _places(match, match.root)
    if inner is None or outer is None:
        return "the places are missing or no constants"
    if set(inner[2]) & set(outer[2]):
        return f"both slice along the axes {sorted(set(inner[2]) & set(outer[2]))}"
    starts, ends, axes, steps = ([*one, *other] for one, other in zip(inner, outer, strict=True))
    return starts, ends, axes, steps


def _places(match: Match, node: Node) -> _Places | None:
    value = node.inputs[0]
    rank = None if value is None or value.shape is None else len(value.shape)
    arrays = [small_constant(node.input(index), match.place.overridable) for index in (1, 2, 3, 4)]
    found = [None if array is None else [int(item) for item in array.reshape(-1)] for array in arrays]
    starts, ends, axes, steps = found
    if starts is None or ends is None or axes is None or (steps is None and node.input(4) is not None):
        return None
    counted = [axis + rank if axis < 0 and rank is not None else axis for axis in axes]
    if min(counted, default=0) < 0:
        return None
    return starts, ends, counted, steps or [1] * len(starts)


def _replace(op: Builder, match: Match, places: _Places) -> Value:
    return op.Slice(match["x"], *(np.array(items, np.int64) for items in places))


MERGE_SLICES = Rule("merge_slices", _pattern, _replace, _check)
