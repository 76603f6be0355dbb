"""Attention of ai.onnx as MultiHeadAttention of com.microsoft, which any operator set has beside it.

    Attention(q, k, v, mask, past)           ->      MultiHeadAttention(q, k, v, _, _, mask, past) {num_heads}

Queries are (B, S, H x D), keys and values (B, T, H x D) or (B, H, T, D): where they lie otherwise in the graph, they are reshaped
and transposed, or read before they were. Keys and values for groups of query heads are repeated. The mask is
(1 or B, 1 or H, S, T).
Queries that see no key are NaN by com.microsoft: where these may be, they are replaced by the zeros that Attention has.

Dimension letters: B batch, H query heads, M heads of keys and values, S queries, T keys with those of former runs, D head size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import DataType
from sardonyx.ir import Dim, Node, Shape, Value
from sardonyx.ops.views.attention import Attention
from sardonyx.ops.views.reduce import takes_axes_input
from sardonyx.optimize.bounds import bounds_of
from sardonyx.optimize.edit import small_constant
from sardonyx.optimize.rule import Builder
from sardonyx.optimize.transposes.permutation import permutation_of

__all__ = ["AttentionWriter", "can_write_attention"]

_MICROSOFT = "com.microsoft"
_TYPES = (DataType.FLOAT, DataType.FLOAT16)
_SWAP_HEADS = (0, 2, 1, 3)
_HAS_ALL_SINCE = 9
"""The operators that are written beside it, Expand and IsNaN."""

_Q, _K, _V, _MASK, _PAST_KEY, _PAST_VALUE = range(6)


def can_write_attention(node: Node, opset: int) -> bool:
    """Return whether a node Attention means the same as one of com.microsoft, and can be written in a file that imports `opset`."""
    mask = node.input(_MASK)
    if mask is not None and (not mask.shape or len(mask.shape) > 4):
        return False
    values = [value for value in (*node.inputs, *node.outputs[:1]) if value is not None and value.dtype is not DataType.BOOL]
    if len(node.inputs) > _PAST_VALUE + 1 or any(value.use_count for value in node.outputs[3:]) or opset < _HAS_ALL_SINCE:
        return False
    if any(value.dtype not in _TYPES or value.dtype is not values[0].dtype for value in values):
        return False
    view = Attention.of(node)
    if view.is_causal or view.softcap or view.scale == 0 or not view.is_in_float:
        return False
    return (node.input(_PAST_KEY) is None) == (node.input(_PAST_VALUE) is None) and _read(node) is not None


def _may_give_zeros(mask: Value | None) -> bool:
    """Return whether there may be queries that see no key, which Attention gives zeros."""
    return mask is not None and (mask.dtype is DataType.BOOL or bounds_of(mask)[0] == -math.inf) and _without_nan(mask) is mask


def _without_nan(mask: Value) -> Value:
    """Return the mask of which `mask` is Where(ReduceMax(m) = -inf, NaN, m); itself where it is none."""
    node = mask.producer
    if node is None or node.op_type != "Where" or node.domain:
        return mask
    condition, fill, source = node.inputs
    number = small_constant(fill)
    equal = None if condition is None else condition.producer
    if source is None or number is None or not np.isnan(number).all() or equal is None or equal.op_type != "Equal":
        return mask
    least, (largest, *_) = small_constant(equal.inputs[1]), equal.inputs
    reduced = None if largest is None else largest.producer
    is_row = reduced is not None and reduced.op_type == "ReduceMax" and reduced.inputs[0] is source
    axes = small_constant(reduced.input(1)) if is_row and reduced is not None else None
    is_last = axes is not None and axes.tolist() in ([-1], [len(mask.shape or ()) - 1])
    return source if is_last and least is not None and bool(np.isneginf(least).all()) else mask


@dataclasses.dataclass(frozen=True, slots=True)
class _Heads:
    """One of Q, K, V."""

    value: Value
    count: int
    size: int
    is_packed: bool
    """Whether it is (B, T, heads x size), not (B, heads, T, size)."""

    @property
    def length(self) -> Dim:
        """Queries or keys."""
        return (self.value.shape or ())[1 if self.is_packed else 2]

    @property
    def source(self) -> Value | None:
        """The same packed, if there is such a value."""
        if self.is_packed:
            return self.value
        tokens = _source_of(self.value, "Transpose")
        packed = _source_of(tokens, "Reshape")
        B, _, T, _ = self.value.shape or ()
        is_swap = permutation_of(self.value.producer) == _SWAP_HEADS
        return packed if is_swap and packed is not None and packed.shape == (B, T, self.count * self.size) else None

    def packed(self, op: Builder) -> Value:
        """Return the value as (B, T, heads x size)."""
        if self.source is not None:
            return self.source
        return op.Reshape(op.Transpose(self.value, perm=list(_SWAP_HEADS)), [0, 0, self.count * self.size])

    def apart(self, op: Builder) -> Value:
        """Return the value as (B, heads, T, size)."""
        if not self.is_packed:
            return self.value
        return op.Transpose(op.Reshape(self.value, [0, 0, self.count, self.size]), perm=list(_SWAP_HEADS))


def _source_of(value: Value | None, op_type: str) -> Value | None:
    node = None if value is None else value.producer
    return node.inputs[0] if node is not None and node.op_type == op_type and not node.domain else None


def _heads(value: Value | None, count: int | None) -> _Heads | None:
    shape = None if value is None else value.shape
    if value is None or shape is None or len(shape) not in (3, 4):
        return None
    heads, last = shape[1] if len(shape) == 4 else count, shape[-1]
    if not isinstance(heads, int) or not isinstance(last, int) or heads < 1:
        return None
    if len(shape) == 4:
        return _Heads(value, heads, last, is_packed=False)
    return _Heads(value, heads, last // heads, is_packed=True) if last % heads == 0 else None


def _read(node: Node) -> tuple[_Heads, _Heads, _Heads] | None:
    """Return Q, K and V; None where their heads are not known, or not the query's or fewer for groups of these."""
    view = Attention.of(node)
    count, few = view.query_heads, view.key_heads
    q, k, v = (_heads(node.input(place), heads) for place, heads in ((_Q, count), (_K, few), (_V, few)))
    if q is None or k is None or v is None or k.count != v.count or q.count % k.count or q.size != k.size:
        return None
    return q, k, v


