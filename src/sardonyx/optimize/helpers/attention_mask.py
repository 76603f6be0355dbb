"""The mask of attention that is written out, as the operator takes it: one tensor that is added, or one of truth values.

    scores + a + b                           a + b
    Where(c, fill, scores) + a               Where(c, fill, 0) + a
    Max(scores + a, least)                   Max(a, least)
    Where(c, scores, -inf)                   c

Scores that are (batch x windows, heads, S, T), and (batch, windows, heads, S, T) where they meet masks of their window, have the
windows as more heads: the mask is (1, windows x heads, S, T), whatever the batch.

A query that sees no key, whose row holds nothing but -inf, gives NaN written out and zeros by Attention. Where such rows may be and
no guard turns them to zeros, they become NaN in the mask. Position biases that are products of queries are finite, as scores are.
"""

from __future__ import annotations

import math

import numpy as np

from sardonyx.dtypes import Array, DataType
from sardonyx.ir import Dim, Shape, Value
from sardonyx.ir.shape import product
from sardonyx.ops.views.attention import MicrosoftAttention
from sardonyx.optimize.bounds import bounds_of
from sardonyx.optimize.helpers.attention_scores import Added, Filling, Floor, Part, Scores
from sardonyx.optimize.match import Match
from sardonyx.optimize.rule import Builder

__all__ = [
    "added_reason",
    "added_to_scores",
    "keys_before",
    "mask_inputs",
    "mask_reason",
    "may_hide_all",
    "seen_as_added",
    "windows_of",
]

_LEAST_FILL = 1e37
"""From here on a score of any size but for this disappears when it is added."""

_LOWEST = float(np.finfo(np.float32).min)

