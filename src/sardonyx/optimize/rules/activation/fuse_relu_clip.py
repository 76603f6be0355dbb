"""Drop a Relu whose result is clipped at 0 or above anyway.

    Clip(Relu(x), low, high)            ->      Clip(x, max(low, 0), high)
    Relu(Clip(x, low, high))            ->      Clip(x, max(low, 0), high)

Left alone:
    bounds that are no constants
    Clip of opset < 11, whose bounds are attributes
    an upper bound below 0, which decides over the lower one
    Relu or Clip in between that has other users
"""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.ir import Value
from sardonyx.ops.views.activation import Clip
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["FUSE_RELU_CLIP"]


def _pattern(op: PatternBuilder, x: Term) -> Term:
    low, high = op.optional_constant("low"), op.optional_constant("high")
    return op.any_of(op.Clip(op.Relu(x), low, high), op.Relu(op.Clip(x, low, high)))


def _check(match: Match) -> str | Array:
    if any(node.op_type == "Clip" and Clip.of(node).limits is not None for node in match.nodes):
        return "the bounds are attributes"
    dtype, low, high = match["x"].dtype, match.constant("low", 1), match.constant("high", 1)
    if dtype is None:
        return "the type is unknown"
    if high is not None and not (high >= 0).all():
        return "the upper bound is below 0"
    return np.zeros((), dtype.numpy) if low is None or not (low > 0).all() else low.reshape(())


def _replace(op: Builder, match: Match, low: Array) -> Value:
    return op.Clip(match["x"], low, *([] if match.get("high") is None else [match["high"]]))


FUSE_RELU_CLIP = Rule("fuse_relu_clip", _pattern, _replace, _check, aliases=("FuseReluClip",))
