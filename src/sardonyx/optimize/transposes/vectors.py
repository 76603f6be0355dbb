"""Transposes through operators that have a number for each dimension: pads, repeats, sizes, scales, bounds.

    Tile(Transpose(x), repeats)            becomes      Transpose(Tile(x, reordered repeats))
    Shape(Transpose(x))                    becomes      Gather(Shape(x), permutation)

Left alone: bounds of a Slice whose axes are computed, pads by computed axes, a region of interest that is computed, and Resize and
Upsample where the vector's length is not the rank.
"""

from __future__ import annotations

from collections.abc import Mapping

from sardonyx.ir import Attribute, AttributeKind, Node, TensorType
from sardonyx.ops.views.inputs import constants
from sardonyx.ops.views.reshape import Tile
from sardonyx.ops.views.resize import Resize
from sardonyx.ops.views.slice import Pad, Slice
from sardonyx.optimize.transposes.edit import Edit
from sardonyx.optimize.transposes.handler import Handler
from sardonyx.optimize.transposes.permutation import Permutation, inverse

__all__ = ["VECTORS"]


def _finish(edit: Edit, node: Node, permutation: Permutation) -> bool:
    edit.bring_whole(node, 0, permutation)
    edit.put_behind(node, node.output, permutation)
    return True


def _has_length(node: Node, index: int, length: int) -> bool:
    value = node.input(index)
    return value is not None and value.shape == (length,)


def _shape(edit: Edit, node: Node, permutation: Permutation) -> bool:
    """Push through Shape without a transpose behind it: the numbers are reordered."""
    rank, value = len(permutation), node.output
    start, end = node.integer("start", 0), node.integer("end", rank)
    order = list(permutation)[slice(start, end)]
    edit.bring_whole(node, 0, permutation)
    for name in ("start", "end"):
        node.attributes.pop(name, None)
    gather = Node("Gather", [None, edit.integers(order, "order")], 1, {"axis": 0}, version=13, name=f"{node.name}/order")
    gather.output.type = value.type
    edit.graph.insert_after(node, gather)
    value.replace_all_uses_with(gather.output)
    gather.replace_input(0, value)
    if value.dtype is not None:
        value.type = TensorType(value.dtype, (rank,))
    return True


def _pad(edit: Edit, node: Node, permutation: Permutation) -> bool:
    rank, order = len(permutation), inverse(permutation)
    both = [*order, *(rank + axis for axis in order)]
    view = Pad.of(node, constants(node))
    if view.pads_attribute is not None:
        pads = node.integers(view.pads_attribute, ())
        if len(pads) != 2 * rank:
            return False
        node.attributes[view.pads_attribute] = Attribute(AttributeKind.INTS, tuple(pads[index] for index in both))
    elif view.axes is not None:
        axes = view.places(rank)
        if axes is None:
            return False
        edit.set_axes(node, 3, [permutation[axis] for axis in axes])
    elif _has_length(node, 1, 2 * rank):
        edit.reorder(node, 1, both)
    else:
        return False
    return _finish(edit, node, permutation)


def _slice(edit: Edit, node: Node, permutation: Permutation) -> bool:
    view = Slice.of(node, constants(node))
    axes = view.places(len(permutation))
    if axes is None and view.axes is None:
        axes = _first_axes(node)
    if axes is None:
        return False
    renamed = [permutation[axis] for axis in axes]
    if view.takes_inputs:
        edit.set_axes(node, 3, renamed)
    else:
        node.attributes["axes"] = Attribute(AttributeKind.INTS, tuple(renamed))
    return _finish(edit, node, permutation)


def _first_axes(node: Node) -> tuple[int, ...] | None:
    """Return the axes of a Slice that names none and whose starts are computed: as many as there are starts."""
    starts = node.input(1)
    count = starts.shape[0] if starts is not None and starts.shape is not None and len(starts.shape) == 1 else None
    return tuple(range(count)) if isinstance(count, int) and count else None


def _tile(edit: Edit, node: Node, permutation: Permutation) -> bool:
    if (node.op_type == "Tile" and Tile.of(node).is_by_axis) or not _has_length(node, 1, len(permutation)):
        return False
    edit.reorder(node, 1, inverse(permutation))
    return _finish(edit, node, permutation)


def _expand(edit: Edit, node: Node, permutation: Permutation) -> bool:
    """Push through Expand, only to a shape of the same rank."""
    return _tile(edit, node, permutation)


def _resize(edit: Edit, node: Node, permutation: Permutation) -> bool:
    rank, view = len(permutation), Resize.of(node)
    if view.is_by_origin:
        return _upsample(edit, node, permutation)
    if view.axes:
        node.attributes["axes"] = Attribute(AttributeKind.INTS, tuple(permutation[axis] for axis in view.places(rank)))
        return _finish(edit, node, permutation)
    given = [index for index in (2, 3) if (value := node.input(index)) is not None and value.shape != (0,)]
    if not all(_has_length(node, index, rank) for index in given) or not _forget_region(edit, node, permutation):
        return False
    for index in given:
        edit.reorder(node, index, inverse(permutation))
    return _finish(edit, node, permutation)


def _forget_region(edit: Edit, node: Node, permutation: Permutation) -> bool:
    """Reorder the region of interest where it is used, and drop it where it is not; whether that could be done."""
    region, rank = node.input(1), len(permutation)
    if region is None or region.shape == (0,):
        return True
    if not Resize.of(node).crops:
        node.replace_input(1, None)
        return True
    if not _has_length(node, 1, 2 * rank):
        return False
    order = inverse(permutation)
    edit.reorder(node, 1, [*order, *(rank + axis for axis in order)])
    return True


def _upsample(edit: Edit, node: Node, permutation: Permutation) -> bool:
    """Push through Upsample, also Resize of opset 10: scales are an attribute before opset 9, then an input."""
    scales = node.numbers("scales")
    if scales is not None and len(scales) == len(permutation):
        node.attributes["scales"] = Attribute(AttributeKind.FLOATS, tuple(scales[axis] for axis in inverse(permutation)))
    elif _has_length(node, 1, len(permutation)):
        edit.reorder(node, 1, inverse(permutation))
    else:
        return False
    return _finish(edit, node, permutation)


VECTORS: Mapping[str, Handler] = {
    "Expand": Handler(_expand, grows=True),
    "Pad": Handler(_pad, grows=True),
    "Resize": Handler(_resize, grows=True),
    "Shape": Handler(_shape),
    "Slice": Handler(_slice),
    "Tile": Handler(_tile, grows=True),
    "Upsample": Handler(_upsample, grows=True),
}
"""Operator of ai.onnx -> how a transpose is pushed through it."""
