"""What ONNX Runtime's format says of operators beside their nodes: versions, parameters, defaults.

Source: the schemas of the installed `onnx`. Who saves a model with operators of other domains describes these.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.forks import without_fork
from sardonyx.formats.onnx_attribute import write_attribute
from sardonyx.formats.protos import Message, protos
from sardonyx.ir import Attribute, Graph, Node

__all__ = ["Describe", "OperatorFacts", "default_attribute", "facts_of"]

_MOST_VERSION = (1 << 31) - 1
"""The newest opset that `onnx` can be asked for; files may name newer ones."""


@dataclasses.dataclass(frozen=True, slots=True)
class OperatorFacts:
    """What the format says of an operator."""

    since_version: int
    """The version from which on it means what the node's version means."""
    inputs: tuple[tuple[str, bool], ...] = ()
    """The type of each parameter, by the name of its constraint, and whether it takes any number of values."""
    outputs: tuple[tuple[str, bool], ...] = ()
    """The same of outputs."""
    defaults: tuple[Message, ...] = ()
    """AttributeProto of each attribute that has a default."""

    def types(self) -> dict[str, list[tuple[int, int]]]:
        """Return name of a type -> the parameters of it, each as 0 for an input or 1 for an output, and its number."""
        found: dict[str, list[tuple[int, int]]] = {}
        for side, parameters in enumerate((self.inputs, self.outputs)):
            for index, (name, _) in enumerate(parameters):
                found.setdefault(name, []).append((side, index))
        return found

    def counts(self, inputs: int) -> list[int]:
        """Return how many values each parameter has of a node with so many inputs."""
        found = []
        for _, is_variadic in self.inputs:
            count = inputs if is_variadic else min(inputs, 1)
            found.append(count)
            inputs -= count
        return [*found, *([1] * inputs)]


Describe: TypeAlias = Callable[[Node], OperatorFacts]
"""Says what the format says of the operator of a node."""


def default_attribute(name: str, attribute: Attribute) -> Message:
    """Return the AttributeProto of a default; of no kind that holds a graph."""
    proto = protos().AttributeProto()
    write_attribute(proto, name, attribute, _no_graph)
    return proto


def facts_of(node: Node) -> OperatorFacts:
    """Return what the format says of an operator of the standard; version 1, and nothing else, of others."""
    return _facts(node.domain, node.op_type, node.version)


@functools.lru_cache(maxsize=1024)
def _facts(domain: str, op_type: str, version: int) -> OperatorFacts:
    with without_fork():
        import onnx.defs

    try:
        schema = onnx.defs.get_schema(op_type, max(0, min(version, _MOST_VERSION)), domain)
    except onnx.defs.SchemaError:
        return OperatorFacts(1)
    constraints = {constraint.type_param_str for constraint in schema.type_constraints}
    variadic = onnx.defs.OpSchema.FormalParameterOption.Variadic

    def types(items: Iterable[Any]) -> tuple[tuple[str, bool], ...]:
        named = ((item, item.type_str if item.type_str in constraints else item.name) for item in items)
        return tuple((name, item.option == variadic) for item, name in named)

    defaults = tuple(item.default_value for item in schema.attributes.values() if item.default_value.name)
    return OperatorFacts(schema.since_version, types(schema.inputs), types(schema.outputs), defaults)


def _no_graph(proto: Message, graph: Graph) -> None:
    raise ValueError(f"the default of an attribute cannot be the graph {graph.name!r}")
