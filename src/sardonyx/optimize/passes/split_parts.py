"""Read all the parts of a value by one Split."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.ir import Graph, Model, Node, Value
from sardonyx.ir.walk import nested_graphs
from sardonyx.ops.views.gather import Gather
from sardonyx.ops.views.reduce import takes_axes_input
from sardonyx.ops.views.slice import Split
from sardonyx.optimize.contract import Context, Pass
from sardonyx.optimize.edit import Names, overridable_values, remove_dead, small_constant, take_over
from sardonyx.optimize.rule import Builder

__all__ = ["SPLIT_PARTS"]

_MOVES = ("Reshape", "Transpose")
"""What makes values whose elements are worth a Split."""


class _SplitParts:
    """Replace slices, and elements of a transposed or reshaped value taken by Gather, that are all of it together by one Split.

        a = Slice(x, 0, 2) {axis}                         a, b = Split(x, [2, 3]) {axis}
        b = Slice(x, 2, 5) {axis}                  ->

        x = Transpose(v)                                  x = Transpose(v)
        q = Gather(x, 0) {axis}                           s, t = Split(x, [1, 1]) {axis}
        k = Gather(x, 1) {axis}                    ->     q = Squeeze(s, [axis])
                                                          k = Squeeze(t, [axis])

    since kernels read through Transpose, Reshape, Split and Squeeze in place: so queries, keys and values of one product are not
    copied.

    Left alone: parts that overlap or leave something out; steps other than 1; indices and limits that are no constants; an axis
    of unknown size; slices of more than one axis; a value of which there is only one part; elements of what neither Transpose nor
    Reshape made, where a Gather is as good.

    Holds before: shapes inferred. Cost: O(nodes).
    """

    name = "split_parts"
    aliases = ("GatherSliceToSplitFusion",)

    def run(self, model: Model, context: Context) -> bool:
        """Replace; whether any was."""
        look = _Look(model)
        changed = False
        for graph in nested_graphs(model.graph):
            changed |= look.clean(graph)
        return changed


SPLIT_PARTS: Pass = _SplitParts()


@dataclasses.dataclass(frozen=True, slots=True)
class _Part:
    """What a node takes of a value."""

    axis: int
    first: int
    end: int
    """Behind the last."""
    is_element: bool
    """Whether the axis goes."""
    node: Node


class _Look:
    """One run: what counts as a constant, and new names."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._overridable = overridable_values(model)
        self._names: Names | None = None

    def clean(self, graph: Graph) -> bool:
        changed, seen = False, set[Value]()
        for node in list(graph):
            value = node.inputs[0] if node.op_type in _READERS and not node.domain and node.inputs else None
            if value is None or value in seen or value.use_count < 2 or value.constant is not None:
                continue
            seen.add(value)
            parts = self._whole(graph, value)
            if parts is not None:
                self._split(node, value, parts)
                changed = True
        return changed

    def _whole(self, graph: Graph, value: Value) -> list[_Part] | None:
        """Return the parts along the first axis along which they are together all of the value, in order.

        None if there is no such.
        """
        along: dict[int, list[_Part]] = {}
        for user, index in value.uses:
            part = self._part(user, value) if isinstance(user, Node) and user.graph is graph and index == 0 else None
            if part is not None:
                along.setdefault(part.axis, []).append(part)
        shape = value.shape or ()
        ordered = [sorted(parts, key=lambda part: part.first) for parts in along.values()]
        return next((parts for parts in ordered if len(parts) > 1 and _covers(parts, shape[parts[0].axis])), None)

    def _part(self, node: Node, value: Value) -> _Part | None:
        read = None if node.domain else _READERS.get(node.op_type)
        return None if read is None or value.shape is None else read(self, node, len(value.shape), value)

    def constant(self, node: Node, index: int, attribute: str) -> list[int] | None:
        """Return the integers of an input, or of the attribute that older versions have in its place."""
        given = node.integers(attribute)
        if given is not None:
            return list(given)
        array = small_constant(node.input(index), self._overridable)
        return None if array is None or array.ndim != 1 else [int(item) for item in array]

    def index(self, node: Node) -> int | None:
        """Return the index of a Gather of one element, else None."""
        array = small_constant(node.input(1), self._overridable, max_elements=1)
        return None if array is None or array.size != 1 or array.ndim > 1 else int(array.reshape(()))

    def _split(self, first: Node, value: Value, parts: list[_Part]) -> None:
        op = Builder(first, self._model.opset_imports, self._fresh)
        sizes, axis = [part.end - part.first for part in parts], parts[0].axis
        if Split.takes_sizes_input(op.version("", "Split")):
            made = op.outputs("Split", len(parts), value, np.array(sizes, np.int64), axis=axis)
        else:
            made = op.outputs("Split", len(parts), value, axis=axis, split=sizes)
        taken = [_without_axis(op, output, axis) if part.is_element else output for part, output in zip(parts, made, strict=True)]
        for part, new in zip(parts, taken, strict=True):
            old = part.node.outputs[0]
            if old.type is not None:
                new.type = old.type
            take_over(old, new, op.version())
            remove_dead([part.node])

    def _fresh(self, base: str) -> str:
        if self._names is None:
            self._names = Names.of(self._model)
        return self._names.fresh(base)


def _without_axis(op: Builder, value: Value, axis: int) -> Value:
    if takes_axes_input("Squeeze", op.version("", "Squeeze")):
        return op.Squeeze(value, np.array([axis], np.int64))
    return op.Squeeze(value, axes=[axis])


def _covers(parts: list[_Part], size: object) -> bool:
    """Return whether parts, ordered by their first element, are all of an axis of `size`, one after the other."""
    place = 0
    for part in parts:
        if part.first != place or part.end <= place:
            return False
        place = part.end
    return place == size


def _read_slice(look: _Look, node: Node, rank: int, value: Value) -> _Part | None:
    starts, ends = look.constant(node, 1, "starts"), look.constant(node, 2, "ends")
    has_axes = node.input(3) is not None or "axes" in node.attributes
    axes = look.constant(node, 3, "axes") if has_axes else [0]
    steps = [1] if node.input(4) is None else look.constant(node, 4, "steps")
    if starts is None or ends is None or axes is None or steps != [1] or not len(starts) == len(ends) == len(axes) == 1:
        return None
    axis = axes[0] % rank
    size = (value.shape or ())[axis]
    if not isinstance(size, int):
        return None
    first, end = (min(max(place + size if place < 0 else place, 0), size) for place in (starts[0], ends[0]))
    return _Part(axis, first, end, False, node)


def _read_gather(look: _Look, node: Node, rank: int, value: Value) -> _Part | None:
    axis, index = Gather.of(node).place(rank), look.index(node)
    size = (value.shape or ())[axis]
    if index is None or not isinstance(size, int) or value.producer is None or value.producer.op_type not in _MOVES:
        return None
    place = index + size if index < 0 else index
    indices = node.inputs[1]
    return _Part(axis, place, place + 1, indices is None or indices.shape == (), node)


_READERS: dict[str, Callable[[_Look, Node, int, Value], _Part | None]] = {"Gather": _read_gather, "Slice": _read_slice}
"""By operator, what a node takes."""
