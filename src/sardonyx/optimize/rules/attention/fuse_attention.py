"""Replace a softmax between two products, with what scales and masks the scores, by Attention.

    p = Softmax(Mul(MatMul(q, kᵀ), scale) + mask)
    y = MatMul(p, v)                                 ->      y = Attention(q, k, v, mask) {scale, softcap}

The scale may be a Mul or Div by a number of q, of kᵀ, of both, of their product, or of the masked scores; the mask any number of
Add, or of Where that fill scores, or absent (attention_mask.py); a cap of the scores by Tanh may stand before it; (B, H, S, D) may
be joined to (B x H, S, D) around the products. A guard after the softmax is dropped: Where(IsNaN(p), 0, p) gives zeros to queries
that see no key, and so does Attention.

The same with any product transposed, where the softmax goes along the keys: MatMul(pᵀ, v) of scores that are (…, T, S), and
yᵀ = MatMul(vᵀ, pᵀ).

Where q, k and v are transposed from (B, S, H, D) and y is transposed back, none of the four is: Attention reads and writes
(B, S, H x D). Keys and values that are repeated for groups of query heads, by nodes or by broadcasting one head, are read before.

Left alone:
    types other than float: half types would be rounded at other places
    a softmax of another axis than that of the keys, or scores with other users
    keys that differ from the values in batch, heads or known length, or from the queries
    a mask that makes the scores larger, or is known not to be as long as the keys
    a fill of less than 1e37, whose rows of nothing but fill are not those of an added mask

There must be as many keys as values, as their products need it, and a mask must fit the scores: where only a run shows how many,
Attention says so. (Written out, a single key that a mask spreads over many values would do, or a single query that it spreads
over many.) Scores are taken to be finite before the mask: with a guard, scores that are NaN give zeros written out and NaN by
Attention.
"""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import DataType
from sardonyx.ir import Dim, Node, Value
from sardonyx.ops.views.softmax import Softmax
from sardonyx.optimize.contract import Level
from sardonyx.optimize.helpers.attention_heads import Heads, read_heads, read_keys, repeated
from sardonyx.optimize.helpers.attention_mask import mask_inputs, mask_reason, may_hide_all, windows_of
from sardonyx.optimize.helpers.attention_scores import Scores, joined, read_scores, scale_of, transposed
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term
from sardonyx.optimize.transposes.permutation import permutation_of

__all__ = ["FUSE_ATTENTION"]

_VERSION = 23
"""Of Attention, which ai.onnx has had since then: read under it whatever the model's opset."""

_AXES_ARE_INPUTS = 13
"""Of Squeeze and Unsqueeze."""

_SHAPE_HAS_START = 15

_SOFTMAX_GOES_ALONG_ONE = 13
"""Before, it goes along an axis and all behind it."""

_Parts = tuple[Heads, Heads, Heads]
"""Q, K and V."""


def _pattern(op: PatternBuilder, scores: Term, v: Term) -> Term:
    softmax = op.Softmax(scores, _as="softmax")
    seen = op.any_of(softmax, op.Where(op.IsNaN(softmax, _as="guard"), 0, softmax))
    flipped = op.Transpose(seen, perm=_swaps_last, _as="flipped")
    weights = op.any_of(seen, flipped, op.Reshape(op.any_of(seen, flipped), op.rest("shape"), _as="joined"))
    return op.any_of(op.MatMul(weights, v), op.MatMul(v, weights, _as="behind"))


def _swaps_last(perm: Sequence[int] | None) -> bool:
    return perm is not None and len(perm) > 1 and tuple(perm) == (*range(len(perm) - 2), len(perm) - 1, len(perm) - 2)


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
    is_behind: bool
    """Whether the result is wanted as (…, D, S)."""


def _check(match: Match) -> str | _Learned:
    result, scored, overridable = match.outputs[0], match["scores"], match.place.overridable
    if result.dtype is not DataType.FLOAT or scored.shape is None or result.shape is None:
        return f"the result is {result.dtype} {result.shape}, the scores are {scored.shape}; expected float of known rank"
    is_behind = match.has("behind")
    is_transposed = is_behind != match.has("flipped")
    if not _goes_along_keys(match.node("softmax"), len(scored.shape), is_transposed):
        return "the softmax does not go along the keys"
    if match.has("joined") and not _joins(match.node("joined")):
        return "what leaves the softmax is reshaped to other dimensions than batch, heads and both as one"
    scores = read_scores(scored, overridable)
    if scores is None:
        return "what enters the softmax is not a scaled and masked product with no other users"
    query, query_scale = scale_of(scores.query, overridable)
    keys, keys_scale = scale_of(scores.keys, overridable)
    q, k = (read_keys(keys), read_heads(query)) if is_transposed else (read_heads(query), read_keys(keys))
    parts = _fitting(q, k, read_keys(match["v"]) if is_behind else read_heads(match["v"]))
    if isinstance(parts, str):
        return parts
    q, k, _ = parts
    scores = transposed(scores) if is_transposed else scores
    reason = mask_reason(scores, (*q.shape[:-1], k.shape[-2]), q.is_split)
    if reason is not None:
        return reason
    fewer = _without_copies((dataclasses.replace(q, factor=scores.head_scale), *parts[1:]))
    is_apart = is_behind or windows_of(scores) != 0
    is_packed = all(part.can_pack for part in fewer) and not is_apart and _is_transposed_back(result, parts)
    hides_all = not match.has("guard") and may_hide_all(scores, overridable)
    return _Learned(fewer, scores.scale * query_scale * keys_scale, scores, hides_all, is_packed, is_behind)


