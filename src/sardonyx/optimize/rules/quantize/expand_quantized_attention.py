"""Write QAttention of com.microsoft, which projects integers, as a product of integers and MultiHeadAttention.

    QAttention(x, w, bias, x_scale, w_scale, mask?, x_zero?, w_zero?) {num_heads}
        ->      q, k, v = Split(MatMulIntegerToFloat(x, w, x_scale, w_scale, x_zero, w_zero, bias))
                MultiHeadAttention(q, k, v, mask) {num_heads}

with mask (B, T) of keys that are seen where above 0, or (B,) of how many are seen. The sums are exact. With former keys and values
(2, B, H, P, D), which may be left out, Attention of ai.onnx takes the place of MultiHeadAttention; a mask is (B, P + S) then.

Left alone:
    rotary embeddings, types other than float of the bias, a past that is one buffer with the present
    masks of other shapes, or whose shape is not known to be one of these
    weights whose number of columns is unknown, or no multiple of three times the heads
"""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.ir import Node, Value
from sardonyx.ops.views.attention import MicrosoftAttention
from sardonyx.optimize.helpers.attention_mask import added_reason
from sardonyx.optimize.helpers.attention_past import PAST_RANK, attend_with_past
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import microsoft
from sardonyx.optimize.terms import Term

__all__ = ["EXPAND_QUANTIZED_ATTENTION", "EXPAND_QUANTIZED_ATTENTION_CACHE"]

_MICROSOFT = "com.microsoft"
_AXES_ARE_INPUTS = 13
_SHAPE_HAS_START = 15
_KEPT = ("mask_filter_value", "num_heads", "scale", "unidirectional")
_MASK, _PAST = 5, 8


def _pattern(op: PatternBuilder) -> Term:
    return op.node("QAttention", op.rest("inputs"), _domain=_MICROSOFT, do_rotary=0)


def _check(match: Match) -> str | None:
    node = match.root
    x, mask = node.inputs[0], node.input(_MASK)
    if node.input(_PAST) is not None or len(node.outputs) > 1:
        return "there are former keys and values"
    if mask is not None and (x is None or x.shape is None or mask.shape not in (x.shape[:1], x.shape[:2])):
        return f"the mask is {mask.shape}, expected a number for each key or each sequence of {None if x is None else x.shape}"
    return _projection_reason(node)


def _projection_reason(node: Node) -> str | None:
    """Return why the projection cannot be written as a product."""
    x, w, bias = (node.input(place) for place in range(3))
    if x is None or x.shape is None or len(x.shape) != 3 or w is None or w.shape is None or len(w.shape) != 2:
        return "the input has no three dimensions, or the weights are no matrix"
    width, heads = w.shape[1], MicrosoftAttention.of(node).heads
    if not isinstance(width, int) or heads < 1 or width % (3 * heads):
        return f"{width} columns are not those of queries, keys and values of one size"
    return None if bias is not None and bias.dtype is DataType.FLOAT else "the bias is not float"


def _replace(op: Builder, match: Match, learned: None) -> Value:
    node = match.root
    product, size = _projected(op, node)
    parts = op.outputs("Split", 3, product, np.array([size] * 3, np.int64), axis=2, _version=_AXES_ARE_INPUTS)
    mask = _mask(op, node)
    kept = {name: attribute for name, attribute in node.attributes.items() if name in _KEPT}
    return op.MultiHeadAttention(*parts, *([] if mask is None else [None, mask]), _domain=_MICROSOFT, _attributes=kept)


def _projected(op: Builder, node: Node) -> tuple[Value, int]:
    """Return queries, keys and values (B, S, 3 x size), and how many elements a query has."""
    x, w, bias, x_scale, w_scale = node.inputs[:5]
    width = w.shape[1] if w is not None and w.shape is not None else 0
    if not isinstance(width, int):
        raise ValueError(f"{node!r} has weights of unknown width")
    product = op.MatMulIntegerToFloat(x, w, x_scale, w_scale, node.input(6), node.input(7), bias, _domain=_MICROSOFT)
    return product, width // 3


def _cache_pattern(op: PatternBuilder) -> tuple[Term, ...]:
    called = op.node("QAttention", op.rest("inputs"), _domain=_MICROSOFT, do_rotary=0, past_present_share_buffer=0, _as="attention")
    return tuple(op.outputs(called, 2))


def _check_cache(match: Match) -> str | None:
    node = match.node("attention")
    reason = _projection_reason(node)
    if reason is not None:
        return reason
    x, w, mask, past = node.inputs[0], node.inputs[1], node.input(_MASK), node.input(_PAST)
    if x is None or x.shape is None or w is None or w.shape is None:
        return "there is no input"
    heads = MicrosoftAttention.of(node).heads
    size = w.shape[1] // (3 * heads)
    if past is not None and (past.shape is None or len(past.shape) != PAST_RANK or (past.shape[2], past.shape[4]) != (heads, size)):
        return f"the past is {past.shape}, expected (2, B, {heads}, P, {size})"
    if mask is not None and (mask.shape is None or len(mask.shape) != 2 or mask.shape[0] != x.shape[0]):
        return f"the mask is {mask.shape}, expected a number for each of the {x.shape[0]} sequences and each key"
    return added_reason(match)


def _replace_cache(op: Builder, match: Match, learned: None) -> tuple[Value, Value]:
    node = match.node("attention")
    product, size = _projected(op, node)
    view, past = MicrosoftAttention.of(node), node.input(_PAST)
    if past is None:
        batch = op.Shape(product, start=0, end=1, _version=_SHAPE_HAS_START)
        rest = np.array([view.heads, 0, size // view.heads], np.int64)
        past = op.ConstantOfShape(op.Concat(np.array([2], np.int64), batch, rest, axis=0))
    return attend_with_past(op, product, size, past, node.input(_MASK), view)


def _mask(op: Builder, node: Node) -> Value | None:
    """Return for each key (B, T) whether it is seen, above 0."""
    mask, x = node.input(_MASK), node.inputs[0]
    if mask is None or mask.shape is None or len(mask.shape) == 2:
        return mask
    length = op.Squeeze(op.Shape(x, start=1, end=2, _version=_SHAPE_HAS_START), [0], _version=_AXES_ARE_INPUTS)
    keys = op.Range(np.array(0, np.int32), op.Cast(length, to=int(DataType.INT32)), np.array(1, np.int32))
    seen = op.Less(keys, op.Unsqueeze(mask, [1], _version=_AXES_ARE_INPUTS))
    return op.Cast(seen, to=int(DataType.INT32))


EXPAND_QUANTIZED_ATTENTION = Rule(
    "expand_quantized_attention", _pattern, _replace, _check, takes_apart=microsoft("QAttention"), tolerance=1e-4
)
EXPAND_QUANTIZED_ATTENTION_CACHE = Rule(
    "expand_quantized_attention_cache",
    _cache_pattern,
    _replace_cache,
    _check_cache,
    takes_apart=microsoft("QAttention"),
    tolerance=1e-4,
    summary="Write QAttention of com.microsoft with former keys and values as a product of integers and Attention of ai.onnx.",
)
