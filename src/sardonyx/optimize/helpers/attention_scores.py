"""Read the argument of a softmax as the scores of attention: the product of queries and keys, a scale, masks.

    q kᵀ             Mul or Div by a number, before or after the product, or after what is added; Mul by a number for each head
    softcap          Mul(Tanh(Div(scores, c)), c)
    + mask           Add or Sub of any tensor, or Where(condition, scores, fill) and Where(condition, fill, scores), any number of
                     them, and Max with a number, which keeps them from -inf

Reshapes that split (batch x heads, S, T) to (batch, heads, S, T), or (batch x windows, heads, S, T) to (batch, windows, heads,
S, T), or join them again may stand between.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.ir import Node, Shape, Value
from sardonyx.ir.shape import product
from sardonyx.optimize.bounds import bounds_of
from sardonyx.optimize.edit import small_constant, tensor_of

__all__ = ["Added", "Filling", "Floor", "Part", "Scores", "joined", "read_scores", "scale_of", "transposed"]


@dataclasses.dataclass(frozen=True, slots=True)
class Added:
    """A tensor that is added to the scores."""

    value: Value
    """What is added."""
    rank: int
    """How many dimensions the scores have where they meet it."""
    factor: float = 1.0
    """By what it is multiplied."""
    is_transposed: bool = False
    """Whether it meets scores of (…, T, S)."""


@dataclasses.dataclass(frozen=True, slots=True)
class Filling:
    """Scores that are replaced by a number."""

    condition: Value
    """Where, or with `inverted` where not."""
    rank: int
    """How many dimensions the scores have where they meet it."""
    fill: float
    """By what."""
    inverted: bool
    """Whether the scores stay where the condition holds."""
    is_transposed: bool = False
    """Whether it meets scores of (…, T, S)."""


@dataclasses.dataclass(frozen=True, slots=True)
class Floor:
    """Scores that are raised to a number where they are below it."""

    number: float
    """To what."""


Part: TypeAlias = Added | Filling | Floor
"""A step of a mask."""


@dataclasses.dataclass(frozen=True, slots=True)
class Scores:
    """scale * query @ keys, capped, then masked."""

    query: Value
    """(…, S, D)."""
    keys: Value
    """(…, D, T)."""
    scale: float = 1.0
    """What the product is multiplied by."""
    softcap: float = 0.0
    """Where positive: scores become softcap * tanh(scores / softcap) before the mask."""
    head_scale: Value | None = None
    """A constant of one number for each head, (heads, 1, 1), by which the product is multiplied too."""
    parts: tuple[Part, ...] = ()
    """What the mask does, in order."""


def read_scores(value: Value, overridable: frozenset[Value]) -> Scores | None:
    """Return the scores that `value` holds, or None where it holds anything else, or a value between has other users."""
    node = value.producer
    if node is None or node.domain or value.use_count != 1 or value.shape is None:
        return None
    read = _READERS.get(node.op_type)
    return None if read is None else read(node, value, overridable)


def transposed(scores: Scores) -> Scores:
    """Return the same where they are (…, T, S): what is read as the query are the keys, and the other way round."""
    parts = tuple(part if isinstance(part, Floor) else dataclasses.replace(part, is_transposed=True) for part in scores.parts)
    return dataclasses.replace(scores, query=scores.keys, keys=scores.query, parts=parts)


def joined(left: Shape | None, right: Shape | None) -> bool:
    """Return whether one shape is the other with its first two dimensions, batch and heads, as one."""
    if left is None or right is None or {len(left), len(right)} != {3, 4}:
        return False
    three, four = sorted((left, right), key=len)
    return three == (product(four[:2]), *four[2:])


def scale_of(value: Value, overridable: frozenset[Value]) -> tuple[Value, float]:
    """Return what `value` multiplies by a number, and the number; itself and 1 where it is no such product."""
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


def _read_product(node: Node, value: Value, overridable: frozenset[Value]) -> Scores | None:
    query, keys = node.inputs
    return None if query is None or keys is None else Scores(query, keys)


def _read_reshaped(node: Node, value: Value, overridable: frozenset[Value]) -> Scores | None:
    base = node.inputs[0]
    if base is None or not (joined(base.shape, value.shape) or _windowed(base.shape, value.shape)):
        return None
    return read_scores(base, overridable)


def _windowed(left: Shape | None, right: Shape | None) -> bool:
    """Return whether one shape is the other with its first two dimensions, batch and windows, as one."""
    if left is None or right is None or {len(left), len(right)} != {4, 5}:
        return False
    four, five = sorted((left, right), key=len)
    return four == (product(five[:2]), *five[2:])


def _read_scaled(node: Node, value: Value, overridable: frozenset[Value]) -> Scores | None:
    base, factor = scale_of(value, overridable)
    if base is value:
        return _read_scaled_heads(node, value, overridable)
    if _is_tanh(base):
        return _read_capped(base, factor, overridable)
    scores = read_scores(base, overridable)
    if scores is None or scores.softcap or (scores.parts and factor < 0):
        return None
    parts = tuple(_times(part, factor) for part in scores.parts)
    return dataclasses.replace(scores, scale=scores.scale * factor, parts=parts)


def _read_scaled_heads(node: Node, value: Value, overridable: frozenset[Value]) -> Scores | None:
    if node.op_type != "Mul" or value.shape is None or len(value.shape) != 4:
        return None
    for base, factors in (node.inputs, node.inputs[::-1]):
        tensor = tensor_of(factors, overridable)
        if tensor is None or tensor.shape[-3:] != (value.shape[1], 1, 1) or base is None or base.shape != value.shape:
            continue
        scores = read_scores(base, overridable)
        if scores is not None and not scores.parts and not scores.softcap and scores.head_scale is None:
            return dataclasses.replace(scores, head_scale=factors)
    return None


def _times(part: Part, factor: float) -> Part:
    if isinstance(part, Added):
        return dataclasses.replace(part, factor=part.factor * factor)
    if isinstance(part, Filling):
        return dataclasses.replace(part, fill=part.fill * factor)
    return Floor(part.number * factor)


def _is_tanh(value: Value) -> bool:
    node = value.producer
    return node is not None and node.op_type == "Tanh" and not node.domain


def _read_capped(value: Value, cap: float, overridable: frozenset[Value]) -> Scores | None:
    """Return `value`, a Tanh, times `cap`."""
    inner = None if value.producer is None or value.use_count != 1 else value.producer.inputs[0]
    scores = None if inner is None or cap <= 0 else read_scores(inner, overridable)
    if scores is None or scores.parts or scores.softcap:
        return None
    return dataclasses.replace(scores, scale=scores.scale * cap, softcap=cap)


def _read_added(node: Node, value: Value, overridable: frozenset[Value]) -> Scores | None:
    for base, mask in (node.inputs, node.inputs[::-1]):
        scores = None if base is None or not _keeps(base.shape, value.shape) else read_scores(base, overridable)
        if scores is not None and mask is not None:
            return dataclasses.replace(scores, parts=(*scores.parts, Added(mask, len(value.shape or ()))))
    return None


def _read_subtracted(node: Node, value: Value, overridable: frozenset[Value]) -> Scores | None:
    base, mask = node.inputs
    scores = None if base is None or not _keeps(base.shape, value.shape) else read_scores(base, overridable)
    if scores is None or mask is None:
        return None
    return dataclasses.replace(scores, parts=(*scores.parts, Added(mask, len(value.shape or ()), -1.0)))


def _read_filled(node: Node, value: Value, overridable: frozenset[Value]) -> Scores | None:
    condition, rank = node.inputs[0], len(value.shape or ())
    for index in (1, 2):
        base, (low, high) = node.inputs[index], bounds_of(node.inputs[3 - index], overridable)
        if base is None or condition is None or low != high or not _keeps(base.shape, value.shape):
            continue
        scores = read_scores(base, overridable)
        if scores is not None:
            filling = Filling(condition, rank, low, inverted=index == 1)
            return dataclasses.replace(scores, parts=(*scores.parts, filling))
    return None


def _read_raised(node: Node, value: Value, overridable: frozenset[Value]) -> Scores | None:
    if len(node.inputs) != 2:
        return None
    for base, least in (node.inputs, node.inputs[::-1]):
        number = _number(least, overridable)
        scores = None if number is None or base is None or base.shape != value.shape else read_scores(base, overridable)
        if scores is not None and number is not None:
            return dataclasses.replace(scores, parts=(*scores.parts, Floor(number)))
    return None


def _keeps(base: Shape | None, result: Shape | None) -> bool:
    """Return whether a mask leaves scores of shape `base` their size.

    Sizes that only a run shows are those of the scores, whatever is known of the mask: it has as many, or one for all. How many
    keys there are the product with the values decides.
    """
    if base is None or result is None or len(base) != len(result):
        return False
    *outer, keys = zip(base, result, strict=True)
    is_kept = all(dim == wanted or not isinstance(dim, int) for dim, wanted in outer)
    return is_kept and (keys[0] == keys[1] or not (isinstance(keys[0], int) and isinstance(keys[1], int)))


_Reader: TypeAlias = Callable[[Node, Value, frozenset[Value]], "Scores | None"]

_READERS: Mapping[str, _Reader] = {
    "Add": _read_added,
    "Div": _read_scaled,
    "MatMul": _read_product,
    "Max": _read_raised,
    "Mul": _read_scaled,
    "Reshape": _read_reshaped,
    "Sub": _read_subtracted,
    "Where": _read_filled,
}
"""By the operator that makes a value, how it is read."""
