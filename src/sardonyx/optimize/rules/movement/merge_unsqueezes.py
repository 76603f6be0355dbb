"""Merge two unsqueezes, or two squeezes, into one.

    Unsqueeze(Unsqueeze(x, a), b)            ->      Unsqueeze(x, c)            with c the places of all new axes in the result
    Squeeze(Squeeze(x, a), b)                ->      Squeeze(x, c)              with c the places in x of all axes that go

Left alone:
    axes that are missing, repeated, or no constants
    negative axes while the rank is unknown
The inner node stays where it has other users.
"""

from __future__ import annotations

import numpy as np

from sardonyx.ir import Node, Value
from sardonyx.ops.views.inputs import COMPUTED
from sardonyx.ops.views.reshape import Squeeze, Unsqueeze
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["MERGE_UNSQUEEZES", "axes_of"]


def _pattern(op: PatternBuilder, x: Term) -> Term:
    return op.any_of(
        op.Unsqueeze(op.Unsqueeze(x, op.rest("inner_axes"), _as="inner", _shared=True), op.rest("outer_axes")),
        op.Squeeze(op.Squeeze(x, op.rest("inner_axes"), _as="inner", _shared=True), op.rest("outer_axes")),
    )


def _check(match: Match) -> str | list[int]:
    inner, outer = axes_of(match, match.node("inner")), axes_of(match, match.root)
    if inner is None or outer is None:
        return "the axes are missing, repeated or no constants, or negative while the rank is unknown"
    first, second = (outer, inner) if match.root.op_type == "Unsqueeze" else (inner, outer)
    return sorted([*first, *_places(second, first)])


def axes_of(match: Match, node: Node) -> list[int] | None:
    """Return the axes of an Unsqueeze or Squeeze counted from the front of the larger shape; None where they cannot be known."""
    axes = (Squeeze if node.op_type == "Squeeze" else Unsqueeze).of(node, match.inputs(node)).axes
    if axes is None or axes is COMPUTED:
        return None
    value = node.inputs[0] if node.op_type == "Squeeze" else node.output
    rank = None if value is None or value.shape is None else len(value.shape)
    counted = [axis + rank if axis < 0 and rank is not None else axis for axis in axes]
    return counted if all(axis >= 0 for axis in counted) and len(set(counted)) == len(counted) else None


def _places(axes: list[int], taken: list[int]) -> list[int]:
    """Return where `axes` lie once the axes `taken` are among them: the i-th place that is not taken, for each i."""
    free = [place for place in range(max(axes, default=0) + len(taken) + 1) if place not in taken]
    return [free[axis] for axis in axes]


def _replace(op: Builder, match: Match, axes: list[int]) -> Value:
    node = match.root
    if "axes" in node.attributes:
        return op.node(node.op_type, match["x"], axes=axes)
    return op.node(node.op_type, match["x"], np.array(axes, np.int64))


MERGE_UNSQUEEZES = Rule("merge_unsqueezes", _pattern, _replace, _check, aliases=("ReshapeFusion",))
