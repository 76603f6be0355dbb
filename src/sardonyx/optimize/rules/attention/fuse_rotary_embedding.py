"""Find rotary position embeddings that are written out.

    y = Add(Mul(x, cos), Mul(Concat(Neg(b), a), sin))                                 ->      y = RotaryEmbedding(x, c, s)
    y = Add(Mul(x, cos), Mul(Concat(b, Neg(a)), sin))                                 ->      y = RotaryEmbedding(x, c, Neg(s))
    y = Concat(Sub(Mul(a, c), Mul(b, s)), Add(Mul(b, c), Mul(a, s)))                  ->      y = RotaryEmbedding(x, c, s)

where a and b are the first and the second elements of the pairs of x (rotary_pairs.py), and cos and sin hold c and s for both of
each pair (rotary_angles.py). Instead of Concat(p, q) pairs whose two lie next to each other, which is {interleaved}, have

    Reshape(Concat(Unsqueeze(p), Unsqueeze(q)))

x is (B, H, S, D) or (B, S, H, D), which the operator takes as (B, S, H x D). Where one batch of angles is for all, batches are seen
as more heads, or the angles are repeated: RotaryEmbedding has angles for each batch.

Left alone:
    x that has not four dimensions, or not known H and D
    cos and sin for single heads, or not known to be equal for both of a pair
    types other than float
    values between that have other users
"""

from __future__ import annotations

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import DataType
from sardonyx.ir import Dim, Shape, Value
from sardonyx.ops.views.slice import Concat
from sardonyx.optimize.contract import Level
from sardonyx.optimize.helpers.rotary_angles import HEADS, Angles, heads_axis_of, read_angles
from sardonyx.optimize.helpers.rotary_pairs import Pairs, read_pairs
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["FUSE_ROTARY_EMBEDDING", "FUSE_ROTARY_PAIRS"]

_VERSION = 23
"""Of RotaryEmbedding, which ai.onnx has had since then: read under it whatever the model's opset."""

_SHAPE_HAS_START = 15


@dataclasses.dataclass(frozen=True, slots=True)
class _Learned:
    """What is rotated, and by what."""

    pairs: Pairs
    shape: Shape
    """Of what is rotated, (…, D)."""
    heads_axis: int
    angles: tuple[Angles, Angles]
    """Cosines and sines."""
    angles_shape: Shape
    """Which they have in the graph."""
    is_backwards: bool = False
    """Whether it is rotated by the negative angles."""


def _pattern(op: PatternBuilder, x: Term, cos: Term, sin: Term, first: Term, second: Term) -> Term:
    backwards = op.Concat(second, op.Neg(first, _as="backwards"), _as="joined")
    halves = op.Concat(op.Neg(second), first, _as="joined")
    rotated = op.any_of(halves, backwards, op.Reshape(_stacked(op, op.Neg(second), first), op.rest("shape")))
    return op.Add(op.Mul(x, cos), op.Mul(rotated, sin))


def _stacked(op: PatternBuilder, first: Term, second: Term) -> Term:
    return op.Concat(_column(op, first, "left"), _column(op, second, "right"), _as="joined")


def _column(op: PatternBuilder, value: Term, name: str) -> Term:
    return op.any_of(op.Unsqueeze(value, op.rest(name)), op.Reshape(value, op.rest(name)))


def _pairs_pattern(op: PatternBuilder, first: Term, second: Term, cos: Term, sin: Term) -> Term:
    turned_first = op.Sub(op.Mul(first, cos), op.Mul(second, sin))
    turned_second = op.Add(op.Mul(second, cos), op.Mul(first, sin))
    return op.any_of(op.Concat(turned_first, turned_second, _as="joined"), _stacked(op, turned_first, turned_second))


def _check(match: Match) -> str | _Learned:
    x, overridable = match["x"], match.place.overridable
    pairs = read_pairs(match["first"], match["second"], overridable)
    if pairs is None or pairs.is_split or pairs.source is not x:
        return "what is rotated is not made of the pairs of x"
    cos, sin = (read_angles(match[name], overridable, is_alternating=pairs.is_alternating) for name in ("cos", "sin"))
    if cos is None or sin is None:
        return "cos and sin are not known to be equal for both of a pair"
    if match.outputs[0].shape != x.shape:
        return f"what is rotated is {match.outputs[0].shape}, x {x.shape}"
    learned = _learn(match, pairs, (cos, sin))
    return learned if isinstance(learned, str) else dataclasses.replace(learned, is_backwards=match.has("backwards"))


