"""Find rotary position embeddings that are written out.

    a, b = Split(x) {axis = -1}
    y = Add(Mul(x, cos), Mul(Concat(Neg(b), a), sin))            ->      y = RotaryEmbedding(x, c, s)

with cos = Unsqueeze(Cos(Concat(angles, angles)), 1), and c = Cos(angles), or likewise for anything that is done to each half alike
(_STEPS), as far back as to a Concat of one value with itself or a constant of equal halves; s from sin in the same way.

    r, p = Split(x); Concat(RotaryEmbedding(r, c, s), p)         ->      RotaryEmbedding(x, c, s) {rotary_embedding_dim}

Where one batch of angles is for all, batches are seen as more heads: RotaryEmbedding has angles for each batch.

Left alone:
    x that is not (B, H, S, D) with known H and D
    cos and sin that are not (B, 1, S, D) or (1, 1, S, D), or whose halves are not known to be equal
    types other than float
    values between that have other users
"""

from __future__ import annotations

import dataclasses

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.ir import Node, Shape, Value
from sardonyx.ir.shape import product
from sardonyx.optimize.contract import Level
from sardonyx.optimize.edit import small_constant, tensor_of
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["FUSE_PARTIAL_ROTARY_EMBEDDING", "FUSE_ROTARY_EMBEDDING"]

_VERSION = 23
"""Of RotaryEmbedding, which ai.onnx has had since then: read under it whatever the model's opset."""

_STEPS = frozenset(["Cast", "Cos", "Gather", "Mul", "Sin", "Unsqueeze"])
"""Operators that do to each half of their first input the same; Mul by one number, Gather of rows, Unsqueeze of other axes."""

_LARGEST_TABLE = 1 << 24


def _pattern(op: PatternBuilder, x: Term, cos: Term, sin: Term) -> Term:
    first, second = op.outputs(op.Split(x, op.rest("sizes"), _as="split"), 2)
    turned = op.Concat(op.Neg(second), first, _as="concat")
    return op.Add(op.Mul(x, cos), op.Mul(turned, sin))


@dataclasses.dataclass(frozen=True, slots=True)
class _Half:
    """Half of cos or sin: `base`, and what is done to it."""

    base: Value
    """What both halves are made of; a constant with both halves."""
    steps: tuple[Node, ...]
    """From `base` on, in order."""
    is_constant: bool


