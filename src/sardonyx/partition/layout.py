"""The layout step: convert nodes that a provider claimed to NHWC, with transposes around them.

    X (NCHW) -> Conv -> Y      becomes      X -> Transpose -> sardonyx.nhwc.Conv -> Transpose -> Y

A converted node has the domain `NHWC_DOMAIN` and its operator's own name and attributes; only the tensors listed in
`_SENSITIVE` change their layout (a filter stays (M, C/group, kH, kW), indices of MaxUnpool still count in NCHW). The scales and
sizes of Resize are reordered. A node of com.microsoft that says channels_last=1 changes its domain alone, and so does a Resize that
changes the size of dimension 1 but not of the last one: it is in NHWC order already. Two transposes that undo each other are
cancelled.

Left alone: nodes of unknown rank (a filter tells it too), results of which others than the first are used, and Resize whose scales
and sizes are not one constant for each dimension.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from sardonyx.ir import Graph, Node, Tensor, TensorType, Value
from sardonyx.ops.schema import NHWC_DOMAIN
from sardonyx.ops.views.reshape import Transpose
from sardonyx.ops.views.resize import Resize

__all__ = ["lay_out", "layout_sensitive_operators", "to_first", "to_last"]

_SENSITIVE: Mapping[tuple[str, str], tuple[int, ...]] = {
    ("", "AveragePool"): (0,),
    ("", "BatchNormalization"): (0,),
    ("", "Conv"): (0,),
    ("", "ConvInteger"): (0,),
    ("", "ConvTranspose"): (0,),
    ("", "DepthToSpace"): (0,),
    ("", "GlobalAveragePool"): (0,),
    ("", "GlobalLpPool"): (0,),
    ("", "GlobalMaxPool"): (0,),
    ("", "GridSample"): (0,),
    ("", "GroupNormalization"): (0,),
    ("", "InstanceNormalization"): (0,),
    ("", "LRN"): (0,),
    ("", "LpPool"): (0,),
    ("", "MaxPool"): (0,),
    ("", "MaxUnpool"): (0, 1),
    ("", "QLinearConv"): (0,),
    ("", "Resize"): (0,),
    ("", "SpaceToDepth"): (0,),
    ("com.microsoft", "FusedConv"): (0, 3),
    ("com.microsoft", "GridSample"): (0,),
    ("com.microsoft", "QLinearAveragePool"): (0,),
    ("com.microsoft", "QLinearConv"): (0,),
    ("com.microsoft", "QLinearGlobalAveragePool"): (0,),
}
"""Operator -> the inputs that carry the layout; the first output carries it too, and the others must be unused."""

_SIZES = 3
"""The input of Resize that is its sizes; the others are scales."""

_FILTERS = {"Conv": 1, "ConvInteger": 1, "ConvTranspose": 1, "FusedConv": 1, "QLinearConv": 3}
"""Operator -> the input that has as many dimensions as the data."""


def layout_sensitive_operators(domain: str = "") -> tuple[str, ...]:
    """Return the operators of `domain` that are converted, sorted."""
    return tuple(sorted(name for own, name in _SENSITIVE if own == domain))


def lay_out(graph: Graph, claimed: Iterable[Node]) -> list[Node]:
    """Convert the layout-sensitive nodes among `claimed` and return them.

    Afterwards no two neighbouring transposes undo each other around the converted nodes. O(nodes).
    """
    converted = {node: _carriers(node) for node in claimed if _convertible(node)}
    for node, carriers in converted.items():
        _convert(graph, node, carriers)
    for node, carriers in converted.items():
        _cancel(graph, node, carriers)
    return list(converted)


def to_last(rank: int) -> tuple[int, ...]:
    """Return the permutation NCHW -> NHWC for `rank` dimensions."""
    return 0, *range(2, rank), 1


def to_first(rank: int) -> tuple[int, ...]:
    """Return the permutation NHWC -> NCHW for `rank` dimensions."""
    return 0, rank - 1, *range(1, rank - 1)


def _carriers(node: Node) -> tuple[int, ...]:
    return tuple(index for index in _SENSITIVE[node.domain, node.op_type] if node.input(index) is not None)


def _convertible(node: Node) -> bool:
    return (
        (node.domain, node.op_type) in _SENSITIVE
        and node.input(0) is not None
        and _rank_of(node) >= 3
        and all(value.use_count == 0 for value in node.outputs[1:])
        and (node.op_type != "Resize" or _is_resized_by_constants(node))
    )


def _rank_of(node: Node) -> int:
    """Return how many dimensions the data has; 0 where neither it nor a filter tells."""
    for index in (0, _FILTERS.get(node.op_type, 0)):
        value = node.input(index)
        if value is not None and value.shape is not None:
            return len(value.shape)
    return 0


def _resize_numbers(node: Node) -> dict[int, Value]:
    """Return scales and sizes that are given, by the number of the input; none but for Resize."""
    if node.op_type != "Resize":
        return {}
    view = Resize.of(node)
    places = [] if view.scales_input is None else [view.scales_input] if view.is_by_origin else [view.scales_input, _SIZES]
    given = {index: node.input(index) for index in places}
    return {index: value for index, value in given.items() if value is not None and value.shape != (0,)}


def _is_resized_by_constants(node: Node) -> bool:
    view, rank = Resize.of(node), _rank_of(node)
    numbers = _resize_numbers(node).values()
    return not view.crops and view.axes is None and all(value.constant is not None and value.shape == (rank,) for value in numbers)


def _convert(graph: Graph, node: Node, carriers: tuple[int, ...]) -> None:
    if not (node.flag("channels_last") or _resizes_last(node)):
        _wrap(graph, node, carriers)
        for index, value in _resize_numbers(node).items():
            if value.constant is not None:
                numbers = np.ascontiguousarray(value.constant.numpy()[list(to_last(_rank_of(node)))])
                node.replace_input(index, graph.add_initializer(Tensor.from_array(numbers), value.name))
    node.domain = NHWC_DOMAIN


def _resizes_last(node: Node) -> bool:
    """Return whether a node is a Resize whose channels are the last dimension."""
    data = node.inputs[0]
    if data is None or data.shape is None:
        return False
    for index, value in _resize_numbers(node).items():
        if value.constant is not None:
            numbers, same = value.constant.numpy(), data.shape if index == _SIZES else (1,) * len(data.shape)
            return numbers[-1] == same[-1] and isinstance(same[1], int) and numbers[1] != same[1]
    return False


def _wrap(graph: Graph, node: Node, carriers: tuple[int, ...]) -> None:
    rank = _rank_of(node)
    for index in carriers:
        value = node.inputs[index]
        into = Node("Transpose", [value], 1, {"perm": to_last(rank)}, version=13, name=f"{node.name}/to_nhwc")
        into.output.type = _permuted(value, to_last(rank))
        graph.insert_before(node, into)
        node.replace_input(index, into.output)
    out = node.outputs[0]
    back = Node("Transpose", [None], 1, {"perm": to_first(rank)}, version=13, name=f"{node.name}/to_nchw")
    back.output.type = out.type
    graph.insert_after(node, back)
    out.replace_all_uses_with(back.output)
    back.replace_input(0, out)
    out.type = _permuted(out, to_last(rank))


def _permuted(value: Value | None, permutation: tuple[int, ...]) -> TensorType | None:
    if value is None or value.dtype is None:
        return None
    shape = value.shape
    return TensorType(value.dtype, None if shape is None else tuple(shape[axis] for axis in permutation))


def _cancel(graph: Graph, node: Node, carriers: tuple[int, ...]) -> None:
    for index in carriers:
        value = node.inputs[index]
        into = value.producer if value is not None else None
        source = into.inputs[0] if into is not None else None
        back = source.producer if source is not None else None
        if into is None or back is None or back.op_type != "Transpose" or back.domain or back.graph is not graph:
            continue
        before = back.inputs[0]
        if before is None or not _undo(back, into):
            continue
        node.replace_input(index, before)
        for transpose in (into, back):
            if transpose.graph is graph and transpose.output.use_count == 0:
                graph.remove(transpose)


def _undo(first: Node, second: Node) -> bool:
    one, two = Transpose.of(first).permutation, Transpose.of(second).permutation
    return one is not None and two is not None and tuple(one[axis] for axis in two) == tuple(range(len(one)))
