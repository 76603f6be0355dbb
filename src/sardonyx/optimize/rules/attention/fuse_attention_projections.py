"""Fold the products that make queries, keys and values into Attention of com.microsoft.

    q, k, v = MatMul(x, wq) + bq, MatMul(x, wk) + bk, MatMul(x, wv) + bv
    y = MultiHeadAttention(q, k, v, b?, seen?, added?)        ->      y = Attention(x, w, b, seen, _, added), of com.microsoft both

    q, k, v = Split(MatMul(x, w) + b)                         ->      the same
    y = Attention(q, k, v, added?) of ai.onnx                 ->      the same

with or without biases; w has the columns of the three side by side.

Left alone:
    queries of another tensor than keys and values, or of another size
    former keys and values, types other than float and float16
    weights that are no constant matrix, or larger than 2^28 elements together
    products and sums that have other users
    Attention of ai.onnx that means something else: capped scores, masks that may hide all keys or are not known to be for all pairs
"""

from __future__ import annotations

import math

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import Array
from sardonyx.ir import Node, Tensor, Value
from sardonyx.ops.views.attention import Attention
from sardonyx.ops.views.slice import Split
from sardonyx.optimize.bounds import bounds_of
from sardonyx.optimize.contract import Level
from sardonyx.optimize.edit import tensor_of
from sardonyx.optimize.helpers.activation import fused_type_reason
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import microsoft
from sardonyx.optimize.terms import Term

__all__ = ["FUSE_ATTENTION_PROJECTIONS"]

_MICROSOFT = "com.microsoft"
_MOST_ELEMENTS = 1 << 28


@dataclasses.dataclass(frozen=True, slots=True)
class _Projection:
    """x times a matrix, plus a vector."""

    x: Value
    weights: Value
    matrix: Tensor
    bias: Tensor | None


def _pattern(op: PatternBuilder, q: Term, k: Term, v: Term) -> Term:
    further = (op.optional_constant("bias"), op.optional("seen"), op.optional("added"))
    return op.any_of(op.MultiHeadAttention(q, k, v, *further, _domain=_MICROSOFT), op.Attention(q, k, v, op.optional("added")))


def _check(match: Match) -> str | list[_Projection]:
    q, k, v = (match[name] for name in "qkv")
    if q.shape is None or not q.shape == k.shape == v.shape or len(q.shape) != 3:
        return f"queries, keys and values are {q.shape}, {k.shape} and {v.shape}, expected one size of three dimensions"
    reason = None if match.root.domain else _standard_reason(match)
    if reason is not None:
        return reason
    overridable = match.place.overridable
    source = _split_source((q, k, v))
    values = (q, k, v) if source is None else (source,)
    found = [projection for value in values if (projection := _read(value, overridable)) is not None]
    if len(found) < len(values) or len({id(projection.x) for projection in found}) > 1:
        return "queries, keys and values are not products of one tensor with constant matrices"
    if sum(projection.matrix.size for projection in found) > _MOST_ELEMENTS:
        return "the weights are too large"
    return fused_type_reason(found[0].x) or found


def _standard_reason(match: Match) -> str | None:
    """Return why Attention of ai.onnx is not that of com.microsoft; None where it is."""
    view, added = Attention.of(match.root), match.get("added")
    given = {name for name, attribute in match.root.attributes.items() if attribute.value}
    if not given <= {"is_causal", "kv_num_heads", "q_num_heads", "scale"} or view.query_heads != view.key_heads:
        return f"it has {', '.join(sorted(given))}, expected as many heads of each, a scale, and causal or not"
    if added is None:
        return None
    B, S, _ = match["q"].shape or (0, 0, 0)
    batch, heads, *pairs = added.shape or (0, 0)
    is_mask = added.dtype is match["q"].dtype and batch in (1, B) and heads in (1, view.query_heads) and pairs == [S, S]
    if not is_mask or view.is_causal or bounds_of(added, match.place.overridable)[0] == -math.inf:
        return f"the mask is {added.dtype} {added.shape}, or may hide all keys"
    return None


def _split_source(values: tuple[Value, Value, Value]) -> Value | None:
    """Return what is split along its last axis into the three, in order; None where nothing is."""
    node = values[0].producer
    source = None if node is None or node.op_type != "Split" or node.domain else node.inputs[0]
    if node is None or source is None or tuple(node.outputs) != values or any(value.use_count != 1 for value in values):
        return None
    return source if Split.of(node).axis in (-1, 2) else None


def _read(value: Value, overridable: frozenset[Value]) -> _Projection | None:
    node = _only(value, "Add")
    for product, bias in () if node is None else (node.inputs, node.inputs[::-1]):
        tensor = tensor_of(bias, overridable)
        found = None if product is None or tensor is None else _read_product(product, overridable)
        if found is not None and tensor is not None and tuple(tensor.shape) == tuple(found.matrix.shape[1:]):
            return dataclasses.replace(found, bias=tensor)
    return _read_product(value, overridable) if node is None else None


def _read_product(value: Value, overridable: frozenset[Value]) -> _Projection | None:
    node = _only(value, "MatMul")
    x, weights = (None, None) if node is None else node.inputs
    matrix = tensor_of(weights, overridable)
    if x is None or weights is None or x.shape is None or len(x.shape) != 3 or matrix is None or len(matrix.shape) != 2:
        return None
    return _Projection(x, weights, matrix, None)


def _only(value: Value, op_type: str) -> Node | None:
    """Return the node of that operator which makes `value` for one user."""
    node = value.producer
    return node if node is not None and (node.domain, node.op_type) == ("", op_type) and value.use_count == 1 else None


def _replace(op: Builder, match: Match, found: list[_Projection]) -> Value:
    weights = found[0].weights
    if len(found) > 1:
        weights = op.constant(np.concatenate([projection.matrix.numpy() for projection in found], axis=1))
    inputs = [found[0].x, weights, _bias(match, found), match.get("seen"), None, match.get("added")]
    while inputs[-1] is None:
        inputs.pop()
    node, view = match.root, Attention.of(match.root)
    if node.domain:
        return op.Attention(*inputs, _domain=_MICROSOFT, _attributes=node.attributes)
    return op.Attention(
        *inputs,
        _domain=_MICROSOFT,
        num_heads=view.query_heads,
        scale=view.scale,
        unidirectional=1 if view.is_causal else None,
    )


def _bias(match: Match, found: list[_Projection]) -> Array:
    """Return the bias of all columns: those added to the products, and the one that attention adds."""
    parts = [np.zeros(part.matrix.shape[1], part.matrix.dtype.numpy) if part.bias is None else part.bias.numpy() for part in found]
    added = None if match.get("bias") is None else match.tensor("bias")
    return np.concatenate(parts) if added is None else np.concatenate(parts) + added.numpy()


FUSE_ATTENTION_PROJECTIONS = Rule(
    "fuse_attention_projections",
    _pattern,
    _replace,
    _check,
    Level.EXTENDED,
    makes=microsoft("Attention"),
    aliases=("AttentionFusion",),
)