def _check(match: Match) -> str | tuple[_Half, _Half]:
    x, split, concat = match["x"], match.node("split"), match.node("concat")
    if x.dtype is not DataType.FLOAT or x.shape is None or len(x.shape) != 4:
        return f"x is {x.dtype} {x.shape}, expected float of four dimensions"
    H, D = x.shape[1], x.shape[3]
    if not isinstance(H, int) or not isinstance(D, int):
        return f"x is {x.shape}, expected known heads"
    halves = [value.shape[3:] if value.shape is not None else None for value in split.outputs]
    if halves != [(D // 2,), (D // 2,)] or len(split.outputs) != 2 or concat.get("axis") not in (-1, 3):
        return "x is not split into halves of its last dimension, or not joined there"
    found = []
    for name in ("cos", "sin"):
        value = match[name]
        if value.shape not in ((x.shape[0], 1, x.shape[2], D), (1, 1, x.shape[2], D)):
            return f"{name} is {value.shape}, expected {(x.shape[0], 1, x.shape[2], D)}"
        half = _halved(value, match.place.overridable)
        if half is None:
            return f"the halves of {name} are not known to be equal"
        found.append(half)
    if match["cos"].shape != match["sin"].shape:
        return "cos and sin differ in shape"
    return found[0], found[1]


def _halved(value: Value, overridable: frozenset[Value]) -> _Half | None:
    """The first half of a value whose halves are equal; None where that is not known."""
    tensor = tensor_of(value, overridable)
    if tensor is not None:
        array = tensor.numpy() if tensor.size <= _LARGEST_TABLE else None
        half = 0 if array is None or array.ndim == 0 else array.shape[-1] // 2
        is_equal = array is not None and half > 0 and np.array_equal(array[..., :half], array[..., half:])
        return _Half(value, (), True) if is_equal else None
    node = value.producer
    if node is None or node.domain or value.shape is None or not node.inputs or node.inputs[0] is None:
        return None
    if node.op_type == "Concat":
        is_twice = len(node.inputs) == 2 and node.inputs[0] is node.inputs[1] and node.get("axis") in (-1, len(value.shape) - 1)
        return _Half(node.inputs[0], (), False) if is_twice else None
    if node.op_type not in _STEPS or not _keeps_halves(node, overridable):
        return None
    before = _halved(node.inputs[0], overridable)
    return None if before is None else dataclasses.replace(before, steps=(*before.steps, node))


def _keeps_halves(node: Node, overridable: frozenset[Value]) -> bool:
    value, result = node.inputs[0], node.output
    if value is None or value.shape is None or result.shape is None:
        return False
    if node.op_type == "Mul":
        factor = small_constant(node.inputs[1], overridable, max_elements=1)
        return factor is not None and factor.size == 1 and value.shape == result.shape
    if node.op_type == "Gather":
        return len(value.shape) == 2 and node.get("axis", 0) == 0
    return node.op_type != "Unsqueeze" or value.shape[-1] == result.shape[-1]


def _replace(op: Builder, match: Match, halves: tuple[_Half, _Half]) -> Value:
    x = match["x"]
    B, H, _, D = x.shape or ()
    angles = [_as_angles(op, half, int(str(D)) // 2) for half in halves]
    if (match["cos"].shape or ())[0] == B:
        return op.RotaryEmbedding(x, *angles, _version=_VERSION)
    turned = op.RotaryEmbedding(op.Reshape(x, [1, -1, 0, 0]), *angles, _version=_VERSION)
    return op.Reshape(turned, [-1, H, 0, 0])


def _as_angles(op: Builder, half: _Half, size: int) -> Value:
    """The half again, as (B, S, D / 2)."""
    value = half.base
    if half.is_constant:
        tensor = tensor_of(half.base)
        if tensor is None:
            raise ValueError(f"{half.base!r} is no constant")
        value = op.constant(np.ascontiguousarray(tensor.numpy()[..., :size]))
    for node in half.steps:
        value = op.node(node.op_type, value, *node.inputs[1:], _attributes=node.attributes, _version=node.version)
    return op.Squeeze(value, np.array([1]), _version=13)


def _partial_pattern(op: PatternBuilder, x: Term, cos: Term, sin: Term) -> Term:
    turned, kept = op.outputs(op.Split(x, op.rest("sizes"), _as="split"), 2)
    merged = op.RotaryEmbedding(op.Reshape(turned, op.rest("merged")), cos, sin, _as="rotary")
    turned_back = op.Reshape(merged, op.rest("back"), _as="back")
    return op.Concat(op.any_of(op.RotaryEmbedding(turned, cos, sin, _as="rotary"), turned_back), kept)


def _check_partial(match: Match) -> str | int:
    x, split = match["x"], match.node("split")
    sizes = [value.shape for value in split.outputs]
    if x.shape is None or len(x.shape) != 4 or any(size is None or size[:3] != x.shape[:3] for size in sizes):
        return f"x is {x.shape}, expected four dimensions, of which the last is split"
    turned = (sizes[0] or ())[3]
    if match.root.get("axis") not in (-1, 3) or not isinstance(turned, int) or len(split.outputs) != 2:
        return "the parts are not joined as they were split"
    rotary = match.node("rotary")
    if rotary.get("rotary_embedding_dim", 0) or match.root.inputs[0] is None or match.root.inputs[0].shape != sizes[0]:
        return "it turns a part only, or gives another shape"
    merged = rotary.inputs[0]
    is_same = merged is not None and (merged is split.outputs[0] or _merges_batches(merged, sizes[0]))
    return turned if is_same else "the reshape before does not see batches as heads"


def _merges_batches(value: Value, shape: Shape | None) -> bool:
    """Whether `value` is one of this shape, (B, H, S, D), as (1, B x H, S, D)."""
    return value.shape is not None and shape is not None and value.shape == (1, product(shape[:2]), *shape[2:])


def _replace_partial(op: Builder, match: Match, turned: int) -> Value:
    node, x, split = match.node("rotary"), match["x"], match.node("split")
    is_merged = node.inputs[0] is not split.outputs[0]
    made = op.RotaryEmbedding(op.Reshape(x, [1, -1, 0, 0]) if is_merged else x, match["cos"], match["sin"],
                              _attributes=node.attributes, _version=node.version, rotary_embedding_dim=turned)  # fmt: skip
    return op.Reshape(made, [-1, (x.shape or ())[1], 0, 0]) if is_merged else made


FUSE_ROTARY_EMBEDDING = Rule("fuse_rotary_embedding", _pattern, _replace, _check, Level.EXTENDED)
FUSE_PARTIAL_ROTARY_EMBEDDING = Rule(
    "fuse_partial_rotary_embedding", _partial_pattern, _replace_partial, _check_partial, Level.EXTENDED
)  # fmt: skip
