"""Normalize queries and keys where attention reads them."""

from __future__ import annotations

from sardonyx.ir import Attribute, Model, Node, Value
from sardonyx.ir.walk import nested_graphs
from sardonyx.ops.views.attention import MicrosoftAttention
from sardonyx.ops.views.normalize import LayerNormalization
from sardonyx.optimize.contract import Context, Pass
from sardonyx.optimize.edit import are_placed_apart, remove_dead
from sardonyx.optimize.target import microsoft

__all__ = ["FUSE_QUERY_NORM"]

_SCALES = 14
"""The input of GroupQueryAttention that is the scale of queries; that of keys is behind it."""
_NORMALIZATIONS = ("RMSNormalization", "SimplifiedLayerNormalization")
_EPSILON = 1e-5
"""That of a normalization without one."""


class _FuseQueryNorm:
    """Let GroupQueryAttention normalize each head of queries and keys.

        q = Reshape(RMSNormalization(Reshape(x, [0, 0, heads, size]), a), [0, 0, -1])
        k = Reshape(RMSNormalization(Reshape(z, [0, 0, heads, size]), b), [0, 0, -1])
        y, … = GroupQueryAttention(q, k, v, …) {do_rotary = 1}

        ->      y, … = GroupQueryAttention(x, z, v, …, a, b) {do_rotary = 1, qk_norm_epsilon}

    Only for providers that prefer GroupQueryAttention.

    Left alone: attention that does not rotate, normalizes already, or reads queries, keys and values packed; normalizations of
    other groups than heads, of two epsilons, that have other readers, or whose statistics are used.

    Holds before: shapes inferred. Cost: O(nodes).
    """

    name = "fuse_query_norm"
    makes = microsoft("GroupQueryAttention")
    not_saved = "onnxruntime makes this form for CUDA and WebGPU only"
    aliases = ("GroupQueryAttentionPreNormFusion",)

    def run(self, model: Model, context: Context) -> bool:
        """Fuse; whether any was."""
        changed = False
        for graph in nested_graphs(model.graph):
            for node in [node for node in graph if node.op_type == "GroupQueryAttention" and node.domain == "com.microsoft"]:
                changed |= _fuse(node)
        return changed


FUSE_QUERY_NORM: Pass = _FuseQueryNorm()


def _fuse(node: Node) -> bool:
    if not node.flag("do_rotary") or node.input(_SCALES) or node.input(_SCALES + 1):
        return False
    heads = (view := MicrosoftAttention.of(node)).heads, view.key_heads
    chains = [_chain(node, index, count) for index, count in enumerate(heads)]
    queries, keys = chains
    if queries is None or keys is None or _epsilon(queries[1]) != _epsilon(keys[1]) or are_placed_apart([node, *queries, *keys]):
        return False
    inputs = [*node.inputs, *[None] * (_SCALES + 2 - len(node.inputs))]
    for index, (_, norm, inner) in enumerate((queries, keys)):
        inputs[index], inputs[_SCALES + index] = inner.inputs[0], norm.inputs[1]
    node.set_inputs(inputs)
    node.attributes["qk_norm_epsilon"] = Attribute.of(_epsilon(queries[1]))
    remove_dead([queries[0], keys[0]])
    return True


def _chain(node: Node, index: int, heads: int) -> tuple[Node, Node, Node] | None:
    """Return the Reshape, the normalization and the Reshape that make an input of attention, the last first."""
    value = node.input(index)
    outer = _own(node, value, ("Reshape",))
    norm = None if outer is None else _own(node, outer.inputs[0], _NORMALIZATIONS)
    inner = None if norm is None else _own(node, norm.inputs[0], ("Reshape",))
    if value is None or outer is None or norm is None or inner is None or not _is_by_head(value, norm, inner, heads):
        return None
    return outer, norm, inner


def _own(node: Node, value: Value | None, operators: tuple[str, ...]) -> Node | None:
    """Return what makes a value of one reader, where it is one of these operators of ai.onnx in the graph of `node`."""
    found = None if value is None or value.use_count != 1 or value.index else value.producer
    return found if found is not None and found.op_type in operators and not found.domain and found.graph is node.graph else None


def _is_by_head(value: Value, norm: Node, inner: Node, heads: int) -> bool:
    """Return whether a normalization goes over the elements of each head of (batch, steps, heads x size)."""
    x, grouped, scale = inner.inputs[0], inner.output, norm.inputs[1]
    if x is None or scale is None or x.shape is None or x.shape != value.shape or len(x.shape) != 3 or not grouped.shape:
        return False
    size, rank = grouped.shape[-1], len(grouped.shape)
    if not isinstance(size, int) or x.shape[2] != heads * size or scale.shape != (size,) or scale.dtype is not x.dtype:
        return False
    view = LayerNormalization.of(norm)
    is_last = view.axis in (-1, rank - 1) and view.stashes_float
    return is_last and not any(output.use_count for output in norm.outputs[1:])


def _epsilon(norm: Node) -> float:
    return LayerNormalization.of(norm).epsilon
