"""Evaluate graphs node by node with the reference kernels, with nothing of the engine between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import sardonyx.providers.reference.kernels  # noqa: F401  registers the kernels
from sardonyx import errors
from sardonyx.ir import Attribute, AttributeKind, Graph, Model, Node, Value
from sardonyx.providers.reference.registry import Call, find_kernel

__all__ = ["evaluate_graph", "evaluate_model", "evaluate_node", "random_feeds"]


def evaluate_model(model: Model, feeds: Mapping[str, Any]) -> list[Any]:
    """The outputs of a model without function calls for `feeds` by input name."""
    found: dict[Value, Any] = {value: feeds[value.name] for value in model.graph.inputs if value.name in feeds}
    return evaluate_graph(model.graph, found)


def evaluate_graph(graph: Graph, found: dict[Value, Any]) -> list[Any]:
    """The outputs of a graph, given its inputs and what it captures, to which all values are added."""
    for value in graph.initializers.values():
        if value not in found and value.constant is not None:
            found[value] = value.constant.numpy()
    for node in graph:
        inputs = [None if value is None else found[value] for value in node.inputs]
        found.update(zip(node.outputs, evaluate_node(node, inputs, found), strict=False))
    return [found[value] for value in graph.outputs]


def evaluate_node(node: Node, inputs: Sequence[Any], outer: dict[Value, Any] | None = None) -> list[Any]:
    """The outputs of one node; `outer` holds what its subgraphs capture."""
    kernel = find_kernel(node.domain, node.op_type, node.version)
    if kernel is None:
        raise errors.NotImplemented(f"no reference kernel for {node.domain}.{node.op_type}")
    named = {name: _attribute(value, outer or {}) for name, value in node.attributes.items() if name in kernel.attributes}
    present = tuple(bool(value.name or value.use_count) for value in node.outputs)
    call = Call(node.name, node.op_type, node.version, present, tuple(value.dtype for value in node.outputs))
    result = kernel.function(call, *inputs, **kernel.keywords(node, named))
    results = list(result) if isinstance(result, tuple) else [result]
    return [np.asarray(item) if isinstance(item, np.generic) else item for item in results]


def _attribute(attribute: Attribute, outer: dict[Value, Any]) -> Any:
    if attribute.kind is AttributeKind.TENSOR:
        return attribute.value.numpy()
    if attribute.kind is AttributeKind.GRAPH:
        return _Body(attribute.value, outer)
    return attribute.value


class _Body:
    """A subgraph as kernels call it."""

    def __init__(self, graph: Graph, outer: dict[Value, Any]) -> None:
        self._graph, self._outer = graph, outer
        self.input_count, self.output_count = len(graph.inputs), len(graph.outputs)

    def __call__(self, *inputs: Any) -> list[Any]:
        return evaluate_graph(self._graph, {**self._outer, **dict(zip(self._graph.inputs, inputs, strict=False))})


def random_feeds(model: Model, *, symbols: Mapping[str, int] | None = None, seed: int = 0) -> dict[str, Any]:
    """Normally distributed inputs (small integers for integer types); symbolic dimensions are 3 unless `symbols` says else."""
    generator = np.random.default_rng(seed)
    feeds = {}
    for value in model.graph.inputs:
        if value.constant is not None or value.dtype is None:
            continue
        shape = [dim if isinstance(dim, int) else (symbols or {}).get(str(dim), 3) for dim in value.shape or ()]
        numbers = generator.standard_normal(shape) * (1 if value.dtype.numpy.kind == "f" else 3)
        feeds[value.name] = np.asarray(numbers).astype(value.dtype.numpy)
    return feeds
