"""Transposes through quantization, and through the quantized operators of com.microsoft.

    QuantizeLinear(Transpose(x), scale, axis=a)      becomes      Transpose(QuantizeLinear(x, scale, axis=permutation[a]))
    DynamicQuantizeLinear(Transpose(x))              becomes      Transpose of the first result; the others are of all elements
    DequantizeLinear(q) -> Transpose                 becomes      Transpose(q) -> DequantizeLinear

The last keeps DequantizeLinear in front of the operator that computes in integers with it: where a transpose ended up between
the two, it goes in front of both (`keep_units_whole`).

Left alone: quantized operators whose second tensor would need to be broadcast from a lower rank, and their reductions without
dimensions kept.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from sardonyx.ir import Attribute, AttributeKind, Node, TensorType, Value
from sardonyx.ops.views.quantize import Quantization
from sardonyx.ops.views.reduce import Reduce
from sardonyx.ops.views.slice import Concat
from sardonyx.optimize.transposes.axes import push_softmax
from sardonyx.optimize.transposes.edit import Edit, has_axis
from sardonyx.optimize.transposes.elementwise import push_first, push_simple
from sardonyx.optimize.transposes.handler import Handler
from sardonyx.optimize.transposes.permutation import Permutation, permutation_of, permuted

__all__ = ["MICROSOFT", "QUANTIZATION", "keep_units_whole"]


def _linear(edit: Edit, node: Node, permutation: Permutation) -> bool:
    """Return one scale, one for each index of an axis, or blocks, which lie as the elements do."""
    view = Quantization.of(node)
    if view.block:
        for index in range(1, len(node.inputs)):
            edit.bring_whole(node, index, permutation)
    if has_axis(node):
        node.attributes["axis"] = Attribute.of(permutation[view.place(len(permutation))])
    return push_first(edit, node, permutation)


def _binary(edit: Edit, node: Node, permutation: Permutation) -> bool:
    """Return A, its scale and zero point, B, its scale and zero point, and those of the result."""
    rank = len(permutation)
    if any(value is None or value.shape is None or len(value.shape) != rank for value in _pair(node)):
        return False
    edit.bring(node, 0, permutation)
    edit.bring(node, 3, permutation)
    edit.put_behind(node, node.output, permutation)
    return True


def _pair(node: Node) -> Sequence[Value | None]:
    return node.input(0), node.input(3)


def _parts(node: Node) -> Sequence[Value | None]:
    return node.inputs[2::3]


def _concat(edit: Edit, node: Node, permutation: Permutation) -> bool:
    """Return the result's scale and zero point, then each part with its own."""
    if any(value is None or value.shape is None for value in _parts(node)):
        return False
    axis = Concat.of(node).place(len(permutation))
    for index in range(2, len(node.inputs), 3):
        edit.bring_whole(node, index, permutation)
    node.attributes["axis"] = Attribute.of(permutation[axis])
    edit.put_behind(node, node.output, permutation)
    return True


def _pool(edit: Edit, node: Node, permutation: Permutation) -> bool:
    """Push through a pool.

    The attribute `channels_last` says which layout is meant, so only a transpose between the two goes through.
    """
    rank, last = len(permutation), node.flag("channels_last")
    to_last, to_first = (0, *range(2, rank), 1), (0, rank - 1, *range(1, rank - 1))
    if rank < 3 or permutation != (to_last if last else to_first):
        return False
    node.attributes["channels_last"] = Attribute.of(0 if last else 1)
    return push_first(edit, node, permutation)


def _mean(edit: Edit, node: Node, permutation: Permutation) -> bool:
    view = Reduce.of(node)
    axes = view.places(len(permutation))
    if not view.axes or axes is None or not view.keeps_axes:
        return False
    node.attributes["axes"] = Attribute(AttributeKind.INTS, tuple(permutation[axis] for axis in axes))
    return push_first(edit, node, permutation)


_STATIC: Mapping[str, Handler] = dict.fromkeys(("DequantizeLinear", "QuantizeLinear"), Handler(_linear))

QUANTIZATION: Mapping[str, Handler] = {**_STATIC, "DynamicQuantizeLinear": Handler(push_first)}
"""Operator of ai.onnx -> how a transpose is pushed through it."""

MICROSOFT: Mapping[str, Handler] = {
    **_STATIC,
    **dict.fromkeys(("FastGelu", "Gelu", "QuickGelu"), Handler(push_simple)),
    **dict.fromkeys(("QLinearLeakyRelu", "QLinearSigmoid"), Handler(push_first)),
    **dict.fromkeys(("QLinearAdd", "QLinearMul"), Handler(_binary, _pair)),
    **dict.fromkeys(("QLinearAveragePool", "QLinearGlobalAveragePool"), Handler(_pool)),
    "QLinearConcat": Handler(_concat, _parts),
    "QLinearReduceMean": Handler(_mean),
    "QLinearSoftmax": Handler(push_softmax),
}
"""Operator of com.microsoft -> how a transpose is pushed through it."""


def keep_units_whole(edit: Edit, offered: Collection[Node]) -> None:
    """Put transposes that stand behind a DequantizeLinear of `offered` in front of it; O(nodes)."""
    for node in edit.graph:
        permutation, value = permutation_of(node), node.input(0)
        before = None if value is None else value.producer
        if permutation is None or before is None or before.op_type != "DequantizeLinear" or before not in offered:
            continue
        _swap(edit, before, node, permutation)


def _swap(edit: Edit, linear: Node, transpose: Node, permutation: Permutation) -> None:
    """Replace `transpose` by a copy of `linear` that reads the transposed integers."""
    quantized = linear.inputs[0]
    if quantized is None or Quantization.of(linear).block:
        return
    twin = Node(
        "DequantizeLinear",
        [edit.transposed(quantized, permutation), *linear.inputs[1:]],
        1,
        linear.attributes,
        domain=linear.domain,
        version=linear.version,
        name=f"{linear.name}/transposed",
    )
    if has_axis(linear):
        twin.attributes["axis"] = Attribute.of(permutation.index(Quantization.of(linear).place(len(permutation))))
    value = transpose.output
    twin.output.type = value.type
    if value.type is None and linear.output.dtype is not None and linear.output.shape is not None:
        twin.output.type = TensorType(linear.output.dtype, permuted(linear.output.shape, permutation))
    edit.graph.insert_before(transpose, twin)
    value.replace_all_uses_with(twin.output)
