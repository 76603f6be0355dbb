"""Find the matches of a pattern at a node, and what rules may ask about one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import Array
from sardonyx.ir import Node, Tensor, Value
from sardonyx.ir.attribute import AttributeValue
from sardonyx.ir.walk import captured_values
from sardonyx.ops.views.inputs import Inputs, constants
from sardonyx.optimize.edit import small_constant, tensor_of
from sardonyx.optimize.pattern import Pattern
from sardonyx.optimize.terms import Found, MatchScope, Output

__all__ = ["Match", "MatchTrace", "find_matches"]


@dataclasses.dataclass(frozen=True, slots=True)
class Match:
    """A pattern found in a graph: nodes that a rule may replace."""

    root: Node
    """The node of the first value that the pattern returns."""
    nodes: tuple[Node, ...]
    """All matched nodes, the root first."""
    outputs: tuple[Value, ...]
    """The values to replace, in the order in which the pattern returns them."""
    place: MatchScope
    """The graph, and which inputs are no constants."""
    _values: Mapping[str, Value | tuple[Value | None, ...] | None]
    _named: Mapping[str, Node]
    _attributes: Mapping[str, AttributeValue]

    def __getitem__(self, name: str) -> Value:
        """Return the value bound to a parameter; raises KeyError where none is, or the input is left out."""
        value = self._values.get(name)
        if name not in self._values:
            raise KeyError(f"{name}; the pattern has {', '.join(self._values)}")
        if not isinstance(value, Value):
            raise KeyError(name)
        return value

    def get(self, name: str) -> Value | None:
        """Return the value bound to a parameter, None where the input is left out or the alternative without it matched."""
        value = self._values.get(name)
        return value if isinstance(value, Value) else None

    def rest(self, name: str) -> tuple[Value | None, ...]:
        """Return the values bound by `op.rest(name)`."""
        value = self._values[name]
        return value if isinstance(value, tuple) else (value,)

    def node(self, name: str) -> Node:
        """Return the node captured with `_as=name`; raises KeyError where the alternative without it matched."""
        return self._named[name]

    def has(self, name: str) -> bool:
        """Return whether the alternative with a node captured by `name` matched."""
        return name in self._named

    def attribute(self, name: str) -> AttributeValue:
        """Return the attribute captured with `op.attribute(name)`, Any as its kind decides; None where missing without default."""
        return self._attributes[name]

    def tensor(self, name: str) -> Tensor | None:
        """Return the tensor of a parameter that is a constant, else None; reads no data."""
        return tensor_of(self.get(name), self.place.overridable)

    def inputs(self, node: Node) -> Inputs:
        """Return the inputs of a node for its view, of which those are known that are small constants."""
        return constants(node, self.place.overridable)

    def constant(self, name: str, max_elements: int = 1024) -> Array | None:
        """Return the elements of a parameter that is a constant of at most so many elements, else None."""
        return small_constant(self.get(name), self.place.overridable, max_elements=max_elements)


class MatchTrace(Protocol):
    """Follows which matches of one pattern cannot be replaced."""

    def read_elsewhere(self, match: Match, value: Value) -> None:
        """Note that a match cannot be replaced, as nodes outside of it read a value inside, or a graph gives it out."""

    def made_between(self, match: Match) -> None:
        """Note that a match cannot be replaced, as nodes outside of it lie between its nodes."""


def find_matches(pattern: Pattern, root: Node, overridable: frozenset[Value], trace: MatchTrace | None = None) -> Iterator[Match]:
    """Yield the matches of `pattern` with its root at `root` whose nodes can be taken out of the graph.

    `trace` is given those whose nodes cannot.
    """
    place = MatchScope(root.graph, overridable)
    for output in pattern.roots:
        if output.index >= len(root.outputs) or not output.operation.may_match(root):
            continue
        for found in output.match(root.outputs[output.index], Found({}, {}, {}), place):
            match = _as_match(pattern, output, root, found, place)
            if match is not None and _can_be_replaced(match, found, trace):
                yield match


def _as_match(pattern: Pattern, first: Output, root: Node, found: Found, place: MatchScope) -> Match | None:
    outputs = [root.outputs[first.index]]
    for term in pattern.results[1:]:
        node = found.nodes.get(term.operation) if isinstance(term, Output) else None
        if node is None or not isinstance(term, Output) or term.index >= len(node.outputs):
            return None
        outputs.append(node.outputs[term.index])
    named = {operation.name: node for operation, node in found.nodes.items() if operation.name}
    nodes = tuple(dict.fromkeys(found.nodes.values()))
    return Match(root, nodes, tuple(outputs), place, found.values, named, found.attributes)


def _can_be_replaced(match: Match, found: Found, trace: MatchTrace | None) -> bool:
    value = _read_elsewhere(match, found)
    if value is not None and trace is not None:
        trace.read_elsewhere(match, value)
    if value is not None or len(match.outputs) == 1:
        return value is None
    is_convex = _is_convex(match)
    if not is_convex and trace is not None:
        trace.made_between(match)
    return is_convex


def _read_elsewhere(match: Match, found: Found) -> Value | None:
    """Return the first value inside a match that something outside reads; None where there is none."""
    matched = set(match.nodes)
    shared = {node for operation, node in found.nodes.items() if operation.is_shared}
    for node in match.nodes:
        if node in shared:
            continue
        for value in node.outputs:
            if value not in match.outputs and not all(user in matched for user, _ in value.uses):
                return value
    return None


def _is_convex(match: Match) -> bool:
    """Return whether no path leaves the match by an output and comes back to it by an input.

    Walks upwards from what the match reads to what it makes; with several outputs only, as one output's users come later.
    """
    matched = set(match.nodes)
    stack = [value for node in match.nodes for value in _reads(node)]
    seen: set[Node] = set()
    while stack:
        node = stack.pop().producer
        if node is None or node in seen or node in matched or node.graph is not match.place.graph:
            continue
        seen.add(node)
        reads = _reads(node)
        if any(value.producer in matched for value in reads):
            return False
        stack.extend(reads)
    return True


def _reads(node: Node) -> list[Value]:
    captured = [value for graph in node.subgraphs for value in captured_values(graph)]
    return [value for value in node.inputs if value is not None] + captured
