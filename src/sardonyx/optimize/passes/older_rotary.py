"""RotaryEmbedding of ai.onnx as that of com.microsoft, which any operator set has beside it.

    RotaryEmbedding(x, cos, sin)                     ->      RotaryEmbedding(x, ids, cos as (B x S, D / 2), sin likewise)
    RotaryEmbedding(x, cos, sin, ids)                ->      RotaryEmbedding(x, ids, cos, sin)

with ids 0, 1, 2 … as (B, S), for angles (B, S, D / 2) of each position of each batch.
"""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.ir import Attribute, Node, Value
from sardonyx.optimize.rule import Builder

__all__ = ["RotaryWriter", "can_write_rotary"]

_MICROSOFT = "com.microsoft"
_TYPES = (DataType.FLOAT, DataType.FLOAT16)
_HAS_RANGE_SINCE = 11
_X, _COS, _SIN, _IDS = range(4)


def can_write_rotary(node: Node, opset: int) -> bool:
    """Whether a node RotaryEmbedding can be written in a file that imports `opset`."""
    values = node.inputs[:_IDS]
    if opset < _HAS_RANGE_SINCE or any(value is None or value.dtype not in _TYPES for value in values):
        return False
    x, cos = node.inputs[_X], node.inputs[_COS]
    rank = 3 if node.input(_IDS) is None else 2
    known = x is not None and cos is not None and len(cos.shape or ()) == rank and isinstance((cos.shape or ("",))[-1], int)
    return known and _head_count(node) > 0


def _head_count(node: Node) -> int:
    """How many heads x has; 0 where it is not known."""
    x = node.inputs[_X]
    shape = () if x is None or x.shape is None else x.shape
    heads = shape[1] if len(shape) == 4 else node.get("num_heads", 0)
    return heads if isinstance(heads, int) else 0


class RotaryWriter:
    """Writes the nodes of one model; angles that several of them read are looked up alike."""

    def __init__(self) -> None:
        """Begin without any."""
        self._tables: dict[tuple[object, object], Value] = {}
        self._ids: dict[tuple[object, object], Value] = {}

    def write(self, op: Builder, node: Node) -> list[tuple[Value, Value]]:
        """Build what takes the place of `node`; which value it replaces, and by which."""
        x, cos, sin = node.inputs[:_IDS]
        ids = node.input(_IDS)
        if x is None or cos is None or sin is None:
            raise ValueError(f"{node!r} cannot be written; ask can_write_rotary first")
        if ids is None:
            ids, cos, sin = self._positions(op, cos), self._table(op, cos), self._table(op, sin)
        kept = {name: value for name, value in node.attributes.items() if name in ("interleaved", "rotary_embedding_dim")}
        made = op.RotaryEmbedding(x, ids, cos, sin, _domain=_MICROSOFT, _attributes=kept, num_heads=Attribute.of(_head_count(node)))
        return [(node.outputs[0], made)]

    def _table(self, op: Builder, angles: Value) -> Value:
        """(B, S, D / 2) as (B x S, D / 2)."""
        key = (angles, op.graph)
        if key not in self._tables:
            self._tables[key] = op.Reshape(angles, np.array([-1, int(str((angles.shape or ())[-1]))], np.int64))
        return self._tables[key]

    def _positions(self, op: Builder, angles: Value) -> Value:
        """Where in its table each of the angles is, (B, S)."""
        key = (angles, op.graph)
        if key not in self._ids:
            count = op.Gather(op.Shape(self._table(op, angles)), np.array(0, np.int64))
            places = op.Range(np.array(0, np.int64), count, np.array(1, np.int64))
            self._ids[key] = op.Reshape(places, op.Gather(op.Shape(angles), np.array([0, 1], np.int64)))
        return self._ids[key]
