"""What a user placed by hand, and its notation.

Conv=CPUExecutionProvider                 every node of an operator; `com.microsoft.Gelu` for another domain than ai.onnx
node:conv1=CPUExecutionProvider           the node of this name, or the one that makes the value of this name
7=CPUExecutionProvider                    a node of the main graph, counted from 0 as the file lists them
annotation:encoder=CPUExecutionProvider   nodes whose metadata "layer_ann" begins with the text; `annotation:=encoder` is exact
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.errors import InvalidArgument

__all__ = ["Pins", "parse_pins"]


@dataclasses.dataclass(frozen=True, slots=True)
class Pins:
    """What a user placed by hand: each mapping leads to the name of a provider, with or without "ExecutionProvider" at its end."""

    operators: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Operator, with its domain where that is not ai.onnx -> provider."""
    nodes: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Name of a node, or of a value that it makes -> provider."""
    indices: Mapping[int, str] = dataclasses.field(default_factory=dict)
    """Place of a node in the main graph of the file -> provider."""
    annotations: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Beginning of an annotation, or "=" and a whole one -> provider."""
    layers: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """As `annotations`, of which beginnings come before exact ones, then the first counts; a weaker word than those above."""
    name_parts: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Part of the names of nodes -> provider; a weaker word than those above, but for operators."""
    fall_through: bool = False
    """Whether a node that its provider declines goes to the others; else that is an error."""

    def joined(self, other: Pins) -> Pins:
        """Return these pins and those of `other`, which win."""
        return Pins(
            operators={**self.operators, **other.operators},
            nodes={**self.nodes, **other.nodes},
            indices={**self.indices, **other.indices},
            annotations={**self.annotations, **other.annotations},
            layers={**self.layers, **other.layers},
            name_parts={**self.name_parts, **other.name_parts},
            fall_through=self.fall_through or other.fall_through,
        )


def parse_pins(texts: Iterable[str]) -> Pins:
    """Read pins in the notation above; raises InvalidArgument where one is malformed."""
    operators: dict[str, str] = {}
    nodes: dict[str, str] = {}
    indices: dict[int, str] = {}
    annotations: dict[str, str] = {}
    for text in texts:
        key, separator, provider = (part.strip() for part in text.rpartition("="))
        kind, colon, name = key.partition(":")
        if not separator or not key or not provider or (colon and not name):
            raise InvalidArgument(
                f"a placement is OPERATOR=PROVIDER, node:NAME=PROVIDER, INDEX=PROVIDER or annotation:TEXT=PROVIDER, got {text!r}"
            )
        if kind == "node" and colon:
            nodes[name] = provider
        elif kind == "annotation" and colon:
            annotations[name] = provider
        elif key.removeprefix("-").isdigit():
            indices[int(key)] = provider
        elif colon:
            raise InvalidArgument(f"a placement begins with an operator, an index, 'node:' or 'annotation:', got {text!r}")
        else:
            operators[key] = provider
    return Pins(operators, nodes, indices, annotations)
