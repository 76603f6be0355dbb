"""Find attention that is written out.

    p = Softmax(Mul(MatMul(q, kᵀ), scale) + mask)
    y = MatMul(p, v)                                 ->      y = Attention(q, k, v, mask) {scale, softcap}

The scale may be a Mul or Div by a number of q, of kᵀ, of both, of their product, or of the masked scores; the mask any number of
Add, or of Where that fill scores, or absent (attention_mask.py); a cap of the scores by Tanh may stand before it; (B, H, S, D) may
be joined to (B x H, S, D) around the products. A guard after the softmax is dropped: Where(IsNaN(p), 0, p) gives zeros to queries
that see no key, and so does Attention.

Where q, k and v are transposed from (B, S, H, D) and y is transposed back, none of the four is: Attention reads and writes
(B, S, H x D). Keys and values that are repeated for groups of query heads, by nodes or by broadcasting one head, are read before.

Left alone:
    types other than float: half types would be rounded at other places
    a softmax of another axis than the last, or scores with other users
    keys that differ from the values in batch, heads or known length, or from the queries
    a mask that makes the scores larger, or is known not to be as long as the keys
    a fill of less than 1e37, whose rows of nothing but fill are not those of an added mask

There must be as many keys as values, as their products need it: where only a run shows how many, Attention says so. (Written out, a
single key that a mask spreads over many values would do.) Scores are taken to be finite before the mask: with a guard, scores that
are NaN give zeros written out and NaN by Attention.
"""

from __future__ import annotations

import dataclasses

from sardonyx.dtypes import DataType
from sardonyx.ir import Dim, Node, Value
from sardonyx.optimize.contract import Level
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.rules.attention_heads import Heads, read_heads, read_keys, repeated
from sardonyx.optimize.rules.attention_mask import mask_inputs, mask_reason, may_hide_all, windows_of
from sardonyx.optimize.rules.attention_scores import Scores, joined, read_scores, scale_of
from sardonyx.optimize.terms import Term, attribute_value

__all__ = ["FUSE_ATTENTION"]

_VERSION = 23
"""Of Attention, which ai.onnx has had since then: read under it whatever the model's opset."""

_AXES_ARE_INPUTS = 13
"""Of Squeeze and Unsqueeze."""

_SHAPE_HAS_START = 15

_Parts = tuple[Heads, Heads, Heads]
"""Q, K and V."""


def _pattern(op: PatternBuilder, scores: Term, v: Term) -> Term:
    softmax = op.Softmax(scores, _as="softmax")
    guarded = op.Where(op.IsNaN(softmax, _as="guard"), 0, softmax)
    seen = op.any_of(softmax, guarded)
    return op.MatMul(op.any_of(softmax, guarded, op.Reshape(seen, op.rest("shape"), _as="joined")), v)


@dataclasses.dataclass(frozen=True, slots=True)
class _Learned:
    """What the replacement needs."""

    parts: _Parts
    scale: float
    scores: Scores
    hides_all: bool
    """Whether the mask may hide all keys from a query, which no guard makes up for."""
    is_packed: bool
    """Whether to read and write (B, S, H x D)."""


