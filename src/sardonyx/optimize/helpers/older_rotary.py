"""RotaryEmbedding of ai.onnx as that of com.microsoft, which any operator set has beside it.

    RotaryEmbedding(x, cos, sin)                     ->      RotaryEmbedding(x, ids, cos as (B x S, D / 2), sin likewise)
    RotaryEmbedding(x, cos, sin, ids)                ->      RotaryEmbedding(x, ids, cos, sin)

with ids 0, 1, 2 … as (B, S), for angles (B, S, D / 2) of each position of each batch. Angles (1, S, D / 2) are for all batches, by
ids that are 0, the first: so (B, H, S, D) need not be seen as (1, B x H, S, D).
"""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.ir import Node, Value
from sardonyx.ops.views.attention import RotaryEmbedding
from sardonyx.optimize.rule import Builder

__all__ = ["RotaryWriter", "can_write_rotary"]

_MICROSOFT = "com.microsoft"
_TYPES = (DataType.FLOAT, DataType.FLOAT16)
_HAS_RANGE_SINCE = 11
_X, _COS, _SIN, _IDS = range(4)


def can_write_rotary(node: Node, opset: int) -> bool:
    """Return whether a node RotaryEmbedding can be written in a file that imports `opset`."""
    values = node.inputs[:_IDS]
    if opset < _HAS_RANGE_SINCE or any(value is None or value.dtype not in _TYPES for value in values):
        return False
    x, cos = node.inputs[_X], node.inputs[_COS]
    rank = 3 if node.input(_IDS) is None else 2
    known = x is not None and cos is not None and len(cos.shape or ()) == rank and isinstance((cos.shape or ("",))[-1], int)
    is_whole = x is not None and len(x.shape or ()) == 4 and not RotaryEmbedding.of(node).width
    return known and (is_whole or _head_count(node) > 0)


def _head_count(node: Node) -> int:
    """Return how many heads x has; 0 where it is not known."""
    x = node.inputs[_X]
    shape = () if x is None or x.shape is None else x.shape
    heads = shape[1] if len(shape) == 4 else RotaryEmbedding.of(node).heads
    return heads if isinstance(heads, int) else 0


def _unmerged(x: Value, result: Value) -> tuple[Value, Value]:
    """Return what (1, B x H, S, D) and its result are as (B, H, S, D), before and behind; themselves where they are not."""
    before = x.producer
    users = [user for user, _ in result.uses]
    behind = users[0] if len(users) == 1 and isinstance(users[0], Node) else None
    if before is None or behind is None or any((node.domain, node.op_type) != ("", "Reshape") for node in (before, behind)):
        return x, result
    source, target = before.inputs[0], behind.outputs[0]
    if source is None or source.shape is None or len(source.shape) != 4 or target.shape != source.shape:
        return x, result
    return (source, target) if source.shape[2:] == (x.shape or ())[2:] else (x, result)


class RotaryWriter:
    """Writes the nodes of one model; angles that several of them read are looked up alike."""

    def __init__(self) -> None:
        """Begin without any."""
        self._tables: dict[tuple[object, object], Value] = {}
        self._ids: dict[tuple[object, object], Value] = {}

    def write(self, op: Builder, node: Node) -> list[tuple[Value, Value]]:
        """Build what takes the place of `node`; which value it replaces, and by which."""
        x, cos, sin = node.inputs[:_IDS]
        ids, result = node.input(_IDS), node.outputs[0]
        if x is None or cos is None or sin is None:
            raise ValueError(f"{node!r} cannot be written; ask can_write_rotary first")
        if ids is None:
            is_for_all = (cos.shape or (0,))[0] == 1
            x, result = _unmerged(x, result) if is_for_all else (x, result)
            ids = op.constant(np.array([0], np.int64)) if is_for_all else self._positions(op, cos)
            cos, sin = self._table(op, cos), self._table(op, sin)
        kept = {name: value for name, value in node.attributes.items() if name in ("interleaved", "rotary_embedding_dim")}
        heads = _head_count(node) or None
        return [(result, op.RotaryEmbedding(x, ids, cos, sin, _domain=_MICROSOFT, _attributes=kept, num_heads=heads))]

    def _table(self, op: Builder, angles: Value) -> Value:
        """Return (B, S, D / 2) as (B x S, D / 2)."""
        key = (angles, op.graph)
        if key not in self._tables:
            self._tables[key] = op.Reshape(angles, np.array([-1, int(str((angles.shape or ())[-1]))], np.int64))
        return self._tables[key]

    def _positions(self, op: Builder, angles: Value) -> Value:
        """Return where in its table each of the angles is, (B, S)."""
        key = (angles, op.graph)
        if key not in self._ids:
            count = op.Gather(op.Shape(self._table(op, angles)), np.array(0, np.int64))
            places = op.Range(np.array(0, np.int64), count, np.array(1, np.int64))
            self._ids[key] = op.Reshape(places, op.Gather(op.Shape(angles), np.array([0, 1], np.int64)))
        return self._ids[key]
