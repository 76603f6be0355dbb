"""Replace a Slice of a Concat by the input of the Concat that it takes.

    Slice(Concat(a, b, c) {axis}, where b is)            ->      b

Left alone:
    slices of other axes, with steps other than 1, with limits that are no constants, or in attributes (before opset 10)
    parts whose places are not known, and slices that are not just one part
Concat stays where it has other users.
"""

from __future__ import annotations

from sardonyx.ir import Dim, Value
from sardonyx.ops.views.slice import Concat
from sardonyx.optimize.edit import small_constant
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["DROP_SLICE_OF_CONCAT"]

_FAR = 2**31 - 1
"""An end from which on a slice goes to the end."""


def _pattern(op: PatternBuilder) -> Term:
    return op.Slice(op.Concat(op.rest("parts"), _as="concat", _shared=True), op.rest("places"))


def _check(match: Match) -> str | Value:
    limits = _limits(match)
    if isinstance(limits, str):
        return limits
    axis, start, end = limits
    place: Dim = 0
    parts = [part for part in match.rest("parts") if part is not None and part.shape is not None]
    if len(parts) != len(match.rest("parts")):
        return "the shape of a part is not known"
    for index, part in enumerate(parts):
        size = (part.shape or ())[axis]
        is_last = index == len(parts) - 1
        if place == start and (end == place + size or (is_last and end >= _FAR)):
            return part
        place = place + size
    return f"{start} to {end} is not one of the parts"


def _limits(match: Match) -> tuple[int, int, int] | str:
    """Return the axis, the first element and the end of the slice; or why they are not known."""
    node, concat = match.root, match.node("concat")
    shape = concat.output.shape
    arrays = [small_constant(node.input(index), match.place.overridable) for index in (1, 2, 3, 4)]
    starts, ends, axes, steps = (None if array is None else [int(item) for item in array.reshape(-1)] for array in arrays)
    if shape is None or starts is None or ends is None or axes is None or len(starts) != 1 or (steps != [1] and node.input(4)):
        return "the limits are no constants, of several axes, or with steps"
    axis = Concat.of(concat).place(len(shape))
    if axes[0] % len(shape) != axis or starts[0] < 0:
        return "the slice is along another axis, or starts from behind"
    size = shape[axis]
    end = ends[0]
    if isinstance(size, int):
        end = min(end + size if end < 0 else end, size)
    return "the slice ends from behind" if end < 0 else (axis, starts[0], end)


def _replace(op: Builder, match: Match, part: Value) -> Value:
    return part


DROP_SLICE_OF_CONCAT = Rule("drop_slice_of_concat", _pattern, _replace, _check, aliases=("ConcatSliceElimination",))