class AttentionWriter:
    """Writes the nodes of one model; masks that several of them read are spread over the queries once."""

    def __init__(self, opset: int) -> None:
        """Write under the version `opset` of ai.onnx."""
        self._opset = opset
        self._masks: dict[tuple[object, ...], Value] = {}

    def write(self, op: Builder, node: Node) -> list[tuple[Value, Value]]:
        """Build what takes the place of `node`; which values it replaces, and by which."""
        parts = _read(node)
        if parts is None:
            raise ValueError(f"{node!r} cannot be written; ask can_write_attention first")
        q, k, v = parts
        past = [node.input(place) for place in (_PAST_KEY, _PAST_VALUE)]
        has_past = past[0] is not None
        present: list[Value] = []
        length: Dim = k.length + (0 if past[0] is None else (past[0].shape or (0, 0, 0))[2])
        if has_past and (q.count != k.count or k.size != v.size):
            k, v, past = *self._joined(op, (k, v), past), [None, None]
            present = [k.value, v.value]
        elif any(value.use_count for value in node.outputs[1:3]) and not has_past:
            present = [k.apart(op), v.apart(op)]
        if q.count != k.count:
            k, v = (self._repeated(op, part, q.count) for part in (k, v))
        inputs = [q.packed(op), *_keys(op, k, v), None, None, self._mask(op, node.input(_MASK), q, length, (k, past[0])), *past]
        while inputs[-1] is None:
            inputs.pop()
        made = op.outputs(
            "MultiHeadAttention",
            1 if past[0] is None else 3,
            *inputs,
            _domain=_MICROSOFT,
            num_heads=q.count,
            scale=Attention.of(node).scale,
        )
        y = _with_zeros(op, made[0]) if _may_give_zeros(node.input(_MASK)) else made[0]
        return [_result(op, node, q, v, y), *zip(node.outputs[1:3], present or made[1:], strict=False)]

    def _joined(self, op: Builder, parts: Sequence[_Heads], past: Sequence[Value | None]) -> tuple[_Heads, _Heads]:
        """Return keys and values behind those of former runs."""
        k, v = (
            dataclasses.replace(part, value=op.Concat(old, part.apart(op), axis=2), is_packed=False)
            for part, old in zip(parts, past, strict=True)
        )
        return k, v

    def _repeated(self, op: Builder, part: _Heads, count: int) -> _Heads:
        """Return each head once for each query head of its group."""
        value = self._with_axes(op, part.apart(op), [2])
        wide = op.Expand(value, [1, 1, count // part.count, 1, 1])
        return _Heads(op.Reshape(wide, [0, count, -1, part.size]), count, part.size, is_packed=False)

    def _with_axes(self, op: Builder, value: Value, axes: list[int]) -> Value:
        return op.Unsqueeze(value, axes) if takes_axes_input("Unsqueeze", self._opset) else op.Unsqueeze(value, axes=axes)

    def _mask(self, op: Builder, mask: Value | None, q: _Heads, length: Dim, keys: tuple[_Heads, Value | None]) -> Value | None:
        """Return the mask as (1 or B, 1 or H, S, T)."""
        if mask is None:
            return None
        key = (mask, op.graph, q.length, length)
        if key not in self._masks:
            source = _without_nan(mask)
            rank = len(mask.shape or ())
            source = _as_added(op, source, q.value) if source.dtype is DataType.BOOL else source
            whole = source if rank == 4 else self._with_axes(op, source, list(range(4 - rank)))
            self._masks[key] = _spread(op, whole, (mask.shape or ())[-2:], q, length, keys)
        return self._masks[key]


def _as_added(op: Builder, seen: Value, like: Value) -> Value:
    dtype = np.float16 if like.dtype is DataType.FLOAT16 else np.float32
    return op.Where(seen, dtype(0), dtype(-math.inf))


def _with_zeros(op: Builder, value: Value) -> Value:
    """Return `value` with zeros for NaN."""
    return op.Where(op.IsNaN(value), np.zeros((), np.float16 if value.dtype is DataType.FLOAT16 else np.float32), value)


def _spread(op: Builder, mask: Value, known: Shape, q: _Heads, length: Dim, keys: tuple[_Heads, Value | None]) -> Value:
    """Return `mask`, of whose last dimensions `known` are known, over all queries and keys."""
    if known == (q.length, length):
        return mask
    k, past = keys
    S = [q.length] if isinstance(q.length, int) else _dim(op, q.value, 1 if q.is_packed else 2)
    T = [length] if isinstance(length, int) else _dim(op, k.value, 1 if k.is_packed else 2)
    if past is not None and not isinstance(length, int):
        T = op.Add(T, _dim(op, past, 2))
    return op.Expand(mask, op.Concat(np.array([1, 1], np.int64), S, T, axis=0))


def _dim(op: Builder, value: Value, axis: int) -> Value:
    return op.Gather(op.Shape(value), np.array([axis], np.int64))


def _keys(op: Builder, k: _Heads, v: _Heads) -> tuple[Value, Value]:
    """Return keys and values that lie alike: packed where nothing has to be moved for that, or where their heads differ in size."""
    if (k.source is not None and v.source is not None) or k.size != v.size:
        return k.packed(op), v.packed(op)
    return k.apart(op), v.apart(op)


def _result(op: Builder, node: Node, q: _Heads, v: _Heads, made: Value) -> tuple[Value, Value]:
    """Return what is replaced by `made`, (B, S, H x D): the result, or what packs it; and by which value."""
    result = node.outputs[0]
    if q.is_packed:
        return result, made
    tokens = _only_result(result, "Transpose")
    packed = _only_result(tokens, "Reshape")
    is_same = packed is not None and packed.shape == made.shape is not None
    if tokens is not None and packed is not None and is_same and permutation_of(tokens.producer) == _SWAP_HEADS:
        return packed, made
    return result, op.Transpose(op.Reshape(made, [0, 0, q.count, v.size]), perm=list(_SWAP_HEADS))


def _only_result(value: Value | None, op_type: str) -> Value | None:
    """Return what the only user of `value`, a node of that operator, makes of it."""
    users = [] if value is None else [user for user, _ in value.uses]
    user = users[0] if len(users) == 1 else None
    return user.outputs[0] if isinstance(user, Node) and user.op_type == op_type and not user.domain else None
