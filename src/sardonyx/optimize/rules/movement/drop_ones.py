"""Leave out dimensions of 1 that come and go around a Reshape.

    Reshape(Transpose(Unsqueeze(x)), shape)              ->      Reshape(Transpose(x), shape), also without the Transpose
    Squeeze(Reshape(x, Concat(a, …, 1)))                 ->      Reshape(x, Concat(a, …))

as tf2onnx writes products of tensors (Einsum).

Left alone:
    axes that are no constants, and ranks that are not known
    a shape with a 0 that copies a dimension, or that may have one: what neither is a constant, nor a Concat of constants and of
        what is computed from shapes
    a Squeeze of what are no constants of 1 in the Concat
    a reshaped value that has other users; what is before a Reshape stays for them
"""

from __future__ import annotations

import numpy as np

from sardonyx.ir import Node, Value
from sardonyx.ops.views.reshape import Squeeze, Transpose, Unsqueeze
from sardonyx.optimize.edit import small_constant
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["DROP_ONES_AFTER_RESHAPE", "DROP_ONES_BEFORE_RESHAPE"]

_SHAPE_ARITHMETIC = frozenset(
    ["Add", "Cast", "Div", "Gather", "Max", "Min", "Mul", "ReduceProd", "Shape", "Slice", "Squeeze", "Sub", "Unsqueeze"]
)


def _before_pattern(op: PatternBuilder, x: Term, shape: Term) -> Term:
    unsqueezed = op.Unsqueeze(x, op.rest("axes"), _as="unsqueeze", _shared=True)
    return op.Reshape(op.any_of(op.Transpose(unsqueezed, _as="transpose", _shared=True), unsqueezed), shape)


def _check_before(match: Match) -> str | list[int]:
    node = match.node("unsqueeze")
    axes, rank = _axes(match, node), len(node.output.shape or ())
    perm = Transpose.of(match.node("transpose")).permutation if match.has("transpose") else tuple(range(rank))
    if axes is None or perm is None:
        return "the axes or the permutation are not known"
    if _may_copy(match, match["shape"]):
        return "the shape may copy a dimension"
    kept = [axis for axis in range(len(perm)) if axis not in axes]
    return [kept.index(axis) for axis in perm if axis not in axes]


def _replace_before(op: Builder, match: Match, perm: list[int]) -> Value:
    x = match["x"] if perm == sorted(perm) else op.Transpose(match["x"], perm=perm)
    return op.Reshape(x, match["shape"], _attributes=match.root.attributes)


def _after_pattern(op: PatternBuilder, x: Term) -> Term:
    shape = op.Concat(op.rest("sizes"), axis=0, _as="shape", _shared=True)
    return op.Squeeze(op.Reshape(x, shape, _as="reshape"), op.rest("axes"))


def _check_after(match: Match) -> str | list[Value]:
    axes = _axes(match, match.root)
    sizes = [value for value in match.rest("sizes") if value is not None]
    if axes is None or any(value.shape is None or not isinstance(value.shape[0], int) for value in sizes):
        return "the axes or how many sizes there are is not known"
    if _may_copy(match, match.node("shape").output):
        return "the shape may copy a dimension"
    kept, place = [], 0
    for value in sizes:
        count = int(str((value.shape or ())[0]))
        places = set(range(place, place + count))
        place += count
        if not places & set(axes):
            kept.append(value)
        elif not places <= set(axes):
            return "some of the sizes that go are not apart from those that stay"
        else:
            array = small_constant(value, match.place.overridable)
            if array is None or not (array == 1).all():
                return "what goes is not known to be 1"
    return kept or "no size is left"


def _replace_after(op: Builder, match: Match, sizes: list[Value]) -> Value:
    shape = op.Concat(*sizes, axis=0) if len(sizes) > 1 else sizes[0]
    return op.Reshape(match["x"], shape, _attributes=match.node("reshape").attributes)


def _axes(match: Match, node: Node) -> list[int] | None:
    """Return the axes of a Squeeze or Unsqueeze in the larger of the two shapes, counted from the front.

    None where they are not known.
    """
    value = node.inputs[0] if node.op_type == "Squeeze" else node.output
    view = (Squeeze if node.op_type == "Squeeze" else Unsqueeze).of(node, match.inputs(node))
    places = None if value is None or value.shape is None else view.places(len(value.shape))
    return list(places) if isinstance(places, tuple) else None


def _may_copy(match: Match, shape: Value) -> bool:
    """Return whether a Reshape may copy a dimension, as there may be a 0 in its shape."""
    constant = small_constant(shape, match.place.overridable)
    if constant is not None:
        return bool(np.any(constant == 0))
    node = shape.producer
    if node is None or node.domain:
        return True
    if node.op_type == "Concat":
        return any(value is None or _may_copy(match, value) for value in node.inputs)
    return node.op_type not in _SHAPE_ARITHMETIC


DROP_ONES_BEFORE_RESHAPE = Rule(
    "drop_ones_before_reshape",
    _before_pattern,
    _replace_before,
    _check_before,
    summary="Remove an Unsqueeze whose dimensions of 1 a later Reshape removes.",
)
DROP_ONES_AFTER_RESHAPE = Rule(
    "drop_ones_after_reshape",
    _after_pattern,
    _replace_after,
    _check_after,
    summary="Remove a Squeeze of dimensions of 1 that the Reshape before it appends.",
)
