"""Replace a Gather of a range of indices by Slice.

    Gather(x, Range(start, limit, 1)) {axis}            ->      Slice(x, [start], [limit], [axis])

Left alone:
    a start or limit that is no constant and may be negative: Gather counts it from behind, as Slice does, but in a range that
    begins before 0 and ends after it they differ
    steps other than 1, indices of other types than integers of 32 or 64 bits
    Gather of opset 9 and less, where Slice has attributes
Where the range ends behind the last element, Gather is wrong and Slice takes what there is.
"""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.ir import Value
from sardonyx.ops.views.gather import Gather
from sardonyx.ops.views.reduce import takes_axes_input
from sardonyx.ops.views.slice import Slice
from sardonyx.optimize.bounds import bounds_of
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["FUSE_GATHER_RANGE"]


def _pattern(op: PatternBuilder, x: Term, start: Term, limit: Term) -> Term:
    return op.Gather(x, op.Range(start, limit, 1))


def _check(match: Match) -> str | None:
    for name in ("start", "limit"):
        value = match[name]
        if value.dtype not in (DataType.INT32, DataType.INT64):
            return f"the range is of {value.dtype}"
        if bounds_of(value, match.place.overridable)[0] < 0:
            return f"the {name} may be negative"
    return None if Slice.takes_limits_input(match.root.version) else "before opset 10 a slice has constant limits"


def _replace(op: Builder, match: Match, learned: None) -> Value:
    start, limit = (_as_vector(op, match[name]) for name in ("start", "limit"))
    axis, dtype = Gather.of(match.root).axis, match["start"].dtype or DataType.INT64
    return op.Slice(match["x"], start, limit, np.array([axis], dtype.numpy))


def _as_vector(op: Builder, number: Value) -> Value:
    if takes_axes_input("Unsqueeze", op.version("", "Unsqueeze")):
        return op.Unsqueeze(number, [0])
    return op.Unsqueeze(number, axes=[0])


FUSE_GATHER_RANGE = Rule("fuse_gather_range", _pattern, _replace, _check, aliases=("GatherToSliceFusion",))
