"""Write QAttention of com.microsoft, which projects integers, as a product of integers and MultiHeadAttention.

    QAttention(x, w, bias, x_scale, w_scale, mask?, x_zero?, w_zero?) {num_heads}
        ->      q, k, v = Split(MatMulIntegerToFloat(x, w, x_scale, w_scale, x_zero, w_zero, bias))
                MultiHeadAttention(q, k, v, mask) {num_heads}

with mask (B, T) of keys that are seen where above 0, or (B,) of how many are seen. The sums are exact.

Left alone:
    former keys and values, rotary embeddings, types other than float of the bias
    masks of other shapes, or whose shape is not known to be one of these
    weights whose number of columns is unknown, or no multiple of three times the heads
"""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.ir import Node, Value
from sardonyx.ops.views.attention import MicrosoftAttention
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import microsoft
from sardonyx.optimize.terms import Term

__all__ = ["EXPAND_QUANTIZED_ATTENTION"]

_MICROSOFT = "com.microsoft"
_AXES_ARE_INPUTS = 13
_SHAPE_HAS_START = 15
_KEPT = ("mask_filter_value", "num_heads", "scale", "unidirectional")
_MASK, _PAST = 5, 8


def _pattern(op: PatternBuilder) -> Term:
    return op.node("QAttention", op.rest("inputs"), _domain=_MICROSOFT, do_rotary=0)


def _check(match: Match) -> str | None:
    node = match.root
    x, w, bias, mask = (node.input(place) for place in (0, 1, 2, _MASK))
    if node.input(_PAST) is not None or len(node.outputs) > 1:
        return "there are former keys and values"
    if x is None or x.shape is None or len(x.shape) != 3 or w is None or w.shape is None or len(w.shape) != 2:
        return "the input has no three dimensions, or the weights are no matrix"
    width = w.shape[1]
    if not isinstance(width, int) or width % (3 * MicrosoftAttention.of(node).heads):
        return f"{width} columns are not those of queries, keys and values of one size"
    if bias is None or bias.dtype is not DataType.FLOAT:
        return "the bias is not float"
    if mask is not None and mask.shape not in (x.shape[:1], x.shape[:2]):
        return f"the mask is {mask.shape}, expected {x.shape[:1]} or {x.shape[:2]}"
    return None


def _replace(op: Builder, match: Match, learned: None) -> Value:
    node = match.root
    x, w, bias, x_scale, w_scale = node.inputs[:5]
    width = w.shape[1] if w is not None and w.shape is not None else 0
    if not isinstance(width, int):
        raise ValueError(f"{node!r} has weights of unknown width")
    product = op.MatMulIntegerToFloat(x, w, x_scale, w_scale, node.input(6), node.input(7), bias, _domain=_MICROSOFT)
    parts = op.outputs("Split", 3, product, np.array([width // 3] * 3, np.int64), axis=2, _version=_AXES_ARE_INPUTS)
    mask = _mask(op, node)
    kept = {name: attribute for name, attribute in node.attributes.items() if name in _KEPT}
    return op.MultiHeadAttention(*parts, *([] if mask is None else [None, mask]), _domain=_MICROSOFT, _attributes=kept)


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
