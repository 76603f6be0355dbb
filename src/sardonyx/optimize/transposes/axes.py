"""Transposes through operators that name axes: the axes are renamed, and what is left of the permutation comes behind.

    Split(Transpose(x), axis=a)                       becomes      Transpose(Split(x, axis=permutation[a])) for each part
    ReduceMax(Transpose(x), axes, keepdims=0)         becomes      Transpose'(ReduceMax(x, permuted axes, keepdims=0))
    Unsqueeze(Transpose(x), axes)                     becomes      Transpose'(Unsqueeze(x, axes))

Transpose' moves the dimensions that the result has; where they keep their order, there is none.

Left alone: axes that are computed, Squeeze without axes, and Softmax before opset 13 where it does not fold the same dimensions in
the same order.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from sardonyx.ir import Attribute, Node
from sardonyx.ops.views.gather import Gather
from sardonyx.ops.views.inputs import COMPUTED, constants
from sardonyx.ops.views.reduce import REDUCTIONS, ArgExtreme, Reduce
from sardonyx.ops.views.reshape import Squeeze, Unsqueeze
from sardonyx.ops.views.slice import Concat, Split
from sardonyx.ops.views.softmax import Softmax
from sardonyx.optimize.transposes.edit import Edit
from sardonyx.optimize.transposes.handler import Handler, all_inputs
from sardonyx.optimize.transposes.permutation import Permutation, reordering

__all__ = ["AXES", "push_axis", "push_softmax"]


def push_axis(edit: Edit, node: Node, permutation: Permutation, axis: int) -> bool:
    """Push through a node with an axis.

    The first input carries the layout, `axis` is renamed, and every result gets the transpose.
    """
    edit.bring_whole(node, 0, permutation)
    node.attributes["axis"] = Attribute.of(permutation[axis])
    for value in reversed(node.outputs):
        edit.put_behind(node, value, permutation)
    return True


def _concat(edit: Edit, node: Node, permutation: Permutation) -> bool:
    if any(value is None or value.shape is None for value in node.inputs):
        return False
    axis = Concat.of(node).place(len(permutation))
    for index in range(len(node.inputs)):
        edit.bring_whole(node, index, permutation)
    node.attributes["axis"] = Attribute.of(permutation[axis])
    edit.put_behind(node, node.output, permutation)
    return True


def _split(edit: Edit, node: Node, permutation: Permutation) -> bool:
    return push_axis(edit, node, permutation, Split.of(node).place(len(permutation)))


def push_softmax(edit: Edit, node: Node, permutation: Permutation) -> bool:
    """Push through Softmax as through any operator with one axis.

    Before opset 13 it goes over all axes from one on; these have to stay as they are.
    """
    view, rank = Softmax.of(node), len(permutation)
    axis = view.first(rank)
    if not view.is_flat:
        return push_axis(edit, node, permutation, axis)
    if permutation[axis:] != tuple(range(axis, rank)):
        return False
    edit.bring_whole(node, 0, permutation)
    edit.put_behind(node, node.output, permutation)
    return True


def _without(labels: Sequence[Hashable], axes: set[int]) -> list[Hashable]:
    return [label for index, label in enumerate(labels) if index not in axes]


def _after_removal(permutation: Permutation, axes: set[int]) -> Permutation:
    """Return what is left of `permutation` when these axes of its result are taken out."""
    return reordering(_without(range(len(permutation)), {permutation[axis] for axis in axes}), _without(permutation, axes))


def _reduce(edit: Edit, node: Node, permutation: Permutation) -> bool:
    view = Reduce.of(node, constants(node))
    reduced = view.places(len(permutation))
    if not reduced:
        return False
    edit.bring_whole(node, 0, permutation)
    if view.axes:
        edit.set_axes(node, 1, [permutation[axis] for axis in reduced])
    edit.put_behind(node, node.output, permutation if view.keeps_axes else _after_removal(permutation, set(reduced)))
    return True


def _arg(edit: Edit, node: Node, permutation: Permutation) -> bool:
    view = ArgExtreme.of(node)
    axis = view.place(len(permutation))
    edit.bring_whole(node, 0, permutation)
    node.attributes["axis"] = Attribute.of(permutation[axis])
    edit.put_behind(node, node.output, permutation if view.keeps_axis else _after_removal(permutation, {axis}))
    return True


def _squeeze(edit: Edit, node: Node, permutation: Permutation) -> bool:
    axes = Squeeze.of(node, constants(node)).places(len(permutation))
    if axes is None or axes is COMPUTED:
        return False
    edit.bring_whole(node, 0, permutation)
    edit.set_axes(node, 1, [permutation[axis] for axis in axes])
    edit.put_behind(node, node.output, _after_removal(permutation, set(axes)))
    return True


def _unsqueeze(edit: Edit, node: Node, permutation: Permutation) -> bool:
    view = Unsqueeze.of(node, constants(node))
    if view.axes is COMPUTED or not view.axes:
        return False
    rank = len(permutation) + len(view.axes)
    new = view.places(rank) or ()
    old = [axis for axis in range(rank) if axis not in new]
    behind = list(range(rank))
    for index, axis in enumerate(old):
        behind[axis] = old[permutation[index]]
    edit.bring_whole(node, 0, permutation)
    edit.put_behind(node, node.output, tuple(behind))
    return True


def _gather(edit: Edit, node: Node, permutation: Permutation) -> bool:
    """Push through Gather: the dimensions of the indices take the place of the axis."""
    indices = node.inputs[1]
    if indices is None or indices.shape is None:
        return False
    axis = Gather.of(node).place(len(permutation))
    inner: list[Hashable] = [("index", number) for number in range(len(indices.shape))]
    source = permutation[axis]
    before = [*range(source), *inner, *range(source + 1, len(permutation))]
    after = [*permutation[:axis], *inner, *permutation[axis + 1 :]]
    edit.bring_whole(node, 0, permutation)
    node.attributes["axis"] = Attribute.of(source)
    edit.put_behind(node, node.output, reordering(before, after))
    return True


AXES: Mapping[str, Handler] = {
    **dict.fromkeys(REDUCTIONS, Handler(_reduce)),
    **dict.fromkeys(("ArgMax", "ArgMin"), Handler(_arg)),
    **dict.fromkeys(("Hardmax", "LogSoftmax", "Softmax"), Handler(push_softmax)),
    "Concat": Handler(_concat, all_inputs),
    "Gather": Handler(_gather),
    "Split": Handler(_split),
    "Squeeze": Handler(_squeeze),
    "Unsqueeze": Handler(_unsqueeze),
}
"""Operator of ai.onnx -> how a transpose is pushed through it."""
