"""Pass Attention each key and value once for a group of heads instead of repeated for each head.

    keys = Reshape(Expand(Unsqueeze(k, 2)))          (B, M, T, D)  ->  (B, M x group, T, D)
    values = Reshape(Expand(Unsqueeze(v, 2)))
    y = Attention(q, keys, values, …)                ->      y = Attention(q, k, v, …)

Left alone:
    keys or values that are not repeated in this way, or not as often as each other
    attention whose further outputs are used, or that has former keys: these are repeated too
The nodes that repeat stay where they have other users.
"""

from __future__ import annotations

from sardonyx.ir import Value
from sardonyx.ops.views.attention import Attention
from sardonyx.optimize.contract import Level
from sardonyx.optimize.helpers.attention_heads import Heads, read_heads, repeated
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["FUSE_ATTENTION_GROUPS"]


def _pattern(op: PatternBuilder, q: Term, k: Term, v: Term) -> Term:
    return op.Attention(q, k, v, op.optional("mask"))


def _check(match: Match) -> str | tuple[Heads, Heads]:
    if Attention.of(match.root).query_heads is not None:
        return "the heads are packed in the last dimension"
    few = [_few(match[name]) for name in ("k", "v")]
    if few[0] is None or few[1] is None or few[0].shape[1] != few[1].shape[1]:
        return "keys and values are not both repeated alike"
    return few[0], few[1]


def _few(value: Value) -> Heads | None:
    heads = read_heads(value)
    return None if heads is None else repeated(heads)


def _replace(op: Builder, match: Match, few: tuple[Heads, Heads]) -> Value:
    k, v = (heads.whole(op) for heads in few)
    mask = match.get("mask")
    node = match.root
    return op.Attention(match["q"], k, v, *([] if mask is None else [mask]), _attributes=node.attributes, _version=node.version)


FUSE_ATTENTION_GROUPS = Rule("fuse_attention_groups", _pattern, _replace, _check, Level.EXTENDED, aliases=("AttentionFusion",))
