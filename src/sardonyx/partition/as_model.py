"""Nodes as an ONNX model of their own, for providers that hand them to another runtime.

Names are positions (i0, i1 …, w0 …, o0 …), so that equal nodes are equal bytes. A file has one version for each domain, the model's
own; nodes that mean something else under it cannot be written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from sardonyx.formats import onnx as onnx_format
from sardonyx.ir import Expr, Graph, Model, Node, TensorType, Value
from sardonyx.ir.shape import anonymous
from sardonyx.ops.schemas import find_schema
from sardonyx.optimize.edit import clone_node

__all__ = ["base_versions", "has_same_meaning", "write_nodes"]


def base_versions(nodes: Iterable[Node]) -> dict[str, int]:
    """Return for each domain the version under which `nodes` are written: the lowest.

    What was claimed for the lowest version of a whole graph can be written under the lowest of its own: layout steps and casts add
    nodes of older versions to the graph afterwards.
    """
    found: dict[str, int] = {}
    for node in nodes:
        found[node.domain] = min(node.version, found.get(node.domain, node.version))
    return found


def has_same_meaning(node: Node, version: int) -> bool:
    """Return whether `node` means the same under `version`; a newer operator has one meaning there too, if a runtime knows it."""
    if version == node.version:
        return True
    own, other = (find_schema(node.domain, node.op_type, number) for number in (node.version, version))
    return other is None or (own is not None and own.since_version == other.since_version)


def write_nodes(
    nodes: Iterable[Node],
    inputs: Sequence[Value],
    constants: Sequence[Value],
    outputs: Sequence[Value],
    versions: Mapping[str, int],
    is_left_out: Callable[[Value], bool] = lambda value: False,
) -> bytes:
    """Write nodes as a model.

    Args:
        nodes: in topological order.
        inputs: values that they read, from outside.
        constants: constants that they read.
        outputs: values that they make and that are wanted.
        versions: domain -> version, which `has_same_meaning` holds for.
        is_left_out: which of the constants are inputs of the model, after `inputs`, instead of weights in it.
    """
    values = {value: _named(value, f"i{index}") for index, value in enumerate(inputs)}
    values.update((value, _named(value, f"w{index}")) for index, value in enumerate(constants))
    open_weights = [values[value] for value in constants if is_left_out(value)]
    weights = [values[value] for value in constants if not is_left_out(value)]
    for value in open_weights:
        value.constant = None
    graph = Graph("partition", [*(values[value] for value in inputs), *open_weights], initializers=weights)
    for index, node in enumerate(nodes):
        copy = graph.append(clone_node(node, values))
        copy.name, copy.doc, copy.metadata, copy.version = "", "", None, versions[node.domain]
        for place, (made, value) in enumerate(zip(copy.outputs, node.outputs, strict=True)):
            made.name = f"v{index}_{place}" if value.name or value.use_count else ""
            made.type, made.doc, made.metadata = None, "", None
    for index, value in enumerate(outputs):
        values[value].name, values[value].type = f"o{index}", _open(value)
    for value in outputs:
        graph.add_output(values[value])
    return onnx_format.to_bytes(Model(graph, dict(versions)))


def _named(value: Value, name: str) -> Value:
    return Value(name, _open(value), value.constant)


def _open(value: Value) -> TensorType:
    """Return the type of `value`, with any size where its own is symbolic."""
    if value.dtype is None:
        raise ValueError(f"{value!r} has no element type")
    dims = value.shape
    return TensorType(value.dtype, None if dims is None else tuple(anonymous() if isinstance(dim, Expr) else dim for dim in dims))