def _goes_along_keys(softmax: Node, rank: int, is_transposed: bool) -> bool:
    return list(Softmax.of(softmax).row(rank)) == [rank - 2 if is_transposed else rank - 1]


def _joins(node: Node) -> bool:
    value = node.inputs[0]
    return value is not None and joined(value.shape, node.output.shape)


def _fitting(q: Heads | None, k: Heads | None, v: Heads | None) -> str | _Parts:
    if q is None or k is None or v is None or len({(part.is_split, len(part.outer)) for part in (q, k, v)}) > 1:
        return "batch and heads are joined in some of query, keys and values only"
    outer = (q.shape[0], 1) if q.is_split and k.shape[1] == v.shape[1] == 1 else q.shape[:-2]
    is_long = isinstance(k.shape[-2], int) and isinstance(v.shape[-2], int) and k.shape[-2] != v.shape[-2]
    if not outer == k.shape[:-2] == v.shape[:-2] or is_long or q.shape[-1] != k.shape[-1]:
        return f"query {q.shape}, keys {k.shape} and values {v.shape} do not fit, or only for some sizes"
    return q, k, v


def _without_copies(parts: _Parts) -> _Parts:
    """Return keys and values before they were repeated, if both were, alike."""
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
    wanted = (0, 1, 3, 2, 4) if parts[0].outer else (0, 2, 1, 3)
    return permutation_of(user) == wanted


def _only_user(value: Value) -> Node | None:
    users = [user for user, _ in value.uses]
    return users[0] if len(users) == 1 and isinstance(users[0], Node) else None


def _replace(op: Builder, match: Match, learned: _Learned) -> Value:
    rank = len(match.outputs[0].shape or ())
    result = _attention(op, learned, rank)
    return op.Transpose(result, perm=[*range(rank - 2), rank - 1, rank - 2]) if learned.is_behind else result


def _attention(op: Builder, learned: _Learned, rank: int) -> Value:
    """Return Attention as (…, S, D), of `rank` dimensions."""
    q, k, v = learned.parts
    windows, heads = windows_of(learned.scores), q.shape[1]
    mask = mask_inputs(op, learned.scores, hides_all=learned.hides_all, heads=heads if q.is_split and isinstance(heads, int) else 0)
    softcap = learned.scores.softcap or None
    attributes: dict[str, Dim | float | None] = {"scale": learned.scale, "softcap": softcap, "_version": _VERSION}
    if not q.is_split:
        masks = [_with_one_head(op, value) if len(value.shape or ()) == 3 else value for value in mask]
        parts = (part.whole(op) for part in learned.parts)
        return op.Attention(*parts, *masks, **attributes, q_num_heads=1, kv_num_heads=1)
    _, H, S, D = (*q.shape[:3], v.shape[3])
    if learned.is_packed:
        attributes |= {"q_num_heads": H, "kv_num_heads": k.shape[1]}
        packed = op.Attention(*(part.packed(op) for part in learned.parts), *mask, **attributes)
        if q.outer:
            return op.Transpose(op.Reshape(packed, [-1, q.outer[1], S, H, D]), perm=[0, 1, 3, 2, 4])
        y = op.Transpose(op.Reshape(packed, [0, 0, H, D]), perm=[0, 2, 1, 3])
    elif windows != 0:
        y = op.Attention(*(_with_more_heads(op, part, windows) for part in learned.parts), *mask, **attributes)
        return op.Reshape(y, [-1, *q.outer[1:], H, S, D])
    else:
        y = op.Attention(*(part.whole(op) for part in learned.parts), *mask, **attributes)
    if q.outer:
        return op.Reshape(y, [-1, q.outer[1], H, S, D])
    return y if rank == 4 else op.Reshape(y, op.Concat([-1], op.Shape(y, start=2, _version=_SHAPE_HAS_START), axis=0))


def _with_more_heads(op: Builder, part: Heads, windows: int) -> Value:
    """Return (B x windows, H, S, D) as (B, windows x H, S, D)."""
    _, H, S, D = part.shape
    return op.Reshape(part.whole(op), [-1, windows * int(str(H)), S, D])


def _with_one_head(op: Builder, value: Value) -> Value:
    return op.Unsqueeze(value, [1], _version=_AXES_ARE_INPUTS)


FUSE_ATTENTION = Rule("fuse_attention", _pattern, _replace, _check, Level.EXTENDED, aliases=("AttentionFusion",))