def _check(match: Match) -> str | _Learned:
    softmax, result = match.node("softmax"), match.outputs[0]
    scored = match["scores"]
    if result.dtype is not DataType.FLOAT or scored.shape is None or result.shape is None:
        return f"the result is {result.dtype} {result.shape}, the scores are {scored.shape}; expected float of known rank"
    if attribute_value(softmax, "axis") not in (-1, len(scored.shape) - 1):
        return "the softmax does not go along the last axis"
    if _has(match, "joined") and not joined(scored.shape, match.node("joined").output.shape):
        return "what leaves the softmax is reshaped to other dimensions than batch, heads and both as one"
    overridable = match.place.overridable
    scores = read_scores(scored, overridable)
    if scores is None:
        return "what enters the softmax is not a scaled and masked product with no other users"
    query, query_scale = scale_of(scores.query, overridable)
    keys, keys_scale = scale_of(scores.keys, overridable)
    parts = _parts(query, keys, match["v"])
    if isinstance(parts, str):
        return parts
    q, k, _ = parts
    reason = mask_reason(scores, (*q.shape[:-1], k.shape[-2]), q.is_split)
    if reason is not None:
        return reason
    fewer = _without_copies((dataclasses.replace(q, factor=scores.head_scale), *parts[1:]))
    is_packed = all(part.can_pack for part in fewer) and _is_transposed_back(result, parts) and not windows_of(scores)
    hides_all = not _has(match, "guard") and may_hide_all(scores, overridable)
    return _Learned(fewer, scores.scale * query_scale * keys_scale, scores, hides_all, is_packed)


def _has(match: Match, name: str) -> bool:
    try:
        match.node(name)
    except KeyError:
        return False
    return True


def _parts(query: Value, keys: Value, values: Value) -> str | _Parts:
    q, k, v = read_heads(query), read_keys(keys), read_heads(values)
    if q is None or k is None or v is None or len({q.is_split, k.is_split, v.is_split}) > 1:
        return "batch and heads are joined in some of query, keys and values only"
    outer = (q.shape[0], 1) if q.is_split and k.shape[1] == v.shape[1] == 1 else q.shape[:-2]
    is_long = isinstance(k.shape[-2], int) and isinstance(v.shape[-2], int) and k.shape[-2] != v.shape[-2]
    if not outer == k.shape[:-2] == v.shape[:-2] or is_long or q.shape[-1] != k.shape[-1]:
        return f"query {q.shape}, keys {k.shape} and values {v.shape} do not fit, or only for some sizes"
    return q, k, v


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
    rank, windows, heads = len(match.outputs[0].shape or ()), windows_of(learned.scores), q.shape[1]
    mask = mask_inputs(op, learned.scores, hides_all=learned.hides_all, heads=heads if q.is_split and isinstance(heads, int) else 0)
    softcap = learned.scores.softcap or None
    attributes: dict[str, Dim | float | None] = {"scale": learned.scale, "softcap": softcap, "_version": _VERSION}
    if not q.is_split:
        masks = [_with_one_head(op, value) if len(value.shape or ()) == 3 else value for value in mask]
        y = op.Attention(*(_with_one_head(op, part.whole(op)) for part in learned.parts), *masks, **attributes)
        return op.Squeeze(y, [1], _version=_AXES_ARE_INPUTS)
    if windows != 0:
        y = op.Attention(*(_with_more_heads(op, part, windows) for part in learned.parts), *mask, **attributes)
        return op.Reshape(y, [-1, *q.shape[1:3], v.shape[3]])
    if learned.is_packed:
        attributes |= {"q_num_heads": q.shape[1], "kv_num_heads": k.shape[1]}
        packed = op.Attention(*(part.packed(op) for part in learned.parts), *mask, **attributes)
        y = op.Transpose(op.Reshape(packed, [0, 0, q.shape[1], v.shape[3]]), perm=[0, 2, 1, 3])
    else:
        y = op.Attention(*(part.whole(op) for part in learned.parts), *mask, **attributes)
    return y if rank == 4 else op.Reshape(y, op.Concat([-1], op.Shape(y, start=2, _version=_SHAPE_HAS_START), axis=0))


def _with_more_heads(op: Builder, part: Heads, windows: int) -> Value:
    """(B x windows, H, S, D) as (B, windows x H, S, D)."""
    _, H, S, D = part.shape
    return op.Reshape(part.whole(op), [-1, windows * int(str(H)), S, D])


def _with_one_head(op: Builder, value: Value) -> Value:
    return op.Unsqueeze(value, [1], _version=_AXES_ARE_INPUTS)


FUSE_ATTENTION = Rule("fuse_attention", _pattern, _replace, _check, Level.EXTENDED)
