"""Write Attention of com.microsoft with former keys and values as a product and Attention of ai.onnx.

    y, present = Attention(x, w, bias?, mask?, past)     ->     q, k, v = Split(MatMul(x, w) + bias)
                                                                keys, values = Split(past)
                                                                y, keys, values = Attention(q, k, v, mask, keys, values)
                                                                present = Concat(keys, values)

with past (2, B, H, P, D), and mask (B, P + S) of keys that are seen where above 0 as numbers that are added: 0 and
`mask_filter_value`. A causal query sees the former keys in both.

Left alone:
    rotary embeddings, hidden sizes that differ, further numbers that are added to the scores
    a past that is one buffer with the present, and longer than what is used of it
    masks of other ranks, types other than float and float16, weights that are no constant matrix
"""

from __future__ import annotations

from sardonyx.ir import Value
from sardonyx.ops.views.attention import MicrosoftAttention
from sardonyx.optimize.helpers.activation import fused_type_reason
from sardonyx.optimize.helpers.attention_mask import added_reason
from sardonyx.optimize.helpers.attention_past import PAST_RANK, attend_with_past
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import microsoft
from sardonyx.optimize.terms import Term

__all__ = ["EXPAND_ATTENTION_CACHE"]


def _pattern(op: PatternBuilder, x: Term, w: Term, past: Term) -> tuple[Term, ...]:
    attention = op.Attention(
        x,
        op.constant(w),
        op.optional("bias"),
        op.optional("mask"),
        past,
        _domain="com.microsoft",
        do_rotary=0,
        past_present_share_buffer=0,
        _as="attention",
    )
    return tuple(op.outputs(attention, 2))


def _check(match: Match) -> str | None:
    x, past, weights, mask = match["x"], match["past"], match.tensor("w"), match.get("mask")
    node = match.node("attention")
    if x.shape is None or len(x.shape) != 3 or weights is None or len(weights.shape) != 2:
        return f"x is {x.shape}, expected three dimensions, and a matrix of weights"
    width, heads = weights.shape[1], MicrosoftAttention.of(node).heads
    if node.integers("qkv_hidden_sizes") or heads <= 0 or width % (3 * heads):
        return "queries, keys and values are not of one size"
    shape = past.shape
    if shape is None or len(shape) != PAST_RANK or (shape[2], shape[4]) != (heads, width // (3 * heads)):
        return f"the past is {shape}, expected (2, B, {heads}, P, {width // (3 * heads)})"
    if mask is not None and (mask.shape is None or len(mask.shape) != 2 or mask.shape[0] != x.shape[0]):
        return f"the mask is {mask.shape}, expected a number for each of the {x.shape[0]} sequences and each key"
    return fused_type_reason(x) or added_reason(match)


def _replace(op: Builder, match: Match, learned: None) -> tuple[Value, ...]:
    node, bias, weights, mask = match.node("attention"), match.get("bias"), match.tensor("w"), match.get("mask")
    if weights is None:
        raise ValueError("the weights are no constant")
    product = op.MatMul(match["x"], match["w"])
    made = product if bias is None else op.Add(product, bias)
    return attend_with_past(op, made, weights.shape[1] // 3, match["past"], mask, MicrosoftAttention.of(node))


EXPAND_ATTENTION_CACHE = Rule("expand_attention_cache", _pattern, _replace, _check, takes_apart=microsoft("Attention"))
