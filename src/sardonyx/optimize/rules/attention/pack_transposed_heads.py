"""Let attention split heads itself.

    q, k, v = each Transpose(Reshape(x, [B, S, H, D])) {perm = [0, 2, 1, 3]}, rotated by RotaryEmbedding or not
    y = Reshape(Transpose(Attention(q, k, v, mask?, past?)))          ->      y = Attention(x, …) {q_num_heads, kv_num_heads}

RotaryEmbedding reads packed heads too.

Left alone:
    heads of unknown number or size, and shapes that are not known to be these
    queries, keys or values that are made otherwise, or have other users on the way
"""

from __future__ import annotations

from sardonyx.dtypes import Array
from sardonyx.ir import Node, Value
from sardonyx.optimize.contract import Level
from sardonyx.optimize.edit import small_constant
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["PACK_TRANSPOSED_HEADS", "PACK_TRANSPOSED_HEADS_CACHE"]

_SWAP_HEADS = [0, 2, 1, 3]
_PARTS = ("q", "k", "v")


def _heads(op: PatternBuilder, name: str) -> Term:
    split = op.Transpose(op.Reshape(op.optional(name), op.rest(f"{name}_split")), perm=_SWAP_HEADS, _as=f"{name}_heads")
    rotated = op.RotaryEmbedding(split, op.optional(f"{name}_cos"), op.optional(f"{name}_sin"), _as=f"{name}_rotated")
    return op.any_of(split, rotated)


def _attention(op: PatternBuilder) -> Term:
    return op.Attention(*(_heads(op, name) for name in _PARTS), op.rest("others"), _as="attention")


def _packed(op: PatternBuilder, y: Term) -> Term:
    return op.Reshape(op.Transpose(y, perm=_SWAP_HEADS), op.rest("joined"))


def _pattern(op: PatternBuilder) -> Term:
    return _packed(op, _attention(op))


def _cache_pattern(op: PatternBuilder) -> tuple[Term, ...]:
    y, *present = op.outputs(_attention(op), 3)
    return _packed(op, y), *present


def _check(match: Match) -> str | Array | None:
    for name in _PARTS:
        packed, shape = match[name].shape, match.node(f"{name}_heads").output.shape
        if packed is None or shape is None or len(packed) != 3 or not (isinstance(shape[1], int) and isinstance(shape[3], int)):
            return f"{name} is {packed} and becomes {shape}, expected three dimensions, and known heads"
        if packed != (shape[0], shape[2], shape[1] * shape[3]):
            return f"{name} is {packed} and becomes {shape}, which are not known to be its heads"
    if _is_packed(match):
        return None
    target = small_constant(match.root.input(1), match.place.overridable)
    return "the result is reshaped otherwise" if target is None or (target == 0).any() else target


def _is_packed(match: Match) -> bool:
    """Return whether the result is reshaped to (B, S, H x D)."""
    B, H, S, _ = match.node("q_heads").output.shape or (0, 0, 0, 0)
    *_, size = match.node("v_heads").output.shape or (0,)
    return match.outputs[0].shape == (B, S, H * size)


def _replace(op: Builder, match: Match, target: Array | None) -> Value:
    return _attend(op, match, target, 1)[0]


def _replace_cache(op: Builder, match: Match, target: Array | None) -> tuple[Value, ...]:
    return _attend(op, match, target, 3)


def _attend(op: Builder, match: Match, target: Array | None, count: int) -> tuple[Value, ...]:
    node = match.node("attention")
    parts = [_part(op, match, name) for name in _PARTS]
    y, *present = op.outputs(
        "Attention",
        count,
        *parts,
        *match.rest("others"),
        _attributes=node.attributes,
        _version=node.version,
        q_num_heads=_count(match.node("q_heads")),
        kv_num_heads=_count(match.node("k_heads")),
    )
    return (y if target is None else op.Reshape(y, target)), *present


def _count(heads: Node) -> int:
    return int(str((heads.output.shape or ())[1]))


def _part(op: Builder, match: Match, name: str) -> Value:
    if not match.has(f"{name}_rotated"):
        return match[name]
    node = match.node(f"{name}_rotated")
    return op.RotaryEmbedding(
        match[name],
        *node.inputs[1:],
        _attributes=node.attributes,
        _version=node.version,
        num_heads=_count(match.node(f"{name}_heads")),
    )


PACK_TRANSPOSED_HEADS = Rule(
    "pack_transposed_heads",
    _pattern,
    _replace,
    _check,
    Level.EXTENDED,
    summary="Fold the reshapes and transposes that split and join heads into Attention.",
)
PACK_TRANSPOSED_HEADS_CACHE = Rule(
    "pack_transposed_heads_cache",
    _cache_pattern,
    _replace_cache,
    _check,
    Level.EXTENDED,
    summary="Fold the reshapes and transposes that split and join heads into an Attention that has keys and values of former runs.",
)
