"""Skip a reshape whose result is only reshaped again.

    Reshape(f(x), shape)      ->      Reshape(x, shape), or x where the result has its shape      for f: Reshape, Flatten, Squeeze,
                                                                                                  Unsqueeze
Left alone:
    a shape with a 0 that copies a dimension of what is skipped (allowzero = 0), or that may have one, as it is no constant
    Reshape of opset < 5, whose shape is an attribute
The inner node stays where it has other users.
"""

from __future__ import annotations

from sardonyx.ir import Value
from sardonyx.ops.views.reshape import Reshape
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["MERGE_RESHAPES"]


def _pattern(op: PatternBuilder, x: Term, shape: Term) -> Term:
    inner = op.any_of(
        op.Reshape(x, op.rest("operands"), _shared=True),
        op.Flatten(x, _shared=True),
        op.Squeeze(x, op.rest("operands"), _shared=True),
        op.Unsqueeze(x, op.rest("operands"), _shared=True),
    )
    return op.Reshape(inner, shape)


def _check(match: Match) -> str | None:
    shape, before, after = match.constant("shape"), match["x"].shape, match.outputs[0].shape
    if (before is not None and before == after) or (shape is None and Reshape.of(match.root).keeps_zero):
        return None
    if shape is None:
        return "the shape is no constant"
    if not Reshape.of(match.root).keeps_zero and (shape == 0).any():
        return "the shape copies a dimension of the value that would be skipped"
    return None


def _replace(op: Builder, match: Match, learned: None) -> Value:
    value, shape = match["x"], match.outputs[0].shape
    if shape is not None and value.shape == shape:
        return value
    return op.Reshape(value, match["shape"], _attributes=match.root.attributes)


MERGE_RESHAPES = Rule("merge_reshapes", _pattern, _replace, _check, aliases=("ReshapeFusion",))
