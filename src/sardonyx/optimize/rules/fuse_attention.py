"""Find attention that is written out.

    p = Softmax(Mul(MatMul(q, kᵀ), scale) + mask)
    y = MatMul(p, v)                                 ->      y = Attention(q, k, v, mask) {scale}

The scale may be a Mul or Div by a number of q, of kᵀ, of both, or of their product; the mask an Add, or a Where that fills
scores, or absent; (B, H, S, D) may be joined to (B x H, S, D) around the products. A guard after the softmax is dropped:
Where(IsNaN(p), 0, p) gives zeros to queries that see no key, and so does Attention.

Where q, k and v are transposed from (B, S, H, D) and y is transposed back, none of the four is: Attention reads and writes
(B, S, H x D). Keys and values that are repeated for groups of query heads are read before that.

Left alone:
    types other than float: half types would be rounded at other places
    a softmax of another axis than the last, or scores with other users
    keys that are not transposed by a node, or that differ from the values in batch, heads or length, or from the queries
    a mask that makes the scores larger, or is not as long as the keys
    a mask that may hold -inf, where no guard follows: a query that sees no key gives NaN then, and Attention 0
    a fill of less than 1e37, whose rows of nothing but fill are not those of an added mask

Scores are taken to be finite before the mask: with a guard, scores that are NaN give zeros written out and NaN by Attention.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.ir import Dim, Node, Shape, Value
from sardonyx.optimize.bounds import bounds_of
from sardonyx.optimize.contract import Level
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.rules.attention_heads import Heads, read_heads, read_keys, repeated
from sardonyx.optimize.rules.attention_scores import Filling, Scores, joined, read_scores, scale_of
from sardonyx.optimize.terms import Term, attribute_value

__all__ = ["FUSE_ATTENTION"]

_VERSION = 23
"""Of Attention, which ai.onnx has had since then: read under it whatever the model's opset."""

_AXES_ARE_INPUTS = 13
"""Of Squeeze and Unsqueeze."""

_LEAST_FILL = 1e37
"""From here on a score of any size but for this disappears when it is added."""

_Parts = tuple[Heads, Heads, Heads]
"""Q, K and V."""


def _pattern(op: PatternBuilder, scores: Term, v: Term) -> Term:
    softmax = op.Softmax(scores, _as="softmax")
    guarded = op.Where(op.IsNaN(softmax, _as="guard"), 0, softmax)
    return op.MatMul(op.any_of(softmax, guarded), v)


@dataclasses.dataclass(frozen=True, slots=True)
class _Learned:
    """What the replacement needs."""

    parts: _Parts
    scale: float
    mask: Value | Filling | None
    is_packed: bool
    """Whether to read and write (B, S, H x D)."""


def _check(match: Match) -> str | _Learned:
    softmax, result = match.node("softmax"), match.outputs[0]
    scored = match["scores"]
    if result.dtype is not DataType.FLOAT or scored.shape is None or result.shape is None:
        return f"the result is {result.dtype} {result.shape}, the scores are {scored.shape}; expected float of known rank"
    if attribute_value(softmax, "axis") not in (-1, len(scored.shape) - 1):
        return "the softmax does not go along the last axis"
    overridable = match.place.overridable
    scores = read_scores(scored, overridable)
    if scores is None:
        return "what enters the softmax is not a scaled and masked product with no other users"
    query, query_scale = scale_of(scores.query, overridable)
    keys, keys_scale = scale_of(scores.keys, overridable)
    parts = _parts(query, keys, match["v"])
    if isinstance(parts, str):
        return parts
    reason = _mask_reason(scores, parts, overridable, is_guarded=_has(match, "guard"))
    if reason is not None:
        return reason
    if len(result.shape) == 3 and parts[0].is_split and not all(isinstance(dim, int) for dim in result.shape[1:]):
        return "how to join batch and heads of the result depends on sizes"
    fewer = _without_copies(parts)
    is_packed = all(part.can_pack for part in fewer) and _is_transposed_back(result, parts)
    return _Learned(fewer, scores.scale * query_scale * keys_scale, scores.mask, is_packed)


def _has(match: Match, name: str) -> bool:
    try:
        match.node(name)
    except KeyError:
        return False
    return True


def _parts(query: Value, keys: Value, values: Value) -> str | _Parts:
    q, k, v = read_heads(query), read_keys(keys), read_heads(values)
    if k is None:
        return "the keys are not transposed"
    if q is None or v is None or len({q.is_split, k.is_split, v.is_split}) > 1:
        return "batch and heads are joined in some of query, keys and values only"
    if not q.shape[:-2] == k.shape[:-2] == v.shape[:-2] or k.shape[-2] != v.shape[-2] or q.shape[-1] != k.shape[-1]:
        return f"query {q.shape}, keys {k.shape} and values {v.shape} do not fit, or only for some sizes"
    return q, k, v


