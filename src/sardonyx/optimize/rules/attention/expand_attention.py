"""Write Attention of com.microsoft, which makes queries, keys and values itself, as a product and Attention of ai.onnx.

    Attention(x, w, bias?, mask?, added?) {num_heads}        ->      q, k, v = Split(MatMul(x, w) + bias)
                                                                     Attention(q, k, v, mask) {q_num_heads, kv_num_heads}
    Where(IsNaN(y), 0, y), y = Attention(…)                  ->      the same, which has zeros for queries that see no key

with mask (B, T) of keys that are seen where above 0, (B, T, T) of keys that each query sees, or (B,) of how many are seen, as
numbers that are added: 0 and `mask_filter_value`.

Left alone:
    former keys and values, rotary embeddings, hidden sizes that differ
    masks of other shapes, or whose shape is not known to be one of these
    types other than float and float16, weights that are no constant matrix
"""

from __future__ import annotations

import numpy as np

from sardonyx.ir import Value
from sardonyx.ops.views.attention import MicrosoftAttention
from sardonyx.optimize.helpers.activation import fused_type_reason
from sardonyx.optimize.helpers.attention_guard import guard_reason, guarded, has_guard
from sardonyx.optimize.helpers.attention_mask import added_reason, added_to_scores, keys_before, seen_as_added
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import microsoft
from sardonyx.optimize.terms import Term

__all__ = ["EXPAND_ATTENTION"]

_MICROSOFT = "com.microsoft"
_AXES_ARE_INPUTS = 13


def _pattern(op: PatternBuilder, x: Term, w: Term) -> Term:
    y = op.Attention(
        x,
        op.constant(w),
        op.optional("bias"),
        op.optional("mask"),
        None,
        op.optional("added"),
        _domain=_MICROSOFT,
        do_rotary=0,
        _as="attention",
    )
    return guarded(op, y)


def _check(match: Match) -> str | None:
    x, weights, mask, node = match["x"], match.tensor("w"), match.get("mask"), match.node("attention")
    if x.shape is None or len(x.shape) != 3 or weights is None or len(weights.shape) != 2:
        return f"x is {x.shape}, expected three dimensions, and a matrix of weights"
    width, heads = weights.shape[1], MicrosoftAttention.of(node).heads
    if node.integers("qkv_hidden_sizes") or width % (3 * heads):
        return "queries, keys and values are not of one size"
    masks = [x.shape[:1], x.shape[:2], (*x.shape[:2], x.shape[1])]
    if mask is not None and mask.shape not in masks:
        return f"the mask is {mask.shape}, expected one of {masks}"
    return fused_type_reason(x) or guard_reason(match) or added_reason(match)


def _replace(op: Builder, match: Match, learned: None) -> Value:
    node, bias, weights = match.node("attention"), match.get("bias"), match.tensor("w")
    if weights is None:
        raise ValueError("the weights are no constant")
    view, size = MicrosoftAttention.of(node), weights.shape[1] // 3
    product = op.MatMul(match["x"], match["w"])
    made = product if bias is None else op.Add(product, bias)
    parts = op.outputs("Split", 3, made, np.array([size] * 3, np.int64), axis=2, _version=_AXES_ARE_INPUTS)
    mask, causal = _mask(op, match), {"is_causal": 1} if view.is_causal else {}
    return op.Attention(
        *parts, *([] if mask is None else [mask]), scale=view.scale, **causal, q_num_heads=view.heads, kv_num_heads=view.heads
    )


def _mask(op: Builder, match: Match) -> Value | None:
    mask, hidden = match.get("mask"), None
    if mask is not None:
        seen = keys_before(op, mask, match["x"], 1) if len(mask.shape or ()) == 1 else mask
        hidden = seen_as_added(op, seen, MicrosoftAttention.of(match.node("attention")).fill, match["x"])
    return added_to_scores(op, match.get("added"), hidden, match.place.overridable, has_guard=has_guard(match))


EXPAND_ATTENTION = Rule("expand_attention", _pattern, _replace, _check, takes_apart=microsoft("Attention"))
