"""Write Attention of ai.onnx whose scores are read, in double, or with a softmax of another precision, as products and a softmax.

    y, keys, values, scores = Attention(q, k, v, mask?, past_key?, past_value?, ends?)
    ->      keys = Concat(past_key, k), values = Concat(past_value, v)
            a = MatMul(q x scale, keysᵀ)               scores of qk_matmul_output_mode 0
            b = Tanh(a / softcap) x softcap            1
            c = Where(seen, b + mask, -inf)            2, seen by truth values, causality, windows and ends of keys
            p = Softmax(c)                             3, zeros for queries that see no key
            y = MatMul(p, values)

Heads that lie in the last axis are taken apart before, heads of keys that several heads of queries share are repeated, a mask that
ends early hides the keys behind it, and float16 is computed in float.

Left alone:
    attention that one kernel computes: in float, whose scores nothing reads
    numbers of heads or their sizes that are not known
    bfloat16, whose every step is rounded
"""

from __future__ import annotations

import math

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import DataType
from sardonyx.ir import Value
from sardonyx.ops.views.attention import Attention
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import standard
from sardonyx.optimize.terms import Term

__all__ = ["EXPAND_ATTENTION_IN_DOUBLE", "EXPAND_ATTENTION_IN_DOUBLE_CACHE", "EXPAND_ATTENTION_SCORES"]

_MASK, _PAST_KEY, _PAST_VALUE, _ENDS = 3, 4, 5, 6
_RAW, _SOFTCAPPED, _BIASED, _PROBABILITIES = range(4)
_VERSION = 23
"""Of the operators that are made: that which brought Attention."""
_SWAP_HEADS = [0, 2, 1, 3]
_RANK = 4
_FLOATS = (DataType.FLOAT16, DataType.FLOAT, DataType.DOUBLE)
_OUT_OF_RANGE = np.array(np.iinfo(np.int64).max)
_PRECISIONS = (*_FLOATS, DataType.BFLOAT16)


@dataclasses.dataclass(frozen=True, slots=True)
class _Learned:
    """What the replacement needs."""

    heads: tuple[int, int]
    """Of queries, and of keys and values."""
    sizes: tuple[int, int]
    """Elements of a head of queries and keys, and of values."""


def _plain_pattern(op: PatternBuilder, q: Term) -> Term:
    return op.Attention(q, op.rest("others"), _as="attention")


def _cache_pattern(op: PatternBuilder, q: Term) -> tuple[Term, ...]:
    return tuple(op.outputs(op.Attention(q, op.rest("others"), _as="attention"), 3))


def _scores_pattern(op: PatternBuilder, q: Term) -> tuple[Term, ...]:
    return tuple(op.outputs(op.Attention(q, op.rest("others"), _as="attention"), 4))


def _check_double(match: Match) -> str | _Learned:
    node = match.node("attention")
    if match["q"].dtype is not DataType.DOUBLE and Attention.of(node).is_in_float:
        return "it is not of double, and its softmax may be computed in float"
    return _check(match)


def _check(match: Match) -> str | _Learned:
    node, view = match.node("attention"), Attention.of(match.node("attention"))
    q, k, v = node.inputs[:3]
    if q is None or k is None or v is None or any(value.dtype is not q.dtype for value in (k, v)) or q.dtype not in _FLOATS:
        return "it is not of float, float16 or double"
    counts = (view.query_heads, view.key_heads, view.key_heads)
    heads = [_heads(value, count) for value, count in zip((q, k, v), counts, strict=True)]
    if heads[0] is None or heads[1] is None or heads[2] is None:
        return "the number of heads or their size is not known"
    (N, _), (M, D), (_, Dv) = heads[0], heads[1], heads[2]
    if N % M or heads[0][1] != D or heads[2][0] != M or view.softcap < 0:
        return f"heads {heads} do not fit, or softcap is less than 0"
    if (node.input(_PAST_KEY) is None) != (node.input(_PAST_VALUE) is None):
        return "there are former keys or former values only"
    if node.input(_ENDS) is not None and node.input(_PAST_KEY) is not None:
        return "there are former keys and numbers of keys"
    if node.integer("qk_matmul_output_mode", 0) not in range(4) or view.softmax_precision not in (None, 0, *_PRECISIONS):
        return "its mode or the precision of its softmax is none of the standard's"
    return _mask_reason(match) or _Learned((N, M), (D, Dv))


