"""Pass Attention queries, keys and values with packed heads, where one product makes all three.

    t = Transpose(Reshape(x, [B, S, 3, H, D])) {perm = [2, 0, 3, 1, 4]}
    q, k, v = Split(t) {axis = 0}, each without its first axis
    y = Reshape(Transpose(Attention(q, k, v, mask?)), [B, S, H x D])

                                   ->      q, k, v = Split(x) {axis = 2};  y = Attention(q, k, v, mask?) {q_num_heads, kv_num_heads}

Left alone:
    heads of unknown number or size, and shapes that are not known to be these
    attention whose further outputs are used, or that has former keys and values
    values between that have other users
"""

from __future__ import annotations

import numpy as np

from sardonyx.ir import Value
from sardonyx.optimize.contract import Level
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["PACK_ATTENTION_HEADS"]

_SWAP_HEADS = [0, 2, 1, 3]


def _pattern(op: PatternBuilder, x: Term) -> Term:
    parts = op.Transpose(op.Reshape(x, op.rest("split"), _as="reshape"), perm=[2, 0, 3, 1, 4])
    three = op.outputs(op.Split(parts, op.rest("sizes"), axis=0, _as="parts"), 3)
    heads = [_without_first_axis(op, part, index) for index, part in enumerate(three)]
    attention = op.Attention(*heads, op.optional("mask"), _as="attention")
    return op.Reshape(op.Transpose(attention, perm=_SWAP_HEADS), op.rest("joined"))


def _without_first_axis(op: PatternBuilder, part: Term, index: int) -> Term:
    return op.any_of(op.Squeeze(part, op.rest(f"axes_{index}")), op.Reshape(part, op.rest(f"shape_{index}")))


def _check(match: Match) -> str | tuple[int, int]:
    x, split, result = match["x"].shape, match.node("reshape").output.shape, match.outputs[0].shape
    if x is None or split is None or len(x) != 3 or len(split) != 5 or split[2] != 3:
        return f"{x} is not known to be split into queries, keys and values of heads, but into {split}"
    B, S, _, H, D = split
    if not isinstance(H, int) or not isinstance(D, int) or x != (B, S, 3 * H * D) or result != (B, S, H * D):
        return f"{x} becomes {split} and {result}, which are not known to be packed heads"
    if any(value.shape != (1, B, H, S, D) for value in match.node("parts").outputs):
        return "the parts are not one of queries, one of keys and one of values"
    if any(value is None or value.shape != (B, H, S, D) for value in match.node("attention").inputs[:3]):
        return "the parts are reshaped otherwise than by leaving out their first axis"
    return H, D


def _replace(op: Builder, match: Match, heads: tuple[int, int]) -> Value:
    H, D = heads
    node, mask = match.node("attention"), match.get("mask")
    packed = op.outputs("Split", 3, match["x"], np.array([H * D] * 3, np.int64), axis=2, _version=13)
    return op.Attention(
        *packed,
        *([] if mask is None else [mask]),
        _attributes=node.attributes,
        _version=node.version,
        q_num_heads=H,
        kv_num_heads=H,
    )


PACK_ATTENTION_HEADS = Rule("pack_attention_heads", _pattern, _replace, _check, Level.EXTENDED)
