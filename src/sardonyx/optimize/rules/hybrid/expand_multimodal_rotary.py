"""Write MRotaryEmbedding of com.microsoft as RotaryEmbedding of ai.onnx, whose angles come from three streams of positions.

    MRotaryEmbedding(x, ids, cos, sin)      ->      RotaryEmbedding(x, angles of cos, angles of sin)

with ids (3, B, S) in time, height and width; each angle follows one of the streams: Gather reads the rows of all three, Where
selects. A position below zero stays an error.

Left alone:
    a scale, batches that are packed
    sections that are not as many angles as the tables have; x of other ranks than three and four, heads of unknown number
    types other than float and float16
"""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.ir import Value
from sardonyx.ops.views.attention import RotaryEmbedding
from sardonyx.optimize.helpers.activation import fused_type_reason
from sardonyx.optimize.helpers.rotary_positions import rotated_at
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import microsoft
from sardonyx.optimize.terms import Term

__all__ = ["EXPAND_MULTIMODAL_ROTARY"]

_STREAMS = 3


def _pattern(op: PatternBuilder, x: Term, ids: Term, cos: Term, sin: Term) -> Term:
    return op.MRotaryEmbedding(x, ids, cos, sin, _domain="com.microsoft", scale=1.0, is_packed_batching=0)


def _check(match: Match) -> str | int:
    """Return how many heads there are, 0 where x has an axis of them."""
    x, ids, angles = match["x"], match["ids"].shape, match["cos"].shape
    if x.shape is None or len(x.shape) not in (3, 4) or ids != (_STREAMS, x.shape[0], x.shape[-2]):
        return f"x is {x.shape} and positions {ids}, expected three positions for each of x"
    half = angles[1] if angles is not None and len(angles) == 2 else None
    sections = match.root.integers("mrope_section") or ()
    if not isinstance(half, int) or half < 1 or len(sections) != _STREAMS or min(sections) < 0 or sum(sections) != half:
        return f"the tables are {angles} and the sections {sections}, expected three that sum to the angles"
    if match.root.integer("mrope_layout", 0) not in (0, 1):
        return "the layout is neither 0 nor 1"
    view, width = RotaryEmbedding.of(match.root), x.shape[-1]
    reason = fused_type_reason(x)
    if reason is not None or len(x.shape) == 4 or view.width:
        return reason or view.heads
    return width // (2 * half) if isinstance(width, int) else "how many heads there are is not known"


def _replace(op: Builder, match: Match, heads: int) -> Value:
    sections = match.root.integers("mrope_section") or ()
    stream = _streams(tuple(sections), match.root.integer("mrope_layout", 0))

    def select(rows: Value) -> Value:
        """Return angles (B, S, half) of rows (3, B, S, half)."""
        chosen, *others = (op.Gather(rows, np.array(place, np.int64), axis=0) for place in range(_STREAMS))
        for place, other in enumerate(others, 1):
            chosen = op.Where(stream == place, other, chosen)
        return chosen

    return rotated_at(op, match, match["ids"], heads, select)


def _streams(sections: tuple[int, ...], layout: int) -> Array:
    """Return for each angle the stream that it follows: one behind the other, or (layout 1) alternating by threes."""
    if layout == 0:
        return np.repeat(np.arange(_STREAMS), sections)
    stream = np.zeros(sum(sections), np.int64)
    for offset in range(1, _STREAMS):
        stream[offset : _STREAMS * sections[offset] : _STREAMS] = offset
    return stream


EXPAND_MULTIMODAL_ROTARY = Rule("expand_multimodal_rotary", _pattern, _replace, _check, takes_apart=microsoft("MRotaryEmbedding"))
