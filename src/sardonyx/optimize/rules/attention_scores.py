"""Read the argument of a softmax as the scores of attention: the product of queries and keys, a scale, a mask.

    q kᵀ             Mul or Div by a number, before or after the product
    + mask           Add of any tensor, or Where(condition, scores, fill) and Where(condition, fill, scores)

Reshapes that split (batch x heads, S, T) to (batch, heads, S, T) or join them again may stand between.
"""

from __future__ import annotations

import dataclasses
import math

from sardonyx.ir import Node, Shape, Value
from sardonyx.ir.shape import product
from sardonyx.optimize.bounds import bounds_of
from sardonyx.optimize.edit import small_constant

__all__ = ["Filling", "Scores", "joined", "read_scores", "scale_of"]


@dataclasses.dataclass(frozen=True, slots=True)
class Filling:
    """Scores that are replaced by a number."""

    condition: Value
    """Where, or with `inverted` where not."""
    fill: float
    """By what."""
    inverted: bool
    """Whether the scores stay where the condition holds."""


@dataclasses.dataclass(frozen=True, slots=True)
class Scores:
    """scale * query @ keys + mask."""

    query: Value
    """(…, S, D)."""
    keys: Value
    """(…, D, T)."""
    scale: float = 1.0
    """What the product is multiplied by."""
    mask: Value | Filling | None = None
    """What is added, or what takes the place of scores."""
    mask_rank: int = 0
    """How many dimensions the scores have where they meet the mask."""


def read_scores(value: Value, overridable: frozenset[Value]) -> Scores | None:
    """The scores that `value` holds, or None where it holds anything else, or a value between has other users."""
    node = value.producer
    if node is None or node.domain or value.use_count != 1 or value.shape is None:
        return None
    if node.op_type == "MatMul":
        query, keys = node.inputs
        return None if query is None or keys is None else Scores(query, keys)
    if node.op_type in ("Mul", "Div"):
        return _read_scaled(node, value, overridable)
    if node.op_type == "Add":
        return _read_added(node, value, overridable)
    if node.op_type == "Where":
        return _read_filled(node, value, overridable)
    if node.op_type == "Reshape" and node.inputs[0] is not None:
        return read_scores(node.inputs[0], overridable) if joined(node.inputs[0].shape, value.shape) else None
    return None


def joined(left: Shape | None, right: Shape | None) -> bool:
    """Whether one shape is the other with its first two dimensions, batch and heads, as one."""
    if left is None or right is None or {len(left), len(right)} != {3, 4}:
        return False
    three, four = sorted((left, right), key=len)
    return three == (product(four[:2]), *four[2:])


def scale_of(value: Value, overridable: frozenset[Value]) -> tuple[Value, float]:
    """What `value` multiplies by a number, and the number; itself and 1 where it is no such product."""
    node = value.producer
    if node is None or node.domain or node.op_type not in ("Mul", "Div"):
        return value, 1.0
    for index in (1, 0) if node.op_type == "Mul" else (1,):
        base, number = node.inputs[1 - index], _number(node.inputs[index], overridable)
        if base is not None and number is not None and base.shape == value.shape is not None:
            return base, number if node.op_type == "Mul" else 1.0 / number
    return value, 1.0


def _number(value: Value | None, overridable: frozenset[Value]) -> float | None:
    array = small_constant(value, overridable, max_elements=1)
    if array is None or array.size != 1:
        return None
    number = float(array.reshape(()))
    return number if math.isfinite(number) and number != 0 else None


def _read_scaled(node: Node, value: Value, overridable: frozenset[Value]) -> Scores | None:
    base, factor = scale_of(value, overridable)
    scores = None if base is value else read_scores(base, overridable)
    if scores is None or scores.mask is not None:
        return None
    return dataclasses.replace(scores, scale=scores.scale * factor)


def _read_added(node: Node, value: Value, overridable: frozenset[Value]) -> Scores | None:
    for base, mask in (node.inputs, node.inputs[::-1]):
        scores = None if base is None or base.shape != value.shape else read_scores(base, overridable)
        if scores is not None and scores.mask is None and mask is not None:
            return dataclasses.replace(scores, mask=mask, mask_rank=len(value.shape or ()))
    return None


def _read_filled(node: Node, value: Value, overridable: frozenset[Value]) -> Scores | None:
    condition = node.inputs[0]
    for index in (1, 2):
        base, (low, high) = node.inputs[index], bounds_of(node.inputs[3 - index], overridable)
        scores = None if base is None or base.shape != value.shape or low != high else read_scores(base, overridable)
        if scores is not None and scores.mask is None and condition is not None:
            mask = Filling(condition, low, inverted=index == 1)
            return dataclasses.replace(scores, mask=mask, mask_rank=len(value.shape or ()))
    return None
