"""Replace embeddings that are gathered, added and normalized by EmbedLayerNormalization of com.microsoft.

    LayerNormalization(Gather(words, ids) + Gather(positions, places), gamma, beta)
    LayerNormalization(Gather(words, ids) + Gather(kinds, segments) + Gather(positions, places), gamma, beta)

        ->      com.microsoft.EmbedLayerNormalization(ids, segments, words, positions, kinds, gamma, beta, _, places)

in any order of the sum. Places that are 0, 1, 2 … for each batch are left out; ids become int32, which is what the operator takes.

Left alone:
    types other than float and float16; tables that are no constants; other axes
    ids of other than two dimensions, segments of another shape, places that do not fit the ids
    parts that others read, and normalizations whose statistics are used

The operator refuses ids below 0, which Gather counts from the end.
"""

from __future__ import annotations

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import DataType
from sardonyx.ir import Dim, Node, Value
from sardonyx.ir.shape import minimum
from sardonyx.ops.views.normalize import LayerNormalization
from sardonyx.optimize.contract import Level
from sardonyx.optimize.edit import small_constant
from sardonyx.optimize.helpers.activation import fused_type_reason
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import microsoft
from sardonyx.optimize.terms import Term

__all__ = ["FUSE_EMBEDDING"]

_MOST_PLACES = 1 << 16
_EPSILON = 1e-5
"""That of a LayerNormalization without one, also under operator sets that do not list it."""
_OUTPUTS = 2
"""The normalized sum and counts of the mask: onnxruntime 1.31 refuses nodes that have only the former."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Roles:
    """Which Gather looks up what."""

    words: Node
    """The words."""
    positions: Node
    """Their positions."""
    kinds: Node | None
    """Their segments."""
    counts: bool
    """Whether the places are 0, 1, 2 … for each batch."""


def _lookup(op: PatternBuilder, name: str) -> Term:
    return op.Gather(op.constant(f"{name}_table"), op.optional(f"{name}_ids"), axis=0, _as=name)


def _pattern(op: PatternBuilder, gamma: Term, beta: Term) -> Term:
    first, second, third = (_lookup(op, name) for name in ("first", "second", "third"))
    pair = op.Add(first, second, _ordered=True)
    total = op.any_of(op.Add(pair, third), pair)
    return op.LayerNormalization(total, gamma, beta)


def _check(match: Match) -> str | _Roles:
    nodes = [match.node(name) for name in ("first", "second", "third") if match.has(name)]
    tables = [node.inputs[0] for node in nodes]
    result, view = match.outputs[0].shape, LayerNormalization.of(match.root)
    if result is None or len(result) != 3 or view.axis not in (-1, 2):
        return f"the result is {result}, expected three dimensions, normalized along the last"
    if any(table is None or table.shape is None or len(table.shape) != 2 for table in tables):
        return "a table has other than two dimensions"
    gamma, beta = match["gamma"].shape, match["beta"].shape
    if not view.stashes_float or not gamma == beta == result[2:]:
        return f"scale and shift are {gamma} and {beta}, expected {result[2:]} and sums in float"
    reason = fused_type_reason(match.outputs[0], match["gamma"], *(table for table in tables if table is not None))
    return reason or _roles(nodes, result[:2])


def _roles(nodes: list[Node], shape: tuple[Dim, ...]) -> str | _Roles:
    """Return which input is which: tokens and segments have ids of `shape`, positions may be the same for each batch."""
    counting = [node for node in nodes if _counts(node.inputs[1], shape[1])]
    shared = [node for node in nodes if _shape_of(node) == (1, shape[1])]
    positions = next(iter([*counting, *shared, nodes[-1]]))
    others = [node for node in nodes if node is not positions]
    if any(_shape_of(node) != shape for node in others):
        return f"ids have shapes {[_shape_of(node) for node in nodes]}, expected {shape} but for the positions"
    counts = positions in counting
    if not counts and _shape_of(positions) not in (shape, (1, shape[1])):
        return f"the places have shape {_shape_of(positions)}, expected {shape} or one row"
    return _Roles(others[0], positions, others[1] if len(others) > 1 else None, counts)


def _shape_of(node: Node) -> tuple[Dim, ...] | None:
    """Return the shape of the ids of a Gather."""
    ids = node.inputs[1]
    return None if ids is None else ids.shape


def _counts(ids: Value | None, length: Dim) -> bool:
    """Return whether ids are 0, 1, 2 … up to `length`, in one row: made by Range, or the first of such a constant."""
    node = None if ids is None else ids.producer
    if ids is None or node is None or node.domain or ids.shape is None or ids.shape[:-1] not in ((), (1,)):
        return False
    if node.op_type == "Unsqueeze":
        return _counts(node.inputs[0], length)
    if node.op_type == "Range":
        limits = [small_constant(node.input(index), max_elements=1) for index in (0, 2)]
        return ids.shape[-1] == length and [None if limit is None else int(limit.reshape(())) for limit in limits] == [0, 1]
    return node.op_type == "Slice" and _slice_counts(node, ids.shape[-1], length)


def _slice_counts(node: Node, size: Dim, length: Dim) -> bool:
    """Return whether a Slice takes the first numbers of a row of 0, 1, 2 …, as many as there are ids, or all."""
    source, starts, axes = (small_constant(node.input(index), max_elements=_MOST_PLACES) for index in (0, 1, 3))
    steps = small_constant(node.input(4)) if node.input(4) is not None else np.ones(1)
    if source is None or starts is None or axes is None or steps is None or source.shape[:-1] not in ((), (1,)):
        return False
    is_row = np.array_equal(source.reshape(-1), np.arange(source.size)) and starts.tolist() == [0] and steps.tolist() == [1]
    fits = size == length or (source.size > 1 and size == minimum(source.size, length))
    return is_row and axes.tolist() in ([-1], [source.ndim - 1]) and fits


def _replace(op: Builder, match: Match, roles: _Roles) -> Value:
    kinds = (None, None) if roles.kinds is None else (roles.kinds.inputs[0], _small(op, roles.kinds.inputs[1]))
    places = [] if roles.counts else [None, _small(op, roles.positions.inputs[1])]
    words, ids = roles.words.inputs[:2]
    inputs = [_small(op, ids), kinds[1], words, roles.positions.inputs[0], kinds[0], match["gamma"], match["beta"], *places]
    epsilon = LayerNormalization.of(match.root).epsilon
    return op.outputs("EmbedLayerNormalization", _OUTPUTS, *inputs, _domain="com.microsoft", epsilon=epsilon)[0]


def _small(op: Builder, ids: Value | None) -> Value | None:
    """Return ids in int32."""
    return ids if ids is None or ids.dtype is DataType.INT32 else op.Cast(ids, to=int(DataType.INT32))


FUSE_EMBEDDING = Rule(
    "fuse_embedding",
    _pattern,
    _replace,
    _check,
    Level.EXTENDED,
    makes=microsoft("EmbedLayerNormalization"),
    aliases=("EmbedLayerNormFusion",),
)
