"""Find SpaceToDepth that is written out as slices with steps.

    Concat(x[:, :, 0::2, 0::2], x[:, :, 0::2, 1::2], x[:, :, 1::2, 0::2], x[:, :, 1::2, 1::2]) {axis = 1}
                                                     ->      SpaceToDepth(x) {blocksize = 2}

and for any block size. In another order of the slices, such as that of YOLO's Focus layer, channels are gathered after it:
Gather(SpaceToDepth(x), order) {axis = 1}; where a convolution with constant weights reads it, these are gathered instead:

    Conv(Gather(x, order) {axis = 1}, w, b?)         ->      Conv(x, w[:, order⁻¹], b)

Left alone:
    slices that are not one of each place of a block, or that do not go to the end; places that are no constants
    height or width that is not known to be a multiple of the block
    channels that are not known, and convolutions in groups
"""

from __future__ import annotations

import numpy as np

from sardonyx.ir import Node, Value
from sardonyx.optimize.edit import small_constant
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["FUSE_CONV_GATHER", "FUSE_SPACE_TO_DEPTH"]

_FAR = 2**31 - 1
"""An end from which on a slice goes to the end."""

_BlockCell = tuple[int, int]
"""Row and column in a block."""


def _pattern(op: PatternBuilder) -> Term:
    return op.Concat(op.rest("parts"), axis=lambda axis: axis in (1, -3))


def _check(match: Match) -> str | tuple[Value, int, list[_BlockCell]]:
    nodes = [None if part is None else part.producer for part in match.rest("parts")]
    block = round(len(nodes) ** 0.5)
    if block < 2 or block * block != len(nodes) or any(node is None or node.op_type != "Slice" for node in nodes):
        return "the parts are not the slices of a block"
    sources = {node.inputs[0] for node in nodes if node is not None}
    x = sources.pop()
    shape = None if x is None else x.shape
    if sources or x is None or shape is None or len(shape) != 4 or not isinstance(shape[1], int):
        return "the parts are not of one value (N, C, H, W) of known channels"
    if not all(isinstance(dim, int) and dim % block == 0 for dim in shape[2:]):
        return f"{shape[2:]} are not known to be multiples of {block}"
    places = [_place(node, block, shape[2:], match.place.overridable) for node in nodes if node is not None]
    found = [place for place in places if place is not None]
    wanted = {(row, column) for row in range(block) for column in range(block)}
    if len(found) != len(nodes) or set(found) != wanted:
        return "the slices are not one of each place of a block"
    return x, block, found


def _place(node: Node, block: int, sizes: tuple[object, ...], overridable: frozenset[Value]) -> _BlockCell | None:
    """Return the place in a block that a slice takes of each; None where it takes anything else."""
    arrays = [small_constant(node.input(index), overridable) for index in (1, 2, 3, 4)]
    starts, ends, axes, steps = (None if array is None else [int(item) for item in array.reshape(-1)] for array in arrays)
    if starts is None or ends is None or axes is None or steps != [block, block] or len(starts) != 2 or len(ends) != 2:
        return None
    counted = [axis % 4 for axis in axes]
    if sorted(counted) != [2, 3] or any(not 0 <= start < block for start in starts):
        return None
    if any(end < _FAR and end != sizes[axis - 2] for end, axis in zip(ends, counted, strict=True)):
        return None
    return starts[counted.index(2)], starts[counted.index(3)]


def _replace(op: Builder, match: Match, learned: tuple[Value, int, list[_BlockCell]]) -> Value:
    x, block, places = learned
    made = op.SpaceToDepth(x, blocksize=block)
    order = [row * block + column for row, column in places]
    if order == list(range(block * block)):
        return made
    channels = int(str((x.shape or ())[1]))
    return op.Gather(made, np.concatenate([np.arange(channels) + place * channels for place in order]), axis=1)


def _gather_pattern(op: PatternBuilder, x: Term, w: Term, order: Term) -> Term:
    return op.Conv(op.Gather(x, op.constant(order), axis=1), op.constant(w), op.rest("bias"), group=1)


def _check_gather(match: Match) -> str | list[int]:
    order, shape = match.constant("order", 1 << 16), match["x"].shape
    if order is None or order.ndim != 1 or shape is None or len(shape) < 3 or sorted(order.tolist()) != list(range(order.size)):
        return "the channels are not each gathered once"
    if shape[1] != order.size or match["w"].use_count > 1:
        return "other channels are left out, or the weights have other users"
    return [int(place) for place in np.argsort(order)]


def _replace_gather(op: Builder, match: Match, inverse: list[int]) -> Value:
    weights = match.tensor("w")
    if weights is None:
        raise ValueError("the weights are no constant")
    moved = op.constant(np.ascontiguousarray(weights.numpy()[:, inverse]), f"{match['w'].name}/moved")
    return op.Conv(match["x"], moved, *match.rest("bias"), _attributes=match.root.attributes, _version=match.root.version)


FUSE_SPACE_TO_DEPTH = Rule(
    "fuse_space_to_depth",
    _pattern,
    _replace,
    _check,
    aliases=("SliceConcatToSpaceToDepthFusion",),
    summary="Replace slices with steps that are joined by SpaceToDepth.",
)
FUSE_CONV_GATHER = Rule(
    "fuse_conv_gather",
    _gather_pattern,
    _replace_gather,
    _check_gather,
    aliases=("SliceConcatToSpaceToDepthFusion",),
    summary="Gather the constant weights of a convolution instead of the channels that it reads.",
)
