"""Write MultiHeadAttention of com.microsoft as Attention of ai.onnx.

    MultiHeadAttention(q, k, v) {num_heads}              ->      Attention(q, k, v) {q_num_heads, kv_num_heads}
    MultiHeadAttention(q, k, v, past)                    ->      the same with past keys and values, and all of them as outputs
    y, keys, values, scores = MultiHeadAttention(…)      ->      the same, and the scores that enter the softmax

    Where(IsNaN(y), 0, y), y = MultiHeadAttention(…)     ->      Attention(…), which has zeros for queries that see no key

A constant bias is added to q, k and v before, what hides keys, (B), (B, T) or (B, S, T), becomes numbers that are added to the
scores. Keys and values may be (B, T, H x D) or (B, H, T, D), to which no bias is added; queries are seen as they are.

Left alone:
    queries, keys and values in one tensor, keys that lie otherwise than the values, and beams
    causal attention whose queries are not known to be as many as the new keys
    masks of other shapes, numbers of keys with former keys, a bias that is no constant, types other than float and float16
"""

from __future__ import annotations

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.ir import Shape, Value
from sardonyx.ops.views.attention import MicrosoftAttention
from sardonyx.optimize.helpers.activation import fused_type_reason
from sardonyx.optimize.helpers.attention_guard import guard_reason, guarded, has_guard
from sardonyx.optimize.helpers.attention_mask import added_reason, added_to_scores, keys_before, seen_as_added
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import microsoft
from sardonyx.optimize.terms import Term

__all__ = ["EXPAND_MULTI_HEAD_ATTENTION", "EXPAND_MULTI_HEAD_ATTENTION_CACHE", "EXPAND_MULTI_HEAD_ATTENTION_SCORES"]

_VERSION = 23
"""Of Attention, which ai.onnx has had since then: read under it whatever the model's opset."""

