"""Write RotaryEmbedding that looks up angles by positions as one that is given the angles.

    com.microsoft.RotaryEmbedding(x, ids, cos, sin)  ->      RotaryEmbedding(x, Gather(cos, ids), Gather(sin, ids))
    RotaryEmbedding(x, cos, sin, ids)                ->      the same

ids are (B, S), or of com.microsoft (1,) for positions from there on. A position below zero stays an error: Gather, which counts
such from the end, gets the largest integer instead.

Left alone:
    a scale, batches that are packed
    ids of other shapes, x of other ranks than three and four, heads of unknown number
    types other than float and float16, of ai.onnx also bfloat16
"""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.ir import Value
from sardonyx.ops.views.attention import RotaryEmbedding
from sardonyx.optimize.helpers.activation import fused_type_reason
from sardonyx.optimize.helpers.rotary_positions import rotated_at
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import microsoft, standard
from sardonyx.optimize.terms import Term

__all__ = ["EXPAND_ROTARY_EMBEDDING", "EXPAND_ROTARY_POSITIONS"]

_AXES_ARE_INPUTS = 13


def _pattern(op: PatternBuilder, x: Term, ids: Term, cos: Term, sin: Term) -> Term:
    return op.RotaryEmbedding(x, ids, cos, sin, _domain="com.microsoft", scale=1.0, is_packed_batching=0)


def _check(match: Match) -> str | int:
    x, ids, angles = match["x"], match["ids"].shape, match["cos"].shape
    if x.shape is None or len(x.shape) not in (3, 4):
        return f"x is {x.shape}, expected three or four dimensions"
    if ids not in (x.shape[0:1] + _length(x), (1,)) or angles is None or len(angles) != 2 or not isinstance(angles[1], int):
        return f"positions are {ids}, angles {angles}; expected a position for each of x, or one, and a table"
    reason = fused_type_reason(x)
    if reason is not None:
        return reason
    heads, width = RotaryEmbedding.of(match.root).heads, x.shape[-1]
    if len(x.shape) == 4 or heads:
        return heads
    return width // (2 * angles[1]) if isinstance(width, int) else "how many heads there are is not known"


def _length(x: Value) -> tuple[object, ...]:
    shape = x.shape or ()
    return (shape[-2],)


def _replace(op: Builder, match: Match, heads: int) -> Value:
    x, ids = match["x"], match["ids"]
    places = ids if len(ids.shape or ()) == 2 else _places_from(op, x, ids)
    return rotated_at(op, match, places, heads)


def _places_from(op: Builder, x: Value, first: Value) -> Value:
    """Return `first`, `first` + 1, … as (B, S)."""
    rank = len(x.shape or ())
    length = op.Gather(op.Shape(x), np.array(rank - 2, np.int64))
    steps = op.Add(op.Range(np.array(0, np.int64), length, np.array(1, np.int64)), first)
    batch = op.Concat(op.Gather(op.Shape(x), np.array([0], np.int64)), np.array([1], np.int64), axis=0)
    return op.Expand(op.Unsqueeze(steps, [0], _version=_AXES_ARE_INPUTS), batch)


EXPAND_ROTARY_EMBEDDING = Rule(
    "expand_rotary_embedding", _pattern, _replace, _check, takes_apart=microsoft("GroupQueryAttention", "RotaryEmbedding")
)


def _standard_pattern(op: PatternBuilder, x: Term, cos: Term, sin: Term, ids: Term) -> Term:
    return op.RotaryEmbedding(x, cos, sin, ids)


def _standard_check(match: Match) -> str | int:
    x, ids, angles = match["x"], match["ids"].shape, match["cos"].shape
    if x.shape is None or ids != x.shape[0:1] + _length(x) or angles is None or len(angles) != 2:
        return f"positions are {ids}, angles {angles}, x {x.shape}; expected a position for each of x, and a table"
    if x.dtype is DataType.BFLOAT16:
        return RotaryEmbedding.of(match.root).heads
    return fused_type_reason(x) or RotaryEmbedding.of(match.root).heads


def _standard_replace(op: Builder, match: Match, heads: int) -> Value:
    return rotated_at(op, match, match["ids"], heads)


EXPAND_ROTARY_POSITIONS = Rule(
    "expand_rotary_positions",
    _standard_pattern,
    _standard_replace,
    _standard_check,
    takes_apart=standard("RotaryEmbedding"),
    summary="Write RotaryEmbedding of ai.onnx that looks up angles by positions as Gather and one that is given the angles.",
)
