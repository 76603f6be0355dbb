"""Drop an unsqueeze that is squeezed away again, or the other way round.

    Squeeze(Unsqueeze(x, axes), axes)      ->      x
    Unsqueeze(Squeeze(x, axes), axes)      ->      x

Left alone:
    axes that differ, are missing, or are no constants
    negative axes on one side only, while the rank is unknown
The inner node stays where it has other users.
"""

from __future__ import annotations

from sardonyx.ir import Node, Value
from sardonyx.ops.views.inputs import COMPUTED
from sardonyx.ops.views.reshape import Squeeze, Unsqueeze
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["MERGE_SQUEEZES"]


def _pattern(op: PatternBuilder, x: Term) -> Term:
    return op.any_of(
        op.Squeeze(op.Unsqueeze(x, op.rest("inner_axes"), _as="inner", _shared=True), op.rest("outer_axes")),
        op.Unsqueeze(op.Squeeze(x, op.rest("inner_axes"), _as="inner", _shared=True), op.rest("outer_axes")),
    )


def _check(match: Match) -> str | None:
    inner, outer = _axes(match, match.node("inner")), _axes(match, match.root)
    if inner is None or outer is None:
        return "the axes are missing or no constants"
    return None if inner == outer else f"the axes {inner} and {outer} differ"


def _axes(match: Match, node: Node) -> list[int] | None:
    """Return the axes in order, counted from the front where the rank is known; of the larger of the two shapes."""
    axes = (Squeeze if node.op_type == "Squeeze" else Unsqueeze).of(node, match.inputs(node)).axes
    if axes is None or axes is COMPUTED:
        return None
    value = node.inputs[0] if node.op_type == "Squeeze" else node.output
    rank = None if value is None or value.shape is None else len(value.shape)
    return sorted(axis + rank if axis < 0 and rank is not None else axis for axis in axes)


def _replace(op: Builder, match: Match, learned: None) -> Value:
    return match["x"]


MERGE_SQUEEZES = Rule("merge_squeezes", _pattern, _replace, _check, aliases=("ReshapeFusion",))
