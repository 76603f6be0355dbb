"""Read the cosines or sines that a rotary embedding multiplies by: one for each pair, and where heads and positions lie.

    halves           Concat(angles, angles), Tile                                   (k, k + D / 2) are equal
    alternating      Reshape(w, (…, D)), w = Concat(u, u), Expand(u) or Tile(u), (…, D / 2, 1) -> (…, D / 2, 2)

Anything that is done alike to both of a pair (_STEPS) may follow, and is then done to one for each pair.

    (B, 1, S, D), or less on the left        one for all heads of (B, H, S, D)
    (B, S, 1, D), or less on the left        one for all heads of (B, S, H, D)
"""

from __future__ import annotations

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import Array
from sardonyx.ir import Node, Shape, Value
from sardonyx.ops.views.gather import Gather
from sardonyx.optimize.edit import small_constant, tensor_of
from sardonyx.optimize.rule import Builder

__all__ = ["HEADS", "TOKENS", "Angles", "heads_axis_of", "read_angles"]

HEADS, TOKENS = 1, 2
"""Where the axis of heads lies in (B, H, S, D) and in (B, S, H, D)."""

_STEPS = frozenset(["Cast", "Cos", "Gather", "Mul", "Sin", "Unsqueeze"])
"""Operators that do to both of a pair the same; Mul by one number, Gather of rows, Unsqueeze of other axes."""

_REPEATING = frozenset(["Concat", "Expand", "Tile"])

_LARGEST_TABLE = 1 << 24

_AXES_ARE_INPUTS = 13


@dataclasses.dataclass(frozen=True, slots=True)
class Angles:
    """Cosines or sines, one for each pair: `base`, and what is done to it."""

    base: Value
    """What both of a pair are made of; a constant with both."""
    steps: tuple[Node, ...] = ()
    """From `base` on, in order."""
    is_constant: bool = False
    """Whether `base` has both of each pair."""
    is_column: bool = False
    """Whether `base` has a last axis of size 1 that is too many."""

    def build(self, op: Builder, shape: Shape, heads_axis: int, *, is_alternating: bool) -> Value:
        """Return the angles as (B or 1, S, pairs), given the shape that they have in the graph."""
        value = self.base
        if self.is_constant:
            tensor = tensor_of(self.base)
            if tensor is None:
                raise ValueError(f"{self.base!r} is no constant")
            value = op.constant(np.ascontiguousarray(_both(tensor.numpy(), is_alternating=is_alternating)[0]))
        if self.is_column:
            value = op.Squeeze(value, np.array([-1]), _version=_AXES_ARE_INPUTS)
        for node in self.steps:
            value = op.node(node.op_type, value, *node.inputs[1:], _attributes=node.attributes, _version=node.version)
        if len(shape) == 4:
            return op.Squeeze(value, np.array([heads_axis]), _version=_AXES_ARE_INPUTS)
        return op.Reshape(value, [1, -1, (value.shape or shape)[-1]])


def heads_axis_of(angles: Shape | None, x: Shape) -> int | None:
    """Return HEADS or TOKENS, as angles of this shape are for x of this shape; None where they are for neither."""
    if angles is None or not 2 <= len(angles) <= 4 or len(x) != 4:
        return None
    B, first, second, _ = (1,) * (4 - len(angles)) + tuple(angles)
    if B not in (1, x[0]):
        return None
    if (first, second) == (1, x[2]):
        return HEADS
    return TOKENS if (first, second) == (x[1], 1) else None


def read_angles(value: Value, overridable: frozenset[Value], *, is_alternating: bool) -> Angles | None:
    """Return one angle for each pair, of a value with equal ones for both; None where they are not known to be equal."""
    tensor = tensor_of(value, overridable)
    if tensor is not None:
        is_known = 0 < tensor.size <= _LARGEST_TABLE and len(tensor.shape) > 0 and tensor.shape[-1] % 2 == 0
        is_equal = is_known and np.array_equal(*_both(tensor.numpy(), is_alternating=is_alternating))
        return Angles(value, is_constant=True) if is_equal else None
    node = value.producer
    if node is None or node.domain or value.shape is None or not node.inputs or node.inputs[0] is None:
        return None
    doubled = _pair_of(node) if is_alternating else _half_of(node)
    if doubled is not None:
        return Angles(doubled, is_column=is_alternating)
    if node.op_type not in _STEPS or not _keeps_pairs(node, overridable):
        return None
    before = read_angles(node.inputs[0], overridable, is_alternating=is_alternating)
    return None if before is None else dataclasses.replace(before, steps=(*before.steps, node))


def _both(array: Array, *, is_alternating: bool) -> tuple[Array, Array]:
    """Return the first and the second elements of all pairs."""
    if is_alternating:
        return array[..., 0::2], array[..., 1::2]
    half = array.shape[-1] // 2
    return array[..., :half], array[..., half:]


def _half_of(node: Node) -> Value | None:
    """Return the value that a node gives twice along the last axis, one after the other."""
    source, result = node.inputs[0], node.output.shape
    if node.op_type not in ("Concat", "Tile") or source is None or source.shape is None or result is None:
        return None
    half = source.shape[-1]
    return source if isinstance(half, int) and result == (*source.shape[:-1], 2 * half) and _repeats(node) else None


def _pair_of(node: Node) -> Value | None:
    """Return the value, (…, n, 1), of which a node gives each element twice, (…, 2n)."""
    pairs, result = node.inputs[0], node.output.shape
    if node.op_type != "Reshape" or pairs is None or pairs.shape is None or pairs.producer is None or result is None:
        return None
    *outer, n, two = pairs.shape
    source = pairs.producer.inputs[0]
    if two != 2 or not isinstance(n, int) or result != (*outer, 2 * n) or source is None or source.shape != (*outer, n, 1):
        return None
    return source if _repeats(pairs.producer) else None


def _repeats(node: Node) -> bool:
    """Return whether a node, whose last axis alone is longer than that of its first input, repeats this."""
    is_repeating = node.op_type in _REPEATING and not node.domain
    return is_repeating and (node.op_type != "Concat" or all(value is node.inputs[0] for value in node.inputs))


def _keeps_pairs(node: Node, overridable: frozenset[Value]) -> bool:
    value, result = node.inputs[0], node.output
    if value is None or value.shape is None or result.shape is None:
        return False
    if node.op_type == "Mul":
        factor = small_constant(node.inputs[1], overridable, max_elements=1)
        return factor is not None and factor.size == 1 and value.shape == result.shape
    if node.op_type == "Gather":
        return len(value.shape) == 2 and Gather.of(node).axis == 0
    return node.op_type != "Unsqueeze" or value.shape[-1] == result.shape[-1]