def _check_pairs(match: Match) -> str | _Learned:
    pairs = read_pairs(match["first"], match["second"], match.place.overridable)
    if pairs is None:
        return "what is rotated is not made of pairs"
    return _learn(match, pairs, (Angles(match["cos"]), Angles(match["sin"])))


def _learn(match: Match, pairs: Pairs, angles: tuple[Angles, Angles]) -> str | _Learned:
    first, cos, sin = match["first"], match["cos"], match["sin"]
    if first.dtype is not DataType.FLOAT or first.shape is None or len(first.shape) != 4:
        return f"x is {first.dtype}, its pairs {first.shape}; expected float of four dimensions"
    *outer, n = first.shape
    axis = heads_axis_of(cos.shape, first.shape)
    if axis is None or cos.shape is None or sin.shape != cos.shape:
        return f"cos and sin are {cos.shape} and {sin.shape}, expected those for all heads of pairs {first.shape}"
    if not isinstance(outer[axis], int) or not isinstance(n, int):
        return f"the pairs are {first.shape}, expected known heads"
    joined = match.node("joined")
    wanted = (*outer, n, 2) if pairs.is_alternating else (*outer, 2 * n)
    if joined.output.shape != wanted or Concat.of(joined).axis not in (-1, len(wanted) - 1):
        return "the pairs are not joined as they were parted"
    return _Learned(pairs, (*outer, 2 * n), axis, angles, cos.shape)


def _replace(op: Builder, match: Match, learned: _Learned) -> Value:
    x = learned.pairs.whole(op, len(learned.shape))
    is_alternating = learned.pairs.is_alternating
    build = _turn_heads if learned.heads_axis == HEADS else _turn_tokens
    cos, sin = (part.build(op, learned.angles_shape, learned.heads_axis, is_alternating=is_alternating) for part in learned.angles)
    return build(op, x, learned.shape, [cos, op.Neg(sin) if learned.is_backwards else sin], 1 if is_alternating else None)


def _replace_pairs(op: Builder, match: Match, learned: _Learned) -> Value:
    rotated = _replace(op, match, learned)
    shape = match.outputs[0].shape or ()
    return op.Reshape(rotated, [0, 0, 0, *shape[3:]]) if learned.pairs.is_alternating else rotated


def _turn_heads(op: Builder, x: Value, shape: Shape, angles: list[Value], interleaved: int | None) -> Value:
    """Return the value as (B, H, S, D)."""
    B, H, _, _ = shape
    if _batch_of(angles[0]) == B:
        return op.RotaryEmbedding(x, *angles, interleaved=interleaved, _version=_VERSION)
    merged = op.RotaryEmbedding(op.Reshape(x, [1, -1, 0, 0]), *angles, interleaved=interleaved, _version=_VERSION)
    return op.Reshape(merged, [-1, H, 0, 0])


def _turn_tokens(op: Builder, x: Value, shape: Shape, angles: list[Value], interleaved: int | None) -> Value:
    """Return the value as (B, S, H, D)."""
    B, _, H, D = shape
    if not isinstance(H, int) or not isinstance(D, int):
        raise ValueError(f"{H} heads of size {D} are not known")
    if _batch_of(angles[0]) != B:
        batch = op.Shape(_first_of_batch(x), start=0, end=1, _version=_SHAPE_HAS_START)
        angles = [op.Expand(value, op.Concat(batch, [1, 1], axis=0)) for value in angles]
    packed = op.Reshape(x, [0, 0, H * D])
    rotated = op.RotaryEmbedding(packed, *angles, interleaved=interleaved, num_heads=H, _version=_VERSION)
    return op.Reshape(rotated, [0, 0, H, D])


def _first_of_batch(value: Value) -> Value:
    """Return the first value on the way to `value` that has its batch, so that all layers ask the same one for it."""
    while value.producer is not None and value.producer.inputs:
        source = value.producer.inputs[0]
        if source is None or not source.shape or value.shape is None or source.shape[0] != value.shape[0]:
            break
        value = source
    return value


def _batch_of(angles: Value) -> Dim | None:
    return None if angles.shape is None else angles.shape[0]


FUSE_ROTARY_EMBEDDING = Rule(
    "fuse_rotary_embedding",
    _pattern,
    _replace,
    _check,
    Level.EXTENDED,
    summary="Replace a rotation of pairs by their cosines and sines, as a product with each of two vectors, by RotaryEmbedding.",
)
FUSE_ROTARY_PAIRS = Rule(
    "fuse_rotary_pairs",
    _pairs_pattern,
    _replace_pairs,
    _check_pairs,
    Level.EXTENDED,
    summary="Replace a rotation of pairs that is written out for both elements of each pair by RotaryEmbedding.",
)
