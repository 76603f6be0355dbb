"""Transposes through Reshape, where it splits or merges dimensions that a transpose moves together.

    x (N, H, W, C) -> Transpose -> (N, C, H, W) -> Reshape -> (N, C, H * W)
    becomes
    x (N, H, W, C) -> Reshape -> (N, H * W, C) -> Transpose -> (N, C, H * W)

A transpose behind a Reshape is pulled through it in the same way where another stands in front, so that the two become one:

    x ─ Transpose ─ Reshape ─ Transpose ─ y      becomes      x ─ Transpose ─ Reshape ─ y

The dimensions before and after are cut into the smallest groups of equal products; a group is moved whole. A group whose
dimensions lie apart in x, or in another order, cannot be: that Reshape is left alone. So are dimensions of 0, of unknown size
on both sides of a cut, and a target that needs more than one dimension to be found at run time.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.ir import Node, Shape, TensorType
from sardonyx.ops.views.reshape import Reshape
from sardonyx.optimize.transposes.edit import Edit
from sardonyx.optimize.transposes.handler import Handler
from sardonyx.optimize.transposes.permutation import Permutation, inverse, permutation_of, permuted

__all__ = ["RESHAPES", "Mixed", "mixed_into_last", "numbers_for", "pull_through_reshape", "transpose_later"]


@dataclasses.dataclass(frozen=True, slots=True)
class _Block:
    """Dimensions of the input that together become dimensions of the output."""

    before: tuple[int, ...]
    """Axes of the input that are not 1."""
    after: tuple[int, ...]
    """Axes of the output, with those that are 1."""


@dataclasses.dataclass(frozen=True, slots=True)
class Mixed:
    """A Reshape whose last dimension has the dimensions of a transposed image, in another order than the image itself."""

    numbers: list[int]
    """The shape for Reshape."""
    order: list[int]
    """For each place of the last dimension, when the image is not transposed, the place that the element had."""


def _blocks(before: Shape, after: Shape) -> list[_Block] | None:
    """Return the smallest groups of equal products; None where sizes cannot be compared."""
    inner = [axis for axis, dim in enumerate(before) if dim != 1]
    found: list[_Block] = []
    i = j = 0
    while i < len(inner):
        left = itertools.accumulate((before[axis] for axis in inner[i:]), operator.mul)
        right = [*enumerate(itertools.accumulate(after[j:], operator.mul), j + 1)]
        ends = [(k, m) for k, size in enumerate(left, i + 1) for m, other in right if size == other]
        if not ends:
            return None
        k, m = min(ends, key=sum)
        found.append(_Block(tuple(inner[i:k]), tuple(range(j, m))))
        i, j = k, m
    if any(dim != 1 for dim in after[j:]) or not found:
        return None
    found[-1] = dataclasses.replace(found[-1], after=(*found[-1].after, *range(j, len(after))))
    return found


def _order(blocks: Sequence[_Block], permutation: Permutation, shape: Shape) -> list[_Block] | None:
    """Return the groups in the order in which they lie before the transpose; None where one does not lie there as a whole."""
    kept = [axis for axis in inverse(permutation) if shape[axis] != 1]
    place = {axis: index for index, axis in enumerate(kept)}
    for block in blocks:
        places = [place[axis] for axis in block.before]
        if places != list(range(places[0], places[0] + len(places))):
            return None
    return sorted(blocks, key=lambda block: place[block.before[0]])


def numbers_for(source: Shape, target: Shape) -> list[int] | None:
    """Return the numbers for Reshape that make `target` of `source`: one may be -1, others 0 where they stay.

    None where none do.
    """
    numbers: list[int] = []
    for index, dim in enumerate(target):
        if isinstance(dim, int):
            numbers.append(dim)
        elif index < len(source) and source[index] == dim:
            numbers.append(0)
        else:
            numbers.append(-1)
    return numbers if numbers.count(-1) <= 1 else None


def _has_zero(shape: Shape) -> bool:
    return any(dim == 0 for dim in shape)


def transpose_later(
    before: Shape | None, after: Shape | None, permutation: Permutation
) -> tuple[Shape, list[int], Permutation] | None:
    """Return what a Reshape from `before`, which a transpose by `permutation` makes, to `after` is with the transpose behind it.

    The shape that it makes, the numbers that say so, and the permutation of what comes behind; None where it cannot be.
    """
    if before is None or after is None or _has_zero(before) or _has_zero(after):
        return None
    blocks = _blocks(before, after)
    ordered = None if blocks is None else _order(blocks, permutation, before)
    if ordered is None:
        return None
    axes = tuple(axis for block in ordered for axis in block.after)
    shape = tuple(after[axis] for axis in axes)
    numbers = numbers_for(permuted(before, inverse(permutation)), shape)
    return None if numbers is None else (shape, numbers, inverse(axes))


def _has_target_input(node: Node) -> bool:
    """Return whether a node is a Reshape whose target is an input, or a Flatten."""
    return node.op_type == "Flatten" or (node.op_type == "Reshape" and Reshape.of(node).takes_input)


def mixed_into_last(node: Node, permutation: Permutation) -> Mixed | None:
    """Return how a Reshape or Flatten of what `permutation` made can read the elements of its last dimension in another order.

    None where it moves dimensions otherwise, or is another operator.
    """
    data, result = node.input(0), node.outputs[0]
    before, after = None if data is None else data.shape, result.shape
    if node.domain or not _has_target_input(node) or before is None or after is None:
        return None
    if _has_zero(before) or _has_zero(after):
        return None
    *others, last = _blocks(before, after) or (None,)
    if last is None or [axis for axis in last.after if after[axis] != 1] != [len(after) - 1]:
        return None
    kept = [axis for axis in inverse(permutation) if before[axis] != 1]
    whole = [axis for block in others for axis in block.before]
    sizes = [dim for axis in last.before if isinstance(dim := before[axis], int)]
    numbers = numbers_for(permuted(before, inverse(permutation)), after)
    if kept[: len(whole)] != whole or len(sizes) < len(last.before) or numbers is None:
        return None
    places = np.arange(math.prod(sizes)).reshape(sizes)
    return Mixed(numbers, places.transpose([last.before.index(axis) for axis in kept[len(whole) :]]).ravel().tolist())


def _reshape(edit: Edit, node: Node, permutation: Permutation) -> bool:
    result = node.outputs[0]
    data = node.inputs[0]
    plan = transpose_later(None if data is None else data.shape, result.shape, permutation) if _has_target_input(node) else None
    if plan is None or result.dtype is None:
        return False
    shape, numbers, behind = plan
    edit.bring_whole(node, 0, permutation)
    node.replace_input(1, edit.integers(numbers, "shape"))
    node.attributes.pop("allowzero", None)
    edit.put_behind(node, result, behind)
    result.type = TensorType(result.dtype, shape)
    return True


def _flatten(edit: Edit, node: Node, permutation: Permutation) -> bool:
    """Push through Flatten as through the equal Reshape."""
    data, result = node.inputs[0], node.outputs[0]
    plan = transpose_later(None if data is None else data.shape, result.shape, permutation)
    if plan is None or result.dtype is None or data is None:
        return False
    shape, numbers, behind = plan
    node.op_type, node.version = "Reshape", 13
    node.attributes.clear()
    node.set_inputs((data, edit.integers(numbers, "shape")))
    edit.bring_whole(node, 0, permutation)
    edit.put_behind(node, result, behind)
    result.type = TensorType(result.dtype, shape)
    return True


def pull_through_reshape(edit: Edit, transpose: Node, offered: Collection[Node]) -> bool:
    """Put `transpose` in front of the Reshape of `offered` that it reads, where it meets another one; whether it was."""
    permutation, result = permutation_of(transpose), transpose.inputs[0] if transpose.inputs else None
    node = None if result is None else result.producer
    if permutation is None or result is None or node is None or node.op_type != "Reshape" or node not in offered or node.domain:
        return False
    data = node.inputs[0]
    if data is None or result.use_count > 1 or data.use_count > 1 or edit.transpose_of(data) is None:
        return False
    plan = _pulled(data.shape, result.shape, permutation)
    if plan is None or result.dtype is None:
        return False
    axes, shape, numbers = plan
    node.replace_input(0, edit.transposed(data, axes))
    node.replace_input(1, edit.integers(numbers, "shape"))
    node.attributes.pop("allowzero", None)
    result.type = TensorType(result.dtype, shape)
    transpose.output.replace_all_uses_with(result)
    return True


def _pulled(before: Shape | None, after: Shape | None, permutation: Permutation) -> tuple[Permutation, Shape, list[int]] | None:
    """Return the transpose in front, the shape that is made then, and the numbers that say so."""
    if before is None or after is None or _has_zero(before) or _has_zero(after):
        return None
    blocks = _blocks(before, after)
    if blocks is None:
        return None
    place = {axis: index for index, axis in enumerate(axis for axis in permutation if after[axis] != 1)}
    firsts: dict[_Block, int] = {}
    for block in blocks:
        places = [place[axis] for axis in block.after if after[axis] != 1]
        if places != list(range(places[0], places[0] + len(places))):
            return None
        firsts[block] = places[0]
    moved = [axis for block in sorted(blocks, key=firsts.__getitem__) for axis in block.before]
    axes = (*moved, *(axis for axis in range(len(before)) if axis not in moved))
    shape = permuted(after, permutation)
    numbers = numbers_for(permuted(before, axes), shape)
    return None if numbers is None else (axes, shape, numbers)


RESHAPES: Mapping[str, Handler] = {"Flatten": Handler(_flatten), "Reshape": Handler(_reshape)}
"""Operator of ai.onnx -> how a transpose is pushed through it."""