def _mask_reason(scores: Scores, parts: _Parts, overridable: frozenset[Value], *, is_guarded: bool) -> str | None:
    mask = scores.mask
    if mask is None:
        return None
    value = mask.condition if isinstance(mask, Filling) else mask
    if not _fits(value.shape, scores.mask_rank, parts):
        return f"the mask is {value.shape}; expected one that goes along all keys, and that does not make the scores larger"
    if isinstance(mask, Filling) and mask.fill > -_LEAST_FILL:
        return f"scores are replaced by {mask.fill}; expected -inf, or a number of at least -{_LEAST_FILL}"
    least = mask.fill if isinstance(mask, Filling) else bounds_of(mask, overridable)[0]
    if least == -math.inf and not is_guarded:
        return "the mask may hold -inf, and nothing guards queries that see no key"
    return None


def _fits(shape: Shape | None, rank: int, parts: _Parts) -> bool:
    """Whether a mask that meets scores of `rank` dimensions is one for the scores of `parts`."""
    q, k, _ = parts
    if not shape or len(shape) > rank or (rank == 4 and not q.is_split):
        return False
    wanted: tuple[Dim, ...] = (*q.shape[:-1], k.shape[-2])
    if rank == 3 and q.is_split:
        wanted = (1, *wanted[2:])
    return shape[-1] == wanted[-1] and all(dim in (1, want) for dim, want in zip(shape[::-1], wanted[::-1], strict=False))


def _without_copies(parts: _Parts) -> _Parts:
    """Keys and values before they were repeated, if both were, alike."""
    q, k, v = parts
    few_keys, few_values = repeated(k), repeated(v)
    if few_keys is None or few_values is None or few_keys.shape[1] != few_values.shape[1]:
        return parts
    return q, few_keys, few_values


def _is_transposed_back(result: Value, parts: _Parts) -> bool:
    user = _only_user(result)
    if user is not None and user.op_type == "Reshape" and joined(result.shape, user.outputs[0].shape):
        B, H, S, _ = parts[0].shape
        if user.outputs[0].shape != (B, H, S, parts[2].shape[3]):
            return False
        user = _only_user(user.outputs[0])
    return user is not None and user.op_type == "Transpose" and tuple(user.get("perm", ())) == (0, 2, 1, 3)


def _only_user(value: Value) -> Node | None:
    users = [user for user, _ in value.uses]
    return users[0] if len(users) == 1 and isinstance(users[0], Node) else None


def _replace(op: Builder, match: Match, learned: _Learned) -> Value:
    q, k, v = learned.parts
    shape = match.outputs[0].shape or ()
    mask = _as_input(op, learned.mask)
    attributes: dict[str, Dim | float] = {"scale": learned.scale, "_version": _VERSION}
    if not q.is_split:
        masks = [_with_one_head(op, value) if len(value.shape or ()) == 3 else value for value in mask]
        y = op.Attention(*(_with_one_head(op, part.value) for part in learned.parts), *masks, **attributes)
        return op.Squeeze(y, [1], _version=_AXES_ARE_INPUTS)
    if learned.is_packed:
        attributes |= {"q_num_heads": q.shape[1], "kv_num_heads": k.shape[1]}
        packed = op.Attention(*(part.packed(op) for part in learned.parts), *mask, **attributes)
        y = op.Transpose(op.Reshape(packed, [0, 0, q.shape[1], v.shape[3]]), perm=[0, 2, 1, 3])
    else:
        y = op.Attention(*(part.four(op) for part in learned.parts), *mask, **attributes)
    return y if len(shape) == 4 else op.Reshape(y, [-1, *shape[1:]])


def _with_one_head(op: Builder, value: Value | None) -> Value:
    return op.Unsqueeze(value, [1], _version=_AXES_ARE_INPUTS)


def _as_input(op: Builder, mask: Value | Filling | None) -> list[Value]:
    """The mask as Attention takes it: added, or boolean and True for what is seen; nothing where there is none."""
    if not isinstance(mask, Filling):
        return [] if mask is None else [mask]
    if mask.fill == -math.inf:
        return [mask.condition if mask.inverted else op.Not(mask.condition)]
    fill, nothing = np.float32(mask.fill), np.float32(0)
    return [op.Where(mask.condition, nothing, fill) if mask.inverted else op.Where(mask.condition, fill, nothing)]


FUSE_ATTENTION = Rule("fuse_attention", _pattern, _replace, _check, Level.EXTENDED)
