"""Attention of com.microsoft with former keys and values, written as Attention of ai.onnx."""

from __future__ import annotations

import numpy as np

from sardonyx.ir import Value
from sardonyx.ops.views.attention import MicrosoftAttention
from sardonyx.optimize.helpers.attention_mask import seen_as_added
from sardonyx.optimize.rule import Builder

__all__ = ["PAST_RANK", "attend_with_past"]

PAST_RANK = 5
"""Of a past (2, B, H, P, D)."""

_AXES_ARE_INPUTS = 13
_VERSION = 23
"""Of Attention, from which on it has former keys."""


def attend_with_past(
    op: Builder, projected: Value, size: int, past: Value, mask: Value | None, view: MicrosoftAttention
) -> tuple[Value, Value]:
    """Return what is attended to, and the present (2, B, H, P + S, D).

    Args:
        op: makes the nodes.
        projected: queries, keys and values (B, S, 3 x size).
        size: the elements of a query.
        past: former keys and values (2, B, H, P, D).
        mask: keys (B, P + S) that are seen, above 0; None for all.
        view: the attributes.
    """
    q, k, v = op.outputs("Split", 3, projected, np.array([size] * 3, np.int64), axis=2, _version=_AXES_ARE_INPUTS)
    pasts = [
        op.Squeeze(part, [0], _version=_AXES_ARE_INPUTS)
        for part in op.outputs("Split", 2, past, np.array([1, 1], np.int64), axis=0, _version=_AXES_ARE_INPUTS)
    ]
    hidden = None if mask is None else seen_as_added(op, mask, view.fill, projected)
    heads = {"q_num_heads": view.heads, "kv_num_heads": view.heads}
    causal = {"is_causal": 1} if view.is_causal else {}
    y, *present = op.outputs("Attention", 3, q, k, v, hidden, *pasts, scale=view.scale, **causal, **heads, _version=_VERSION)
    return y, op.Concat(*(op.Unsqueeze(part, [0], _version=_AXES_ARE_INPUTS) for part in present), axis=0)
