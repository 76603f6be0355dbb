"""The layout step: convert nodes that a provider claimed to NHWC, with transposes around them.

    X (NCHW) -> Conv -> Y      becomes      X -> Transpose -> sardonyx.nhwc.Conv -> Transpose -> Y

A converted node has the domain `NHWC_DOMAIN` and its operator's own name and attributes; only the tensors listed in
`_SENSITIVE` change their layout (a filter stays (M, C/group, kH, kW)). Two transposes that undo each other are cancelled.
"""

from __future__ import annotations

from collections.abc import Iterable

from sardonyx.ir import Graph, Node, Shape, TensorType, Value

__all__ = ["NHWC_DOMAIN", "lay_out", "to_first", "to_last"]

NHWC_DOMAIN = "sardonyx.nhwc"
"""The domain of operators whose data tensors are in NHWC order."""

_SENSITIVE = {
    "AveragePool": (0,),
    "BatchNormalization": (0,),
    "Conv": (0,),
    "ConvTranspose": (0,),
    "DepthToSpace": (0,),
    "GlobalAveragePool": (0,),
    "GlobalLpPool": (0,),
    "GlobalMaxPool": (0,),
    "GroupNormalization": (0,),
    "InstanceNormalization": (0,),
    "LRN": (0,),
    "LpPool": (0,),
    "MaxPool": (0,),
    "SpaceToDepth": (0,),
}
"""Operator -> the inputs that carry the layout; the first output carries it too, and the others must be unused."""


def lay_out(graph: Graph, claimed: Iterable[Node]) -> list[Node]:
    """Convert the layout-sensitive nodes among `claimed` and return them; those of unknown rank stay as they are.

    Afterwards no two neighbouring transposes undo each other around the converted nodes. O(nodes).
    """
    converted = [node for node in claimed if _convertible(node)]
    for node in converted:
        _wrap(graph, node)
    for node in converted:
        _cancel(graph, node)
    return converted


def to_last(rank: int) -> tuple[int, ...]:
    """The permutation NCHW -> NHWC for `rank` dimensions."""
    return 0, *range(2, rank), 1


def to_first(rank: int) -> tuple[int, ...]:
    """The permutation NHWC -> NCHW for `rank` dimensions."""
    return 0, rank - 1, *range(1, rank - 1)


def _convertible(node: Node) -> bool:
    data = node.input(0)
    return (
        node.domain == ""
        and node.op_type in _SENSITIVE
        and data is not None
        and data.shape is not None
        and len(data.shape) >= 3
        and all(value.use_count == 0 for value in node.outputs[1:])
    )


def _wrap(graph: Graph, node: Node) -> None:
    rank = len(_shape_of(node.inputs[0]))
    for index in _SENSITIVE[node.op_type]:
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
    node.domain = NHWC_DOMAIN


def _shape_of(value: Value | None) -> Shape:
    if value is None or value.shape is None:
        raise ValueError("only nodes with a data input of known rank are converted")
    return value.shape


def _permuted(value: Value | None, permutation: tuple[int, ...]) -> TensorType | None:
    if value is None or value.dtype is None:
        return None
    shape = value.shape
    return TensorType(value.dtype, None if shape is None else tuple(shape[axis] for axis in permutation))


def _cancel(graph: Graph, node: Node) -> None:
    for index in _SENSITIVE[node.op_type]:
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
    one, two = first.get("perm"), second.get("perm")
    return one is not None and two is not None and tuple(one[axis] for axis in two) == tuple(range(len(one)))
