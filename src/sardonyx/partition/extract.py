"""Nodes of a graph as a model of their own, on the values that they had in a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Graph, Model, Node, TensorType, Value
from sardonyx.optimize.edit import clone_node
from sardonyx.partition.cut import node_reads

__all__ = ["extract"]


def extract(
    model: Model, nodes: Sequence[Node], outputs: Sequence[Value], values: Mapping[Value, Array]
) -> tuple[Model, list[Array]]:
    """Copy `nodes`, in topological order and without subgraphs, to a model in which all sizes are numbers.

    Args:
        model: what they are nodes of; it stays as it is, and constants are shared.
        nodes: which.
        outputs: values that they make, to be the outputs.
        values: the arrays of all tensors that they read and make, but for constants.

    Returns:
        The model, and an array for each of its inputs.

    Raises:
        InvalidArgument: a value is no tensor.
    """
    made = {value for node in nodes for value in node.outputs}
    copies: dict[Value, Value] = {}
    graph = Graph("part")
    arguments: list[Array] = []
    for value in dict.fromkeys(value for node in nodes for value in node_reads(node) if value not in made):
        if value.constant is not None:
            copies[value] = graph.add_initializer(value.constant, f"constant{len(copies)}")
            continue
        copies[value] = Value(f"input{len(copies)}", _concrete(value, values))
        graph.inputs.append(copies[value])
        arguments.append(values[value])
    for node in nodes:
        copy = graph.append(clone_node(node, copies))
        for number, (value, result) in enumerate(zip(node.outputs, copy.outputs, strict=True)):
            result.name = f"value{len(graph)}_{number}"
            result.type = _concrete(value, values) if value in values else value.type
    for value in outputs:
        graph.add_output(copies[value])
    return Model(graph, dict(model.opset_imports), ir_version=model.ir_version), arguments


def _concrete(value: Value, values: Mapping[Value, Array]) -> TensorType:
    if value.dtype is None:
        raise InvalidArgument(f"{value!r} is no tensor")
    return TensorType(value.dtype, values[value].shape)
