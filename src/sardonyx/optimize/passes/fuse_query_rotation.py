"""Rotate queries and keys where attention reads them."""

from __future__ import annotations

from sardonyx.ir import Attribute, Model, Node, Value
from sardonyx.ir.walk import nested_graphs
from sardonyx.ops.views.attention import MicrosoftAttention, RotaryEmbedding
from sardonyx.optimize.contract import Context, Pass
from sardonyx.optimize.edit import are_placed_apart, remove_dead
from sardonyx.optimize.target import microsoft

__all__ = ["FUSE_QUERY_ROTATION"]

_MICROSOFT = "com.microsoft"
_CACHE, _LAST = 7, 9
"""The first and the last input of GroupQueryAttention that say how to rotate: cosines, sines, positions."""
_INPUTS = {"": (1, 2, 3), _MICROSOFT: (2, 3, 1)}
"""Domain of RotaryEmbedding -> its inputs that are cosines, sines and positions."""


class _FuseQueryRotation:
    """Let GroupQueryAttention rotate queries and keys.

        q = RotaryEmbedding(x, positions, cos, sin)
        k = RotaryEmbedding(z, positions, cos, sin)
        y, … = GroupQueryAttention(q, k, v, …)

        ->      y, … = GroupQueryAttention(x, z, v, …, cos, sin, positions) {do_rotary = 1, rotary_interleaved}

    for RotaryEmbedding of com.microsoft and of ai.onnx. Only for providers that prefer GroupQueryAttention.

    Left alone: attention that rotates, or reads queries, keys and values packed; rotations that differ, have other readers, are
    scaled, or split heads in another way; caches of unknown size.

    Holds before: shapes inferred. Cost: O(nodes).
    """

    name = "fuse_query_rotation"
    makes = microsoft("GroupQueryAttention")
    not_saved = "onnxruntime makes this form for CUDA and WebGPU only"
    aliases = ("GroupQueryAttentionFusion",)

    def run(self, model: Model, context: Context) -> bool:
        """Fuse; whether any was."""
        changed = False
        for graph in nested_graphs(model.graph):
            for node in [node for node in graph if node.op_type == "GroupQueryAttention" and node.domain == _MICROSOFT]:
                changed |= _fuse(node)
        return changed


FUSE_QUERY_ROTATION: Pass = _FuseQueryRotation()


def _fuse(node: Node) -> bool:
    if node.flag("do_rotary") or any(node.input(index) for index in range(_CACHE, _LAST + 1)):
        return False
    heads = (view := MicrosoftAttention.of(node)).heads, view.key_heads
    rotations = [_rotation(node, index, count) for index, count in enumerate(heads)]
    if None in rotations or _how(rotations[0]) != _how(rotations[1]) or are_placed_apart([node, *filter(None, rotations)]):
        return False
    inputs = [*node.inputs, *[None] * (_LAST + 1 - len(node.inputs))]
    gone = [rotation for rotation in rotations if rotation is not None]
    inputs[0], inputs[1] = (rotation.inputs[0] for rotation in gone)
    *inputs[_CACHE : _LAST + 1], interleaved = _how(gone[0])
    node.set_inputs(inputs)
    node.attributes["do_rotary"] = Attribute.of(1)
    node.attributes["rotary_interleaved"] = Attribute.of(interleaved)
    remove_dead(gone)
    return True


def _rotation(node: Node, index: int, heads: int) -> Node | None:
    """Return the RotaryEmbedding that makes an input of attention, which reads heads as attention does."""
    value = node.input(index)
    found = None if value is None or value.use_count != 1 else value.producer
    if found is None or found.op_type != "RotaryEmbedding" or found.graph is not node.graph or found.domain not in _INPUTS:
        return None
    cos, _, positions = (found.input(place) for place in _INPUTS[found.domain])
    if positions is None or not _splits_alike(found, cos, heads):
        return None
    is_plain = not found.flag("is_packed_batching") and found.number("scale", 1.0) == 1
    return found if is_plain else None


def _splits_alike(rotation: Node, cos: Value | None, heads: int) -> bool:
    """Return whether a rotation splits (batch, steps, heads x size) into so many heads."""
    x, rotated = rotation.inputs[0], RotaryEmbedding.of(rotation).width
    if x is None or cos is None or x.shape is None or cos.shape is None or len(x.shape) != 3 or len(cos.shape) != 2:
        return False
    hidden, half = x.shape[2], cos.shape[1]
    if not isinstance(hidden, int) or not isinstance(half, int) or heads < 1 or hidden % heads:
        return False
    if rotated:
        return rotated == 2 * half and RotaryEmbedding.of(rotation).heads == heads
    return hidden == heads * 2 * half


def _how(rotation: Node | None) -> tuple[Value | None, Value | None, Value | None, int]:
    """Return cosines, sines, positions, and whether neighbours make pairs."""
    if rotation is None:
        return None, None, None, 0
    cos, sin, positions = (rotation.input(place) for place in _INPUTS[rotation.domain])
    return cos, sin, positions, int(RotaryEmbedding.of(rotation).is_interleaved)
