"""Two transposes with reshapes between them, as one.

    x ─ Transpose ─ Reshape ─ Transpose ─ y      becomes      x ─ Reshape ─ Transpose ─ Reshape ─ y

    (B, S, H * D) -> (S, B, H * D) -> (S, B * H, D) -> (B * H, S, D)
    becomes
    (B, S, H * D) -> (B, S, H, D) -> (B, H, S, D) -> (B * H, S, D)

The dimensions on both sides of the reshapes are cut into factors that they have in common. The factors of x, in their order, are
what the first Reshape makes; those that stay neighbours on both sides are left together. A Reshape that changes nothing is left
out, and so is a transpose that moves nothing.

Left alone: values between with other readers, dimensions of 0, those that have no common factors, and targets that need more than
one dimension to be found at run time.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.ir import Dim, Node, Shape, TensorType, Value
from sardonyx.ir.shape import product
from sardonyx.optimize.transposes.edit import Edit
from sardonyx.optimize.transposes.permutation import Permutation, inverse, permutation_of, permuted
from sardonyx.optimize.transposes.reshape import numbers_for

__all__ = ["merge_across_reshape"]

_RESHAPING = ("Flatten", "Reshape", "Squeeze", "Unsqueeze")


@dataclasses.dataclass(frozen=True, slots=True)
class _Merged:
    """What stands in place of two transposes and the reshapes between them."""

    split: Shape
    """The shape that the first Reshape makes."""
    numbers: list[int]
    """The numbers that say so."""
    permutation: Permutation
    """What is transposed then."""
    last: list[int]
    """The numbers for the last Reshape."""


def merge_across_reshape(edit: Edit, transpose: Node, offered: Collection[Node]) -> bool:
    """Make one transpose of `transpose` and of another behind whose result there are but reshapes of `offered`; whether it was."""
    permutation, after = permutation_of(transpose), transpose.inputs[0] if transpose.inputs else None
    before = None if after is None else _source(after, offered)
    found = edit.transpose_of(before)
    if permutation is None or after is None or before is None or before is after or found is None or before.use_count > 1:
        return False
    first, x = found
    merged = _merged(x.shape, first, before.shape, after.shape, permutation)
    result = transpose.output
    if merged is None or x.shape is None or x.dtype is None or result.shape is None:
        return False
    value = _reshaped(edit, transpose, x, merged.split, merged.numbers)
    if merged.permutation != tuple(range(len(merged.permutation))):
        moved = Node("Transpose", [value], 1, {"perm": merged.permutation}, version=transpose.version, name=transpose.name)
        moved.output.type = TensorType(x.dtype, permuted(merged.split, merged.permutation))
        value = edit.graph.insert_before(transpose, moved).output
    result.replace_all_uses_with(_reshaped(edit, transpose, value, result.shape, merged.last))
    _remove_up_to(edit, transpose, x)
    return True


def _remove_up_to(edit: Edit, node: Node, x: Value) -> None:
    """Remove `node`, which nobody reads any more, and all between it and `x`."""
    value: Value | None = node.output
    while value is not None and value is not x and value.producer is not None:
        node = value.producer
        value = node.inputs[0]
        edit.graph.remove(node)


def _source(value: Value, offered: Collection[Node]) -> Value:
    """Return what `value` is a reshaped form of, by way of reshapes of `offered` that nobody else reads."""
    node = value.producer
    while node is not None and node.op_type in _RESHAPING and not node.domain and node in offered and value.use_count == 1:
        if node.inputs[0] is None:
            break
        value = node.inputs[0]
        node = value.producer
    return value


def _reshaped(edit: Edit, place: Node, value: Value, shape: Shape, numbers: Sequence[int]) -> Value:
    if value.shape == shape or value.dtype is None:
        return value
    node = Node("Reshape", [value, edit.integers(numbers, "shape")], 1, version=13, name=f"{place.name}/reshaped")
    node.output.type = TensorType(value.dtype, shape)
    return edit.graph.insert_before(place, node).output


def _merged(x: Shape | None, first: Permutation, before: Shape | None, after: Shape | None, second: Permutation) -> _Merged | None:
    if x is None or before is None or after is None or any(dim == 0 for dim in (*before, *after)):
        return None
    factors: list[Dim] = []
    cut = _common_factors(before, after, factors)
    if cut is None:
        return None
    made = [factor for axis in inverse(first) for factor in cut[0][axis]]
    wanted = [factor for axis in second for factor in cut[1][axis]]
    runs = _runs(made, wanted)
    split = tuple(product(factors[factor] for factor in run) for run in runs)
    if [dim for dim in x if dim != 1] == list(split):
        runs, split = _with_ones(x, runs), x
    place = {run[0]: index for index, run in enumerate(runs) if run}
    moved = [place[factor] for factor in wanted if factor in place]
    permutation = (*moved, *(index for index, run in enumerate(runs) if not run))
    numbers, last = numbers_for(x, split), numbers_for(permuted(split, permutation), permuted(after, second))
    return None if numbers is None or last is None else _Merged(split, numbers, permutation, last)


def _with_ones(x: Shape, runs: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return `runs`, one for each dimension of `x`, empty where that is 1."""
    rest = iter(runs)
    return [[] if dim == 1 else list(next(rest)) for dim in x]


def _common_factors(before: Shape, after: Shape, factors: list[Dim]) -> tuple[list[list[int]], list[list[int]]] | None:
    """Return the factors of each dimension before and after, by number; their sizes are appended to `factors`."""
    cut: tuple[list[list[int]], list[list[int]]] = [[] for _ in before], [[] for _ in after]
    left, right = ([(axis, dim) for axis, dim in enumerate(shape) if dim != 1][::-1] for shape in (before, after))
    while left and right:
        (i, one), (j, other) = left.pop(), right.pop()
        factor = other if _times(other, one) is not None else one
        rests = _times(factor, one), _times(factor, other)
        if None in rests:
            return None
        cut[0][i].append(len(factors))
        cut[1][j].append(len(factors))
        factors.append(factor)
        for waiting, axis, rest in ((left, i, rests[0]), (right, j, rests[1])):
            if rest is not None and rest != 1:
                waiting.append((axis, rest))
    return None if left or right else cut


def _times(factor: Dim, dim: Dim) -> Dim | None:
    """Return how often `factor` goes into `dim`; None where it does not."""
    quotient = dim // factor
    return quotient if quotient * factor == dim else None


def _runs(made: Sequence[int], wanted: Sequence[int]) -> list[list[int]]:
    """Return `made`, cut where two neighbours are none in `wanted`."""
    follower = dict(itertools.pairwise(wanted))
    runs: list[list[int]] = []
    for factor in made:
        if runs and follower.get(runs[-1][-1]) == factor:
            runs[-1].append(factor)
        else:
            runs.append([factor])
    return runs
