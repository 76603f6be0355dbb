"""Replace RotaryEmbedding of a part of each head, split off and joined again, by one that rotates a part.

    r, p = Split(x); Concat(RotaryEmbedding(r, c, s), p)         ->      RotaryEmbedding(x, c, s) {rotary_embedding_dim}

Between may be a Reshape of (B, H, S, D) to (1, B x H, S, D) and back, or of (B, S, H, D) to (B, S, H x D) and back: then it is x
that is reshaped so.

Left alone:
    a part that is not the first of the last axis, or is rotated in part itself
    reshapes other than these
"""

from __future__ import annotations

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.ir import Dim, Shape, Value
from sardonyx.ir.shape import product
from sardonyx.ops.views.attention import RotaryEmbedding
from sardonyx.ops.views.slice import Concat
from sardonyx.optimize.contract import Level
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["FUSE_PARTIAL_ROTARY_EMBEDDING"]


@dataclasses.dataclass(frozen=True, slots=True)
class _Learned:
    """How x enters the operator and leaves it."""

    rotated: int
    """How many elements of each head are rotated."""
    before: tuple[Dim, ...] = ()
    """To what x is reshaped, as a Reshape says it; empty where it is not."""
    after: tuple[Dim, ...] = ()
    """And to what the result."""


def _pattern(op: PatternBuilder, x: Term, cos: Term, sin: Term) -> Term:
    part, kept = op.outputs(op.Split(x, op.rest("sizes"), _as="split"), 2)
    reshaped = op.RotaryEmbedding(op.Reshape(part, op.rest("before")), cos, sin, _as="rotary")
    plain = op.RotaryEmbedding(part, cos, sin, _as="rotary")
    return op.Concat(op.any_of(plain, op.Reshape(reshaped, op.rest("after"))), kept)


def _check(match: Match) -> str | _Learned:
    x, split, rotary = match["x"].shape, match.node("split"), match.node("rotary")
    part, rest = (split.outputs[index].shape for index in (0, 1))
    if x is None or part is None or rest is None or len(x) != 4 or not x[:3] == part[:3] == rest[:3]:
        return f"x is {x}, expected four dimensions, of which the last is split"
    rotated = part[3]
    if Concat.of(match.root).axis not in (-1, 3) or not isinstance(rotated, int) or len(split.outputs) != 2:
        return "the parts are not joined as they were split"
    if RotaryEmbedding.of(rotary).width or match.root.inputs[0] is None or match.root.inputs[0].shape != part:
        return "it turns a part only, or gives another shape"
    entered = rotary.inputs[0]
    if entered is split.outputs[0]:
        return _Learned(rotated)
    found = None if entered is None else _reshaped(entered.shape, x, part, RotaryEmbedding.of(rotary).heads)
    return found or "the reshape before does not see batches as heads, nor heads as packed"


def _reshaped(found: Shape | None, x: Shape, part: Shape, heads: int) -> _Learned | None:
    """Return how x is to be reshaped where its part is to the shape `found`."""
    B, first, second, rotated = part
    if not isinstance(rotated, int):
        return None
    if found == (1, product((B, first)), second, rotated):
        return _Learned(rotated, (1, -1, 0, 0), (-1, first, 0, 0))
    D = x[3]
    if found == (B, first, heads * rotated) and heads == second and isinstance(D, int):
        return _Learned(rotated, (0, 0, heads * D), (0, 0, heads, D))
    return None


def _replace(op: Builder, match: Match, learned: _Learned) -> Value:
    node, x = match.node("rotary"), match["x"]
    entering = op.Reshape(x, list(learned.before)) if learned.before else x
    made = op.RotaryEmbedding(
        entering,
        match["cos"],
        match["sin"],
        _attributes=node.attributes,
        _version=node.version,
        rotary_embedding_dim=learned.rotated,
    )
    return op.Reshape(made, list(learned.after)) if learned.after else made


FUSE_PARTIAL_ROTARY_EMBEDDING = Rule("fuse_partial_rotary_embedding", _pattern, _replace, _check, Level.EXTENDED)
