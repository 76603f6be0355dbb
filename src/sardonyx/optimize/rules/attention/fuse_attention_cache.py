"""Fold the concatenation of new keys and values to those of former runs into Attention.

    keys = Concat(past_keys, k) {axis = 2}
    values = Concat(past_values, v) {axis = 2}
    y = Attention(q, keys, values, mask?)          ->      y, keys, values = Attention(q, k, v, mask?, past_keys, past_values)

Left alone:
    keys and values as (B, S, H x D), which have no place for former ones
    causal attention: the queries' places would begin after the former keys
    former keys and values of another batch, number of heads or head size than the new ones, or known to be of another length than
        each other: where only a run shows their lengths these are equal, as attention needs it
    attention whose further outputs are used, or that has former keys already
"""

from __future__ import annotations

from sardonyx.ir import Node, Value
from sardonyx.ops.views.attention import Attention
from sardonyx.optimize.contract import Level
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["FUSE_ATTENTION_CACHE"]


def _pattern(op: PatternBuilder, q: Term, k: Term, v: Term, past_keys: Term, past_values: Term) -> tuple[Term, ...]:
    keys = op.Concat(past_keys, k, axis=_along_length, _as="keys")
    values = op.Concat(past_values, v, axis=_along_length, _as="values")
    return op.Attention(q, keys, values, op.optional("mask"), is_causal=0, _as="attention"), keys, values


def _along_length(axis: int) -> bool:
    return axis in (2, -2)


def _check(match: Match) -> str | None:
    if Attention.of(match.root).query_heads is not None:
        return "the heads are packed in the last dimension"
    lengths = []
    for name, past in (("k", "past_keys"), ("v", "past_values")):
        new, old = match[name].shape, match[past].shape
        if new is None or old is None or len(new) != 4 or len(old) != 4 or (*new[:2], new[3]) != (*old[:2], old[3]):
            return f"former {old} and new {new} differ in more than length, or are not of four dimensions"
        lengths.append((old[2], new[2]))
    differ = [one != other and isinstance(one, int) and isinstance(other, int) for one, other in zip(*lengths, strict=True)]
    return f"the lengths of keys and values differ: {lengths}" if any(differ) else None


def _replace(op: Builder, match: Match, learned: None) -> tuple[Value, ...]:
    node: Node = match.root
    inputs = (match[name] if name != "mask" else match.get(name) for name in ("q", "k", "v", "mask", "past_keys", "past_values"))
    return op.outputs("Attention", 3, *inputs, _attributes=node.attributes, _version=node.version)


FUSE_ATTENTION_CACHE = Rule("fuse_attention_cache", _pattern, _replace, _check, Level.EXTENDED, aliases=("AttentionFusion",))
