"""Remove nodes that give back their input."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.ir import Graph, Model, Node, Shape, Value
from sardonyx.ir.walk import nested_graphs
from sardonyx.ops.views.cast import Cast
from sardonyx.ops.views.inputs import Inputs, constants
from sardonyx.ops.views.random import Dropout
from sardonyx.ops.views.reshape import Tile, Transpose
from sardonyx.ops.views.slice import Concat, Pad
from sardonyx.optimize.contract import Context, Pass
from sardonyx.optimize.edit import overridable_values, remove_dead, replace_value, small_constant

__all__ = ["ELIMINATE_IDENTITIES"]


_PATTERNS = frozenset("And Concat Expand Flatten Or Reshape Squeeze Unsqueeze".split())
"""Operators that other tools look for in a model of level BASIC, also where they change nothing."""
_BEYOND_ANY_END = 1_000_000_000
"""No axis is that long."""


class _EliminateIdentities:
    """Replace the output of a node that changes nothing by its input.

        Identity; Dropout in inference; Sum, Max, Min, Mean of one input; Concat of one that is not empty; Split into one part
        Cast, CastLike to the type that the input has
        Transpose with perm 0, 1, 2 …
        Reshape, Expand, Flatten, Squeeze, Unsqueeze, Tile, Slice with step 1, Pad: where the output has the input's shape
        Slice with step 1 from 0 to 1000000000 or more, as tf2onnx writes the end of an axis
        x + 0, x - 0, x * 1, x / 1, x ** 1, x and true, x or false: where the output has the type and shape of x
        f(f(x)) for Relu, Abs, Ceil, Floor, Round, Sign     ->  f(x)
        f(f(x)) for Not, Neg, BitwiseNot                    ->  x

    Adding 0.0 turns -0.0 into 0.0; without the Add it stays -0.0, which compares equal.

    Left alone: where level BASIC is all that is asked for, And, Or, Concat and what changes shapes, as onnxruntime leaves them
    there and tools look for them; a node whose output a graph gives out, unless its input is made in the same graph and not given
    out itself, because the name could not be kept; Dropout whose mask is used or that may train; shapes of which a dimension is
    not known to be the same; a constant that makes the rank larger.

    Holds before: shapes inferred, as the cases that depend on shapes look at `Value.type`. Cost: O(nodes).
    """

    name = "eliminate_identities"
    aliases = (
        "CastElimination",
        "EliminateDropout",
        "EliminateIdentity",
        "EliminateSlice",
        "ExpandElimination",
        "NoopElimination",
    )

    def run(self, model: Model, context: Context) -> bool:
        """Remove; whether any was."""
        look = _Look(overridable_values(model), _PATTERNS if context.keeps_patterns else frozenset())
        changed = False
        for graph in nested_graphs(model.graph):
            changed |= look.clean(graph)
        return changed


ELIMINATE_IDENTITIES: Pass = _EliminateIdentities()


class _Look:
    """One run: what counts as a constant."""

    def __init__(self, overridable: frozenset[Value], kept: frozenset[str]) -> None:
        self._overridable, self._kept = overridable, kept

    def clean(self, graph: Graph) -> bool:
        changed = False
        for node in graph:
            find = None if node.domain or node.op_type in self._kept else _CASES.get(node.op_type)
            kept = None if find is None else find(self, node)
            if kept is None or not any(value.use_count for value in node.outputs):
                continue
            if any(value.use_count for value in node.outputs[1:]) or not replace_value(node.outputs[0], kept):
                continue
            remove_dead([node])
            changed = True
        return changed

    def constant(self, value: Value | None) -> Array | None:
        return small_constant(value, self._overridable)

    def inputs(self, node: Node) -> Inputs:
        return constants(node, self._overridable)

    def is_constant(self, value: Value | None, wanted: float) -> bool:
        array = self.constant(value)
        return array is not None and array.dtype.kind not in "OUSc" and bool((array.astype(np.float64) == wanted).all())


def _input(look: _Look, node: Node) -> Value | None:
    return node.inputs[0] if node.inputs else None


def _only_input(look: _Look, node: Node) -> Value | None:
    return node.inputs[0] if len(node.inputs) == 1 else None


def _only_full_input(look: _Look, node: Node) -> Value | None:
    """Return the one input of a Concat that is not known to be empty along its axis."""
    axis = Concat.of(node).axis
    full = [value for value in node.inputs if value is None or not value.shape or value.shape[axis] != 0]
    return full[0] if len(full) == 1 else None


def _dropout(look: _Look, node: Node) -> Value | None:
    return node.inputs[0] if Dropout.of(node, look.inputs(node)).is_training is False else None


def _split(look: _Look, node: Node) -> Value | None:
    return node.inputs[0] if len(node.outputs) == 1 and _same_shape(node) else None


def _cast(look: _Look, node: Node) -> Value | None:
    value = node.inputs[0]
    return value if value is not None and value.dtype is not None and value.dtype is Cast.of(node).target else None


def _cast_like(look: _Look, node: Node) -> Value | None:
    value, like = node.inputs[:2]
    return value if value is not None and like is not None and value.dtype is not None and value.dtype is like.dtype else None


def _transpose(look: _Look, node: Node) -> Value | None:
    perm = Transpose.of(node).permutation
    value = node.inputs[0]
    if perm is None:
        return value if value is not None and value.shape is not None and len(value.shape) < 2 else None
    return value if list(perm) == list(range(len(perm))) else None


def _reshaped(look: _Look, node: Node) -> Value | None:
    return node.inputs[0] if _same_shape(node) else None


def _tile(look: _Look, node: Node) -> Value | None:
    return node.inputs[0] if look.is_constant(node.input(1), 1) else None if Tile.of(node).is_by_axis else _reshaped(look, node)


def _slice(look: _Look, node: Node) -> Value | None:
    steps = node.input(4)
    is_all = _same_shape(node) or (look.is_constant(node.input(1), 0) and _are_ends(look.constant(node.input(2))))
    return node.inputs[0] if is_all and (steps is None or look.is_constant(steps, 1)) else None


def _are_ends(ends: Array | None) -> bool:
    return ends is not None and bool((ends >= _BEYOND_ANY_END).all())


def _pad(look: _Look, node: Node) -> Value | None:
    pads = Pad.of(node, look.inputs(node)).pads
    return node.inputs[0] if isinstance(pads, tuple) and not any(pads) else None


def _same_shape(node: Node) -> bool:
    value = node.inputs[0]
    return value is not None and value.shape is not None and _equal(value.shape, node.outputs[0].shape)


def _equal(left: Shape, right: Shape | None) -> bool:
    return right is not None and left == right


def _neutral(wanted: float, *, both: bool) -> Callable[[_Look, Node], Value | None]:
    """Return the case of a binary operator with a neutral element on the right, or on either side."""

    def find(look: _Look, node: Node) -> Value | None:
        if len(node.inputs) != 2 or "broadcast" in node.attributes:
            return None
        left, right = node.inputs
        for value, other in ((left, right), (right, left)) if both else ((left, right),):
            if value is None or value.dtype is None or value.shape is None or not look.is_constant(other, wanted):
                continue
            if value.dtype is node.output.dtype and _equal(value.shape, node.output.shape):
                return value
        return None

    return find


def _idempotent(look: _Look, node: Node) -> Value | None:
    value = node.inputs[0]
    return value if _is_made_by_same(node, value) else None


def _involution(look: _Look, node: Node) -> Value | None:
    value = node.inputs[0]
    if value is None or value.producer is None or not _is_made_by_same(node, value):
        return None
    return value.producer.inputs[0]


def _is_made_by_same(node: Node, value: Value | None) -> bool:
    inner = None if value is None else value.producer
    return inner is not None and (inner.domain, inner.op_type) == (node.domain, node.op_type)


_CASES: dict[str, Callable[[_Look, Node], Value | None]] = {
    "Abs": _idempotent,
    "Add": _neutral(0, both=True),
    "And": _neutral(1, both=True),
    "BitwiseNot": _involution,
    "Cast": _cast,
    "CastLike": _cast_like,
    "Ceil": _idempotent,
    "Concat": _only_full_input,
    "Div": _neutral(1, both=False),
    "Dropout": _dropout,
    "Expand": _reshaped,
    "Flatten": _reshaped,
    "Floor": _idempotent,
    "Identity": _input,
    "Max": _only_input,
    "Mean": _only_input,
    "Min": _only_input,
    "Mul": _neutral(1, both=True),
    "Neg": _involution,
    "Not": _involution,
    "Or": _neutral(0, both=True),
    "Pad": _pad,
    "Pow": _neutral(1, both=False),
    "Relu": _idempotent,
    "Reshape": _reshaped,
    "Round": _idempotent,
    "Sign": _idempotent,
    "Slice": _slice,
    "Split": _split,
    "Squeeze": _reshaped,
    "Sub": _neutral(0, both=False),
    "Sum": _only_input,
    "Tile": _tile,
    "Transpose": _transpose,
    "Unsqueeze": _reshaped,
}