_SWAP_HEADS = [0, 2, 1, 3]
_SCORES = 3
"""Which output they are."""
_MASKED = 2
"""The mode of Attention in which its scores are those that enter the softmax."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Learned:
    """What the replacement needs."""

    heads: int
    widths: tuple[int, int, int]
    """Elements of all heads of queries, keys and values."""
    has_heads_apart: bool
    """Whether keys and values are (B, H, T, D)."""


def _pattern(op: PatternBuilder, q: Term, k: Term, v: Term) -> Term:
    further = [op.optional_constant("bias"), *(op.optional(name) for name in ("seen", "added", "past_keys", "past_values"))]
    return guarded(op, op.MultiHeadAttention(q, k, v, *further, _domain="com.microsoft", _as="attention"))


def _cache_pattern(op: PatternBuilder, q: Term, k: Term, v: Term) -> tuple[Term, ...]:
    further = [op.optional_constant("bias"), *(op.optional(name) for name in ("seen", "added", "past_keys", "past_values"))]
    y, *present = op.outputs(op.MultiHeadAttention(q, k, v, *further, _domain="com.microsoft", _as="attention"), 3)
    return guarded(op, y), *present


def _scores_pattern(op: PatternBuilder, q: Term, k: Term, v: Term) -> tuple[Term, ...]:
    further = [op.optional_constant("bias"), *(op.optional(name) for name in ("seen", "added", "past_keys", "past_values"))]
    return tuple(op.outputs(op.MultiHeadAttention(q, k, v, *further, _domain="com.microsoft", _as="attention"), 4))


def _check(match: Match) -> str | _Learned:
    q, k, v, heads = match["q"], match["k"], match["v"], MicrosoftAttention.of(match.node("attention")).heads
    shapes = (q.shape, k.shape, v.shape)
    widths = [width for value in (q, k, v) if (width := _width(value, heads)) is not None]
    if q.shape is None or len(q.shape) != 3 or len({len(shape or ()) for shape in shapes[1:]}) > 1:
        return f"queries, keys and values are {shapes}, expected three dimensions, and keys that lie as the values do"
    if len(widths) < len(shapes):
        return f"{shapes} are not known to hold {heads} heads each"
    has_heads_apart = len(k.shape or ()) == 4
    learned = _Learned(heads, (widths[0], widths[1], widths[2]), has_heads_apart)
    reason = fused_type_reason(q) or guard_reason(match) or _causal_reason(match, learned) or _mask_reason(match)
    return reason or _bias_reason(match, learned) or learned


def _width(value: Value, heads: int) -> int | None:
    """Return elements of all heads in (B, T, H x D) or (B, H, T, D); None where that is not known."""
    shape = value.shape or ()
    last = shape[-1] if shape else None
    if heads < 1 or not isinstance(last, int) or len(shape) not in (3, 4) or (len(shape) == 4 and shape[1] != heads):
        return None
    width = last if len(shape) == 3 else last * heads
    return width if width % heads == 0 and width > 0 else None


def _causal_reason(match: Match, learned: _Learned) -> str | None:
    if not MicrosoftAttention.of(match.node("attention")).is_causal:
        return None
    S, T = (match[name].shape or () for name in ("q", "k"))
    is_square = len(S) > 1 and S[1] == T[2 if learned.has_heads_apart else 1]
    return None if is_square else "it is causal, and the queries are not known to be as many as the keys"


def _mask_reason(match: Match) -> str | None:
    seen, q = match.get("seen"), match["q"]
    if (match.get("past_keys") is None) != (match.get("past_values") is None):
        return "there are former keys or former values only"
    if seen is not None and not _hides_keys(seen.shape or (), q.shape or (), has_past=match.get("past_keys") is not None):
        return f"what hides keys is {seen.shape}, expected a number for each key, or each query and key, or how many there are"
    return added_reason(match)


def _hides_keys(seen: Shape, q: Shape, *, has_past: bool) -> bool:
    """Return whether what hides keys is (B), (B, T) or (B, S, T)."""
    if len(seen) == 1:
        return seen == q[:1] and not has_past
    return (len(seen) == 2 and seen[0] == q[0]) or (len(seen) == 3 and seen[:2] == q[:2])


def _bias_reason(match: Match, learned: _Learned) -> str | None:
    bias = match.tensor("bias") if match.get("bias") is not None else None
    if bias is None or tuple(bias.shape) == (sum(learned.widths),):
        return None
    return f"the bias is {bias.shape}, expected {sum(learned.widths)} numbers"


def _replace(op: Builder, match: Match, learned: _Learned) -> Value:
    return _attend(op, match, learned, 1)[0]


def _replace_cache(op: Builder, match: Match, learned: _Learned) -> tuple[Value, ...]:
    return _attend(op, match, learned, 3)


def _replace_scores(op: Builder, match: Match, learned: _Learned) -> tuple[Value, ...]:
    return _attend(op, match, learned, 4)


def _attend(op: Builder, match: Match, learned: _Learned, count: int) -> tuple[Value, ...]:
    q, k, v = _biased(op, match, learned)
    heads, (width, _, value_width) = learned.heads, learned.widths
    if learned.has_heads_apart:
        q = op.Transpose(op.Reshape(q, [0, 0, heads, width // heads]), perm=_SWAP_HEADS)
    inputs = [q, k, v, _mask(op, match), match.get("past_keys"), match.get("past_values")]
    while inputs[-1] is None:
        inputs.pop()
    packed = {} if learned.has_heads_apart else {"q_num_heads": heads, "kv_num_heads": heads}
    view = MicrosoftAttention.of(match.node("attention"))
    ways = {"is_causal": 1} if view.is_causal else {}
    ways |= packed if count <= _SCORES else packed | {"qk_matmul_output_mode": _MASKED}
    y, *present = op.outputs("Attention", count, *inputs, scale=view.scale, **ways, _version=_VERSION)
    if learned.has_heads_apart:
        y = op.Reshape(op.Transpose(y, perm=_SWAP_HEADS), [0, 0, value_width])
    return y, *present


def _biased(op: Builder, match: Match, learned: _Learned) -> tuple[Value, Value, Value]:
    q, k, v = (match[name] for name in "qkv")
    bias = match.tensor("bias") if match.get("bias") is not None else None
    if bias is None:
        return q, k, v
    parts = np.split(bias.numpy(), np.cumsum(learned.widths)[:2])
    if learned.has_heads_apart:
        return op.Add(q, parts[0]) if parts[0].any() else q, k, v
    q, k, v = (op.Add(value, part) if part.any() else value for value, part in zip((q, k, v), parts, strict=True))
    return q, k, v


def _mask(op: Builder, match: Match) -> Value | None:
    seen, added = match.get("seen"), match.get("added")
    fill = MicrosoftAttention.of(match.node("attention")).fill
    if seen is not None and len(seen.shape or ()) == 1:
        k = match["k"]
        seen = keys_before(op, seen, k, len(k.shape or ()) - 2)
    hidden = None if seen is None else seen_as_added(op, seen, fill, match["q"])
    return added_to_scores(op, added, hidden, match.place.overridable, has_guard=has_guard(match))


EXPAND_MULTI_HEAD_ATTENTION = Rule(
    "expand_multi_head_attention",
    _pattern,
    _replace,
    _check,
    takes_apart=microsoft("MultiHeadAttention"),
    summary="Write MultiHeadAttention of com.microsoft as Attention of ai.onnx.",
)
EXPAND_MULTI_HEAD_ATTENTION_CACHE = Rule(
    "expand_multi_head_attention_cache",
    _cache_pattern,
    _replace_cache,
    _check,
    takes_apart=microsoft("MultiHeadAttention"),
    summary="Write MultiHeadAttention of com.microsoft that returns its keys and values as Attention of ai.onnx.",
)
EXPAND_MULTI_HEAD_ATTENTION_SCORES = Rule(
    "expand_multi_head_attention_scores",
    _scores_pattern,
    _replace_scores,
    _check,
    takes_apart=microsoft("MultiHeadAttention"),
    summary="Write MultiHeadAttention of com.microsoft whose scores are read as Attention of ai.onnx.",
)
