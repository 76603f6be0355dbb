"""A graph as data of a page: nodes, values and edges, with the bodies of control flow inside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from sardonyx.ir import Attribute, AttributeKind, Dim, Expr, Graph, Model, Node, Tensor, Value
from sardonyx.ir.shape import is_anonymous
from sardonyx.partition.cut import node_reads
from sardonyx.partition.explain import Placement, shown_reasons

__all__ = ["Facts", "graph_facts"]

Facts = dict[str, Any]
"""What is on its way to JSON, hence Any."""

_FEW_ELEMENTS = 8
_MOST_TEXT = 200


def graph_facts(model: Model, placements: Mapping[tuple[str, str], Placement] | None = None) -> Facts:
    """Return the main graph of a model, with all bodies in it, as nodes and values that are numbered.

    Args:
        model: the model; it stays as it is.
        placements: (name, operator) of a node -> who runs it, where that is known.

    Returns:
        `nodes` in topological order, `values`, and the numbers of `inputs` and `outputs` among the values.
    """
    return _Collector(placements or {}).collect(model.graph)


class _Collector:
    """Numbers nodes and values."""

    def __init__(self, placements: Mapping[tuple[str, str], Placement]) -> None:
        self._placements = placements
        self._numbers: dict[Value, int] = {}
        self._values: list[Facts] = []
        self._nodes: list[Facts] = []

    def collect(self, graph: Graph) -> Facts:
        inputs = [self._number(value) for value in graph.inputs]
        self._add_graph(graph, "")
        outputs = [self._number(value) for value in graph.outputs]
        return {"nodes": self._nodes, "values": self._values, "inputs": inputs, "outputs": outputs}

    def _add_graph(self, graph: Graph, inside: str) -> None:
        for node in graph:
            self._add_node(node, inside)

    def _add_node(self, node: Node, inside: str) -> None:
        label = _label(node)
        reads = [self._number(value) for value in node_reads(node)]
        for name, attribute in node.attributes.items():
            for number, body in enumerate(_bodies(attribute)):
                several = attribute.kind is AttributeKind.GRAPHS
                self._add_graph(body, f"{label}/{name}{number if several else ''}")
                reads += [self._number(value) for value in body.outputs]
        operator = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
        facts: Facts = {
            "name": label,
            "op": operator,
            "version": node.version,
            "ins": list(dict.fromkeys(reads)),
            "outs": [self._number(value) for value in node.outputs if value.name or value.use_count],
            "attrs": {name: _text(attribute) for name, attribute in node.attributes.items()},
        }
        placement = self._placements.get((label, operator))
        if placement is not None:
            facts |= {"provider": placement.provider, "partition": placement.partition, "unit": placement.unit}
            facts["declined"] = shown_reasons(placement.declined)
        if inside:
            facts["inside"] = inside
        self._nodes.append(facts)

    def _number(self, value: Value) -> int:
        if value not in self._numbers:
            self._numbers[value] = len(self._values)
            self._values.append(_value(value))
        return self._numbers[value]


def _label(node: Node) -> str:
    return node.name or next((value.name for value in node.outputs if value.name), "")


def _bodies(attribute: Attribute) -> Iterator[Graph]:
    if isinstance(attribute.value, Graph):
        yield attribute.value
    elif attribute.kind is AttributeKind.GRAPHS and attribute.value is not None:
        yield from attribute.value


def _value(value: Value) -> Facts:
    shape = None if value.shape is None else [_dim(dim) for dim in value.shape]
    facts: Facts = {"name": value.name, "type": str(value.dtype or value.type or ""), "shape": shape}
    if value.constant is not None:
        facts |= {"bytes": value.constant.size_bytes, "const": _few(value.constant)}
    return facts


def _dim(dim: Dim) -> int | str:
    if isinstance(dim, Expr):
        return "?" if is_anonymous(dim) else str(dim)
    return dim


def _few(tensor: Tensor) -> str:
    """Return the elements of a small constant; "" of a large one, which is not read."""
    if tensor.size > _FEW_ELEMENTS:
        return ""
    return np.array2string(tensor.numpy(), precision=6, separator=", ")[:_MOST_TEXT]


def _text(attribute: Attribute) -> str:
    value = attribute.value
    if attribute.reference is not None:
        return f"@{attribute.reference}"
    if isinstance(value, Tensor):
        return f"{value.dtype}{list(value.shape)} {_few(value)}".strip()
    bodies = list(_bodies(attribute))
    if bodies:
        return ", ".join(f"a graph of {len(body)} nodes" for body in bodies)
    if isinstance(value, tuple):
        text = str(list(value[:_MOST_TEXT]))
        return text if len(text) <= _MOST_TEXT else f"{len(value)} items: {text[:_MOST_TEXT]}…"
    text = repr(value) if isinstance(value, (str, bytes)) else str(value)
    return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}…"