def _heads(value: Value, count: int | None) -> tuple[int, int] | None:
    """Return how many heads there are, and their size; None where it is not known."""
    shape = value.shape or ()
    if len(shape) == _RANK:
        return (shape[1], shape[3]) if isinstance(shape[1], int) and isinstance(shape[3], int) and shape[1] > 0 else None
    width = shape[2] if len(shape) == 3 else None
    return (count, width // count) if isinstance(width, int) and count and count > 0 and width % count == 0 else None


def _mask_reason(match: Match) -> str | None:
    mask = match.node("attention").input(_MASK)
    if mask is None:
        return None
    is_mask = mask.dtype in (*_FLOATS, DataType.BOOL) and mask.shape is not None and 0 < len(mask.shape) <= _RANK
    return None if is_mask else f"the mask is {mask.dtype} {mask.shape}"


def _replace(op: Builder, match: Match, learned: _Learned, count: int) -> tuple[Value, ...]:
    node, view = match.node("attention"), Attention.of(match.node("attention"))
    (N, M), (D, Dv), kind = learned.heads, learned.sizes, match["q"].dtype
    wide = DataType.DOUBLE if kind is DataType.DOUBLE else DataType.FLOAT
    q, k, v = (_apart(op, value, count, size) for value, count, size in zip(node.inputs[:3], (N, M, M), (D, D, Dv), strict=True))
    pasts = node.input(_PAST_KEY), node.input(_PAST_VALUE)
    keys, values = (
        new if past is None else op.Concat(past, new, axis=2, _version=_VERSION) for past, new in zip(pasts, (k, v), strict=True)
    )
    scale = 1 / math.sqrt(D) if view.scale is None else view.scale
    queries = op.Mul(_as(op, q, wide), np.array(scale, wide.numpy), _version=_VERSION)
    transposed = op.Transpose(_spread(op, _as(op, keys, wide), N, M), perm=[0, 1, 3, 2], _version=_VERSION)
    stages = [op.MatMul(queries, transposed, _version=_VERSION)]
    stages.append(_softcapped(op, stages[-1], view.softcap, wide))
    hidden, is_masked = _masked(op, match, stages[-1], (q, keys), wide)
    stages.append(hidden)
    stages.append(_softmax(op, hidden, view, wide, is_masked=is_masked))
    y = _as(op, op.MatMul(stages[-1], _spread(op, _as(op, values, wide), N, M), _version=_VERSION), kind)
    if len(match["q"].shape or ()) != _RANK:
        y = op.Reshape(op.Transpose(y, perm=_SWAP_HEADS, _version=_VERSION), [0, 0, N * Dv], _version=_VERSION)
    scores = _as(op, stages[node.integer("qk_matmul_output_mode", 0)], kind)
    return (y, keys, values, scores)[:count]


def _apart(op: Builder, value: Value | None, count: int, size: int) -> Value:
    """Return (B, heads, rows, size)."""
    if value is None:
        raise ValueError("queries, keys and values are given")
    if len(value.shape or ()) == _RANK:
        return value
    return op.Transpose(op.Reshape(value, [0, 0, count, size], _version=_VERSION), perm=_SWAP_HEADS, _version=_VERSION)


def _as(op: Builder, value: Value, kind: DataType | None) -> Value:
    return value if value.dtype is kind or kind is None else op.Cast(value, to=int(kind), _version=_VERSION)


def _spread(op: Builder, rows: Value, heads: int, key_heads: int) -> Value:
    """Return keys or values with a head for each of the queries."""
    if heads == key_heads:
        return rows
    return op.Gather(rows, np.arange(heads, dtype=np.int64) // (heads // key_heads), axis=1, _version=_VERSION)


def _softcapped(op: Builder, scores: Value, softcap: float, wide: DataType) -> Value:
    if softcap == 0:
        return scores
    limit = np.array(softcap, wide.numpy)
    return op.Mul(op.Tanh(op.Div(scores, limit, _version=_VERSION), _version=_VERSION), limit, _version=_VERSION)


def _masked(op: Builder, match: Match, scores: Value, rows: tuple[Value, Value], wide: DataType) -> tuple[Value, bool]:
    """Return the scores with what the mask adds, -inf where a query does not see a key, and whether that may be."""
    mask, seen = match.node("attention").input(_MASK), _seen(op, match, *rows)
    if mask is not None:
        mask, is_there = _whole(op, mask, rows[1], may_be_short=Attention.of(match.node("attention")).takes_short_masks)
        seen = _both(op, seen, is_there)
    if mask is not None and mask.dtype is DataType.BOOL:
        seen = _both(op, mask, seen)
    elif mask is not None:
        scores = op.Add(scores, _as(op, mask, wide), _version=_VERSION)
    if seen is None:
        return scores, mask is not None
    return op.Where(seen, scores, np.array(-math.inf, wide.numpy), _version=_VERSION), True


def _whole(op: Builder, mask: Value, keys: Value, *, may_be_short: bool) -> tuple[Value, Value | None]:
    """Return a mask whose last axis is as long as there are keys, and which of these it is for: None for all.

    One of 1 is for all keys; a longer one, and a shorter one that may not be, stay errors: of Gather, which meets a place that is
    not there.
    """
    if (mask.shape or ())[-1] in (1, (keys.shape or ())[2]):
        return mask, None
    own, place = op.Shape(mask, start=-1, _version=_VERSION), _range(op, keys)
    last = op.Min(place, op.Sub(own, np.array(1, np.int64), _version=_VERSION), _version=_VERSION)
    is_longer = op.Greater(own, op.Max(_rows(op, keys), np.array(1, np.int64), _version=_VERSION), _version=_VERSION)
    is_one = op.Equal(own, np.array(1, np.int64), _version=_VERSION)
    last = last if may_be_short else op.Where(is_one, np.array(0, np.int64), place, _version=_VERSION)
    chosen = op.Where(is_longer, _OUT_OF_RANGE, last, _version=_VERSION)
    if not may_be_short:
        return op.Gather(mask, chosen, axis=-1, _version=_VERSION), None
    is_there = op.Or(is_one, op.Less(place, own, _version=_VERSION), _version=_VERSION)
    return op.Gather(mask, chosen, axis=-1, _version=_VERSION), is_there


def _seen(op: Builder, match: Match, q: Value, keys: Value) -> Value | None:
    """Return which keys queries see by their positions; None where it is all of them."""
    node, view = match.node("attention"), Attention.of(match.node("attention"))
    left, right = node.integer("left_window_size", -1), 0 if view.is_causal else node.integer("right_window_size", -1)
    ends, past = node.input(_ENDS), node.input(_PAST_KEY)
    place, found = _range(op, keys), list[Value]()
    if ends is not None:
        ends = op.Reshape(_as(op, ends, DataType.INT64), [-1, 1, 1, 1], _version=_VERSION)
        found.append(op.Less(place, ends, _version=_VERSION))
    if max(left, right) >= 0:
        position = op.Unsqueeze(_range(op, q), [1], _version=_VERSION)
        if ends is not None:
            position = op.Add(position, op.Sub(ends, _rows(op, q), _version=_VERSION), _version=_VERSION)
        elif past is not None:
            position = op.Add(position, _rows(op, past), _version=_VERSION)
        if right >= 0:
            limit = op.Add(position, np.array(right, np.int64), _version=_VERSION) if right else position
            found.append(op.LessOrEqual(place, limit, _version=_VERSION))
        if left >= 0:
            least = op.Sub(position, np.array(left, np.int64), _version=_VERSION)
            found.append(op.GreaterOrEqual(place, least, _version=_VERSION))
    seen: Value | None = None
    for item in found:
        seen = _both(op, seen, item)
    return seen


def _both(op: Builder, one: Value | None, other: Value | None) -> Value | None:
    """Return whether both hold; None stands for what always does."""
    if one is None or other is None:
        return one if other is None else other
    return op.And(one, other, _version=_VERSION)


def _rows(op: Builder, value: Value) -> Value:
    """Return how many rows (B, heads, rows, size) has, int64 (1,)."""
    return op.Shape(value, start=2, end=3, _version=_VERSION)


def _range(op: Builder, value: Value) -> Value:
    """Return 0, 1, … for its rows."""
    count = op.Squeeze(_rows(op, value), [0], _version=_VERSION)
    return op.Range(np.array(0, np.int64), count, np.array(1, np.int64), _version=_VERSION)


def _softmax(op: Builder, scores: Value, view: Attention, wide: DataType, *, is_masked: bool) -> Value:
    """Return the softmax, computed in float at least, of scores that are rounded to its precision, as its result is."""
    precision = DataType(view.softmax_precision) if view.softmax_precision else wide
    computed = DataType.DOUBLE if precision is DataType.DOUBLE else DataType.FLOAT
    rounded = _as(op, _as(op, scores, precision), computed)
    found = op.Softmax(rounded, axis=-1, _version=_VERSION)
    if is_masked:
        top = op.ReduceMax(rounded, [-1], _version=_VERSION)
        is_hidden = op.Equal(top, np.array(-math.inf, computed.numpy), _version=_VERSION)
        found = op.Where(is_hidden, np.array(0, computed.numpy), found, _version=_VERSION)
    return _as(op, _as(op, found, precision), wide)


def _replace_plain(op: Builder, match: Match, learned: _Learned) -> Value:
    return _replace(op, match, learned, 1)[0]


def _replace_cache(op: Builder, match: Match, learned: _Learned) -> tuple[Value, ...]:
    return _replace(op, match, learned, 3)


def _replace_scores(op: Builder, match: Match, learned: _Learned) -> tuple[Value, ...]:
    return _replace(op, match, learned, 4)


_ATTENTION = standard("Attention")

EXPAND_ATTENTION_IN_DOUBLE = Rule(
    "expand_attention_in_double",
    _plain_pattern,
    _replace_plain,
    _check_double,
    takes_apart=_ATTENTION,
    summary="Write Attention of ai.onnx in double, or whose softmax has another precision than float, as products and a softmax.",
)
EXPAND_ATTENTION_IN_DOUBLE_CACHE = Rule(
    "expand_attention_in_double_cache",
    _cache_pattern,
    _replace_cache,
    _check_double,
    takes_apart=_ATTENTION,
    summary="Write Attention of ai.onnx in double that returns its keys and values as products and a softmax.",
)
EXPAND_ATTENTION_SCORES = Rule(
    "expand_attention_scores",
    _scores_pattern,
    _replace_scores,
    _check,
    takes_apart=_ATTENTION,
    summary="Write Attention of ai.onnx whose scores are read as products and a softmax.",
)
