"""Push transposes through the graph, so that those which undo each other meet and vanish.

    Transpose(x) -> Relu -> Transpose          becomes      x -> Relu
    Add(Transpose(x), Transpose(y))            becomes      Transpose(Add(x, y))
    Add(Transpose(x), constant)                becomes      Transpose(Add(x, transposed constant))

The nodes are walked once, in order. A node that a transpose feeds is computed on what the transpose reads, and the transpose goes
behind it, where more transposes go away from its inputs than new ones must come: inputs that no transpose feeds get one of their
own, constants are transposed at once. A transpose behind a transpose is merged with it. The nodes stay the same objects.

Left alone: nodes that the caller does not offer, operators without a handler, inputs of unknown rank, and broadcast inputs of
a lower rank that are no constants. O(nodes).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from sardonyx.ir import Attribute, AttributeKind, Graph, Node, Tensor, TensorType, Value

__all__ = ["push_transposes"]

Permutation: TypeAlias = tuple[int, ...]

_SIMPLE = frozenset(
    "Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Cast Ceil Celu Cos Cosh Elu Erf Exp Floor Gelu HardSigmoid HardSwish Identity "
    "IsInf IsNaN LeakyRelu Log Mish Neg Not Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Swish "
    "Tan Tanh ThresholdedRelu".split()
)
_FIRST_INPUT = frozenset(("CastLike", "Clip"))
_BROADCAST = frozenset(
    "Add And BitShift Div Equal Greater GreaterOrEqual Less LessOrEqual Max Mean Min Mod Mul Or PRelu Pow Sub Sum Where Xor".split()
)


def push_transposes(graph: Graph, offered: Collection[Node]) -> None:
    """Push the transposes of `graph` through the nodes of `offered`; transposes that nobody reads any more are removed."""
    for node in graph:
        if node.domain:
            continue
        if node.op_type == "Transpose":
            _merge(node)
        elif node in offered:
            _push(graph, node)
    for node in reversed(graph):
        if node.op_type == "Transpose" and not node.domain and node.output.use_count == 0:
            graph.remove(node)


def _push(graph: Graph, node: Node) -> None:
    handler = _HANDLERS.get(node.op_type)
    permutation = _permutation_before(node)
    if handler is not None and permutation is not None:
        handler(graph, node, permutation)


def _permutation_before(node: Node) -> Permutation | None:
    for value in node.inputs:
        producer = None if value is None else value.producer
        if producer is not None and producer.op_type == "Transpose" and not producer.domain and producer.get("perm") is not None:
            return tuple(producer.get("perm"))
    return None


def _merge(node: Node) -> None:
    """One transpose in place of two; none where the two undo each other."""
    source, second = node.inputs[0], node.get("perm")
    first_node = None if source is None else source.producer
    if first_node is None or first_node.op_type != "Transpose" or first_node.domain or second is None:
        return
    first, before = first_node.get("perm"), first_node.inputs[0]
    if first is None or before is None:
        return
    merged = tuple(first[axis] for axis in second)
    if merged != tuple(range(len(merged))):
        node.replace_input(0, before)
        node.attributes["perm"] = Attribute(AttributeKind.INTS, merged)
    else:
        node.output.replace_all_uses_with(before)


def _inverse(permutation: Permutation) -> Permutation:
    return tuple(int(axis) for axis in np.argsort(permutation))


def _source(value: Value | None, permutation: Permutation) -> Value | None:
    """What a transpose by `permutation` that makes `value` reads, or None where none does."""
    producer = None if value is None else value.producer
    if producer is None or producer.op_type != "Transpose" or producer.domain or tuple(producer.get("perm") or ()) != permutation:
        return None
    return producer.inputs[0]


def _needs_none(value: Value | None) -> bool:
    """Whether a broadcast input is the same in every layout: left out, or of one element."""
    return value is None or value.shape == () or (value.constant is not None and value.constant.size == 1)


def _worthwhile(inputs: Sequence[Value | None], permutation: Permutation) -> bool:
    """Whether more transposes go than come, and every input can be brought into the layout before the transpose."""
    going = coming = 0
    for value in inputs:
        if _needs_none(value):
            continue
        if _source(value, permutation) is not None:
            going += 1
        elif value is None or value.shape is None or (value.constant is None and len(value.shape) != len(permutation)):
            return False
        elif value.constant is None:
            coming += 1
        elif len(value.shape) > len(permutation):
            return False
    return going > coming


def _bring(graph: Graph, node: Node, index: int, permutation: Permutation) -> None:
    """Let input `index` of `node` be what it was before a transpose by `permutation`."""
    value = node.inputs[index]
    if value is None or _needs_none(value):
        return
    source = _source(value, permutation)
    inverse = _inverse(permutation)
    if source is None and value.constant is not None:
        array = value.constant.numpy()
        array = array.reshape((1,) * (len(permutation) - array.ndim) + array.shape)
        source = graph.add_initializer(Tensor.from_array(np.ascontiguousarray(array.transpose(inverse))), value.name)
    if source is None:
        before = Node("Transpose", [value], 1, {"perm": inverse}, version=13, name=f"{node.name}/before")
        before.output.type = _permuted(value, inverse)
        source = graph.insert_before(node, before).output
    node.replace_input(index, source)


def _put_behind(graph: Graph, node: Node, value: Value, permutation: Permutation) -> None:
    """Let `value`, which `node` makes, be in the layout before a transpose by `permutation`, and put one behind it."""
    behind = Node("Transpose", [None], 1, {"perm": permutation}, version=13, name=f"{node.name}/behind")
    behind.output.type = value.type
    graph.insert_after(node, behind)
    value.replace_all_uses_with(behind.output)
    behind.replace_input(0, value)
    value.type = _permuted(value, _inverse(permutation))


def _permuted(value: Value, permutation: Permutation) -> TensorType | None:
    if value.dtype is None:
        return None
    shape = value.shape
    return TensorType(value.dtype, None if shape is None else tuple(shape[axis] for axis in permutation))


def _simple(graph: Graph, node: Node, permutation: Permutation) -> None:
    """The first input carries the layout; the others are the same in every layout."""
    if _source(node.inputs[0], permutation) is None or not all(_needs_none(value) for value in node.inputs[1:]):
        return
    _bring(graph, node, 0, permutation)
    _put_behind(graph, node, node.outputs[0], permutation)


def _broadcast(graph: Graph, node: Node, permutation: Permutation) -> None:
    """All inputs carry the layout, constants of a lower rank too."""
    if not _worthwhile(node.inputs, permutation) or node.outputs[0].shape is None:
        return
    if len(node.outputs[0].shape) != len(permutation):
        return
    for index in range(len(node.inputs)):
        _bring(graph, node, index, permutation)
    _put_behind(graph, node, node.outputs[0], permutation)


def _axis_of(node: Node, default: int, rank: int) -> int:
    axis: int = node.get("axis", default)
    return axis % rank


def _concat(graph: Graph, node: Node, permutation: Permutation) -> None:
    if not _worthwhile(node.inputs, permutation) or any(value is None or value.shape is None for value in node.inputs):
        return
    for index in range(len(node.inputs)):
        _bring_whole(graph, node, index, permutation)
    node.attributes["axis"] = Attribute.of(permutation[_axis_of(node, 0, len(permutation))])
    _put_behind(graph, node, node.output, permutation)


def _bring_whole(graph: Graph, node: Node, index: int, permutation: Permutation) -> None:
    """As `_bring`, also for a constant of one element, which is no scalar to Concat."""
    value = node.inputs[index]
    if value is not None and value.constant is not None and value.constant.size == 1:
        return
    _bring(graph, node, index, permutation)


def _split(graph: Graph, node: Node, permutation: Permutation) -> None:
    if _source(node.inputs[0], permutation) is None:
        return
    _bring(graph, node, 0, permutation)
    node.attributes["axis"] = Attribute.of(permutation[_axis_of(node, 0, len(permutation))])
    for value in reversed(node.outputs):
        _put_behind(graph, node, value, permutation)


def _softmax(graph: Graph, node: Node, permutation: Permutation) -> None:
    if node.version < 13 or _source(node.inputs[0], permutation) is None:
        return
    _bring(graph, node, 0, permutation)
    node.attributes["axis"] = Attribute.of(permutation[_axis_of(node, -1, len(permutation))])
    _put_behind(graph, node, node.output, permutation)


def _reduce(graph: Graph, node: Node, permutation: Permutation) -> None:
    """Axes are renamed; without keepdims the result keeps the order that its dimensions had."""
    axes = _axes_of(node, 1)
    if axes is None or not axes or _source(node.inputs[0], permutation) is None:
        return
    rank = len(permutation)
    reduced = {axis % rank for axis in axes}
    left = [permutation[axis] for axis in range(rank) if axis not in reduced]
    if not node.get("keepdims", 1) and left != sorted(left):
        return
    _bring(graph, node, 0, permutation)
    _set_axes(graph, node, 1, [permutation[axis % rank] for axis in axes])
    if node.get("keepdims", 1):
        _put_behind(graph, node, node.output, permutation)


def _axes_of(node: Node, index: int) -> list[int] | None:
    """The axes that a node has as an attribute or as a constant input; None where they are computed, empty where there are none."""
    if "axes" in node.attributes:
        return list(node.get("axes"))
    value = node.input(index)
    if value is None:
        return []
    return None if value.constant is None else [int(axis) for axis in value.constant.numpy().ravel()]


def _set_axes(graph: Graph, node: Node, index: int, axes: Sequence[int]) -> None:
    if "axes" in node.attributes:
        node.attributes["axes"] = Attribute(AttributeKind.INTS, tuple(axes))
    else:
        node.replace_input(index, graph.add_initializer(Tensor.from_array(np.array(axes, np.int64)), "axes"))


def _slice(graph: Graph, node: Node, permutation: Permutation) -> None:
    axes = _axes_of(node, 3)
    if node.version < 10 or not axes or _source(node.inputs[0], permutation) is None:
        return
    _bring(graph, node, 0, permutation)
    _set_axes(graph, node, 3, [permutation[axis % len(permutation)] for axis in axes])
    _put_behind(graph, node, node.output, permutation)


def _pad(graph: Graph, node: Node, permutation: Permutation) -> None:
    pads = node.input(1)
    if node.version < 11 or pads is None or pads.constant is None or node.input(3) is not None:
        return
    if _source(node.inputs[0], permutation) is None:
        return
    rank, inverse = len(permutation), _inverse(permutation)
    both = pads.constant.numpy().reshape(2, rank)[:, list(inverse)]
    _bring(graph, node, 0, permutation)
    node.replace_input(1, graph.add_initializer(Tensor.from_array(np.ascontiguousarray(both).reshape(-1)), pads.name))
    _put_behind(graph, node, node.output, permutation)


def _resize(graph: Graph, node: Node, permutation: Permutation) -> None:
    """Scales and sizes are reordered; a region of interest, and axes, are left alone."""
    roi = node.input(1)
    region_used = node.get("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize"
    if node.version < 11 or region_used or "axes" in node.attributes or _source(node.inputs[0], permutation) is None:
        return
    given = [index for index in (2, 3) if (value := node.input(index)) is not None and value.shape != (0,)]
    rank, inverse = len(permutation), list(_inverse(permutation))
    arrays = {index: value.constant for index in given if (value := node.inputs[index]) is not None and value.constant is not None}
    if len(arrays) != len(given) or any(tensor.shape != (rank,) for tensor in arrays.values()):
        return
    if roi is not None and roi.constant is not None and roi.constant.size:
        node.replace_input(1, None)
    _bring(graph, node, 0, permutation)
    for index, tensor in arrays.items():
        node.replace_input(index, graph.add_initializer(Tensor.from_array(tensor.numpy()[inverse]), "sizes"))
    _put_behind(graph, node, node.output, permutation)


Handler: TypeAlias = Callable[[Graph, Node, Permutation], None]

_HANDLERS: Mapping[str, Handler] = {
    **dict.fromkeys(_SIMPLE | _FIRST_INPUT, _simple),
    **dict.fromkeys(_BROADCAST, _broadcast),
    **dict.fromkeys(("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
                     "ReduceProd", "ReduceSum", "ReduceSumSquare"), _reduce),
    **dict.fromkeys(("Hardmax", "LogSoftmax", "Softmax"), _softmax),
    "Concat": _concat,
    "Pad": _pad,
    "Resize": _resize,
    "Slice": _slice,
    "Split": _split,
}  # fmt: skip
"""Operator -> how a transpose is pushed through it."""