_PRODUCTS = frozenset(["Conv", "Einsum", "Gemm", "MatMul"])
_MOVES = frozenset(["Expand", "Gather", "Identity", "Pad", "Reshape", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze"])
_ARITHMETIC = frozenset(["Add", "Mul", "Sub"])

_AXES_ARE_INPUTS = 18
"""Of ReduceMax."""

_UNSQUEEZE_AXES_ARE_INPUTS = 13
"""And of Squeeze."""

_SHAPE_HAS_START = 15

_RANK_OF_PAIRS = 3
"""Of (B, S, T), which says for each query what it sees."""

_RANK_WITH_WINDOWS = 5
"""Of (batch, windows, heads, S, T)."""


def windows_of(scores: Scores) -> int:
    """Return how many windows masks tell apart; 0 where they do not."""
    shapes = [_shape_of(part) for part in scores.parts if not isinstance(part, Floor) and part.rank == _RANK_WITH_WINDOWS]
    sizes = [shape[1] for shape in shapes if shape is not None and len(shape) == _RANK_WITH_WINDOWS]
    return max((size for size in sizes if isinstance(size, int)), default=0)


def _operand(part: Added | Filling) -> Value:
    return part.value if isinstance(part, Added) else part.condition


def _shape_of(part: Added | Filling) -> Shape | None:
    """Return the shape of the operand as it meets scores of (…, S, T); None where it is unknown or cannot be transposed."""
    shape = _operand(part).shape
    if not part.is_transposed or shape is None:
        return shape
    return (*shape[:-2], shape[-1], shape[-2]) if len(shape) > 1 else None


def mask_reason(scores: Scores, shape: Shape, is_split: bool) -> str | None:
    """Return why the mask of scores of this shape, (B, H, S, T) or (B x H, S, T), is none for Attention; None where it is."""
    windows = windows_of(scores)
    if windows != 0 and not all(isinstance(dim, int) for dim in shape[1:]):
        return f"the windows' scores are {shape}, expected known sizes"
    for part in scores.parts:
        reason = _added_reason(part, shape, is_split, windows)
        if reason is not None:
            return reason
    return None


def _added_reason(part: Part, shape: Shape, is_split: bool, windows: int) -> str | None:
    if not isinstance(part, Floor):
        found, wanted = _shape_of(part), (1, *shape[1:]) if windows else shape
        if part.rank == _RANK_WITH_WINDOWS:
            has_rank = windows != 0 and found is not None and len(found) == part.rank
            is_mask = has_rank and _broadcasts(found or (), (1, windows, *shape[1:]))
        else:
            is_mask = _fits(found, part.rank, wanted, is_split)
        if not is_mask:
            return (
                f"the mask is {_operand(part).shape}; expected one that goes along all keys, and that does not make the scores "
                "larger"
            )
    number = -math.inf if isinstance(part, Added) else part.fill if isinstance(part, Filling) else part.number
    if number > -_LEAST_FILL:
        return f"scores are replaced by {number}; expected -inf, or a number of at least -{_LEAST_FILL}"
    return None


def _fits(found: Shape | None, rank: int, scores: Shape, is_split: bool) -> bool:
    """Return whether a mask that meets scores of `rank` dimensions is one for scores of this shape."""
    if not found or len(found) > rank or (rank == 4 and not is_split):
        return False
    wanted: tuple[Dim, ...] = (1, *scores[2:]) if rank == 3 and is_split else scores
    if rank == 3 and is_split and len(found) == 3 and found[0] == product(scores[:2]):
        wanted = (found[0], *scores[2:])
    return not (found[-1] == 1 != wanted[-1]) and _broadcasts(found, wanted)


def _broadcasts(found: Shape, wanted: Shape) -> bool:
    """Return whether a mask has the size of the scores, 1, or one that only a run shows along each dimension.

    Their sum has their size.
    """
    return all(dim in (1, want) or not isinstance(dim, int) for dim, want in zip(found[::-1], wanted[::-1], strict=False))


def may_hide_all(scores: Scores, overridable: frozenset[Value]) -> bool:
    """Return whether the mask may hold -inf; products are taken to be finite, as the scores are."""
    least = 0.0
    for part in scores.parts:
        if isinstance(part, Added):
            bounds = (bound * part.factor for bound in bounds_of(part.value, overridable))
            least += 0.0 if _is_product(part.value, overridable) else min(bounds)
        elif isinstance(part, Filling):
            least = min(least, part.fill)
        else:
            least = max(least, part.number)
        least = least if least >= _LOWEST else -math.inf
    return least == -math.inf


def _is_product(value: Value | None, overridable: frozenset[Value], depth: int = 12) -> bool:
    """Return whether a value is made of products, moved, scaled and added to what is bounded."""
    node = None if value is None else value.producer
    if node is None or node.domain or depth == 0:
        return False
    if node.op_type in _MOVES:
        return _is_product(node.inputs[0], overridable, depth - 1)
    if node.op_type not in _ARITHMETIC:
        return node.op_type in _PRODUCTS
    others = [operand for operand in node.inputs if not _is_product(operand, overridable, depth - 1)]
    bounds = [bound for operand in others for bound in bounds_of(operand, overridable)]
    return len(others) < len(node.inputs) and all(math.isfinite(bound) for bound in bounds)


def mask_inputs(op: Builder, scores: Scores, *, hides_all: bool, heads: int = 0) -> list[Value]:
    """Return the mask as Attention takes it, nothing where there is none.

    Args:
        op: builds it.
        scores: what it masks.
        hides_all: whether rows of nothing but -inf may be, and must become NaN.
        heads: how many heads there are; 0 where batch and heads are one dimension.
    """
    windows = windows_of(scores)
    first = scores.parts[0] if len(scores.parts) == 1 else None
    if isinstance(first, Filling) and first.fill == -math.inf and not hides_all and not windows:
        return [first.condition if first.inverted else op.Not(first.condition)]
    mask: Value | None = None
    for part in scores.parts:
        mask = _after(op, part, mask, heads, lifts=windows != 0)
    if mask is None:
        return []
    if windows != 0:
        *_, S, T = mask.shape or ()
        mask = op.Reshape(op.Expand(mask, [1, windows, heads, 1, 1]), [1, windows * heads, int(str(S)), int(str(T))])
    return [_hides_all_as_nan(op, mask) if hides_all else mask]


def _hides_all_as_nan(op: Builder, mask: Value) -> Value:
    """Return a mask whose rows of nothing but -inf, which hide all keys, are NaN."""
    is_hidden = op.Equal(op.ReduceMax(mask, [-1], _version=_AXES_ARE_INPUTS), _number(-math.inf, mask))
    return op.Where(is_hidden, _number(math.nan, mask), mask)


def _number(number: float, like: Value) -> Array:
    return np.array(number, np.float16 if like.dtype is DataType.FLOAT16 else np.float32)


def seen_as_added(op: Builder, seen: Value, fill: float, like: Value) -> Value:
    """Return what com.microsoft has as (B, T) of keys, or (B, S, T) of pairs, seen where above 0, as a mask to be added.

    The mask is (B, 1, 1, T) or (B, 1, S, T), of 0 and `fill`, of the type of `like`.
    """
    is_seen = op.Greater(seen, np.array(0, np.int32)) if seen.dtype is DataType.INT32 else seen
    axes = [1] if len(seen.shape or ()) == _RANK_OF_PAIRS else [1, 2]
    wide = op.Unsqueeze(is_seen, axes, _version=_UNSQUEEZE_AXES_ARE_INPUTS)
    return op.Where(wide, _number(0, like), _number(fill, like))


def keys_before(op: Builder, count: Value, keys: Value, axis: int) -> Value:
    """Return for each of the keys, which lie along an axis, whether it is one of the first `count`, int32 (B,): bool (B, T)."""
    length = op.Squeeze(
        op.Shape(keys, start=axis, end=axis + 1, _version=_SHAPE_HAS_START), [0], _version=_UNSQUEEZE_AXES_ARE_INPUTS
    )
    numbers = op.Range(np.array(0, np.int32), op.Cast(length, to=int(DataType.INT32)), np.array(1, np.int32))
    return op.Less(numbers, op.Unsqueeze(count, [1], _version=_UNSQUEEZE_AXES_ARE_INPUTS))


def added_reason(match: Match) -> str | None:
    """Return why what attention of com.microsoft adds to its scores, the value "added", is no mask of Attention; None where it is.

    Causal attention of com.microsoft hides keys by the least number that there is, where what is added may be as small.
    """
    added, node = match.get("added"), match.node("attention")
    view = MicrosoftAttention.of(node)
    fill = view.fill
    if node.outputs[0].dtype is DataType.FLOAT16 and fill < float(np.finfo(np.float16).min):
        return "what hides keys is beyond float16"
    if view.is_causal and (added is not None or fill < -_LEAST_FILL):
        return "it is causal, and what else is added to the scores may be as small"
    return None if added is None or len(added.shape or ()) == 4 else f"what is added to the scores is {added.shape}"


def _before_expand(added: Value) -> Value:
    """Return what `added` spreads over queries and keys, which Attention does itself."""
    node = added.producer
    source = node.inputs[0] if node is not None and (node.domain, node.op_type) == ("", "Expand") else None
    return added if source is None or len(source.shape or ()) != len(added.shape or ()) else source


def added_to_scores(
    op: Builder, added: Value | None, hidden: Value | None, overridable: frozenset[Value], *, has_guard: bool
) -> Value | None:
    """Return what is added to scores written out, `hidden` being finite, as a mask of Attention; None where nothing is.

    Queries that see no key get NaN, unless `has_guard` says that they get zeros.
    """
    if added is None:
        return hidden
    added = _before_expand(added)
    mask = added if has_guard or bounds_of(added, overridable)[0] > -math.inf else _hides_all_as_nan(op, added)
    return mask if hidden is None else op.Add(mask, hidden)


def _after(op: Builder, part: Part, mask: Value | None, heads: int, *, lifts: bool) -> Value | None:
    """Return what is added to the scores after a step, given what was before.

    `lifts` makes windows of the batch of (1, heads, S, T).
    """
    if isinstance(part, Floor):
        return None if mask is None else op.Max(mask, np.float32(part.number))
    operand = _operand(part)
    if part.is_transposed:
        *outer, last = range(len(operand.shape or ()))
        operand = op.Transpose(operand, perm=[*outer[:-1], last, outer[-1]])
    if lifts and len(operand.shape or ()) == _RANK_WITH_WINDOWS - 1:
        operand = op.Unsqueeze(operand, [0], _version=_UNSQUEEZE_AXES_ARE_INPUTS)
    if heads != 0 and part.rank == 3 and operand.shape is not None and len(operand.shape) == 3 and operand.shape[0] != 1:
        operand = op.Reshape(op.Unsqueeze(operand, [1], _version=_UNSQUEEZE_AXES_ARE_INPUTS), [-1, heads, 0, 0])
    if isinstance(part, Added):
        value = operand if part.factor == 1 else op.Mul(operand, np.float32(part.factor))
        return value if mask is None else op.Add(mask, value)
    fill, kept = np.float32(part.fill), np.float32(0) if mask is None else mask
    return op.Where(operand, kept, fill) if part.inverted else op.Where(operand, fill, kept)
