"""Looking up the angles of rotary embeddings by positions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sardonyx.ir import Value
from sardonyx.optimize.match import Match
from sardonyx.optimize.rule import Builder

__all__ = ["rotated_at"]

_VERSION = 23
"""Of RotaryEmbedding, which ai.onnx has had since then: read under it whatever the model's opset."""

_OUT_OF_RANGE = np.array(np.iinfo(np.int64).max)


def rotated_at(op: Builder, match: Match, places: Value, heads: int, select: Callable[[Value], Value] | None = None) -> Value:
    """Return x of a match rotated by the rows of its tables cos and sin at `places`, (B, S), or what `select` makes of the rows.

    A place below zero stays an error: Gather, which counts such from the end, gets the largest integer instead. The attributes of
    the root are kept; `heads` counts where x has no axis of them.
    """
    x, below = match["x"], op.Less(places, np.array(0, np.int64))
    valid = op.Where(below, _OUT_OF_RANGE, places)
    rows = [op.Gather(match[name], valid, axis=0) for name in ("cos", "sin")]
    cos, sin = rows if select is None else map(select, rows)
    kept = {name: value for name, value in match.root.attributes.items() if name in ("interleaved", "rotary_embedding_dim")}
    is_packed = len(x.shape or ()) == 3
    return op.RotaryEmbedding(x, cos, sin, _attributes=kept, num_heads=heads if is_packed else None, _version=_VERSION)
