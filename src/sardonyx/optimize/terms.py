"""What patterns are made of: terms that match a value, each yielding every way in which it does.

A match so far (`Found`) is immutable: a term that binds something yields a new one, so alternatives need no undoing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, TypeAlias

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.ir import Graph, Node, Value
from sardonyx.ir.attribute import AttributeValue
from sardonyx.ops.schemas import find_schema
from sardonyx.optimize.edit import small_constant, tensor_of

__all__ = [
    "AnyValue",
    "AttributeCapture",
    "Choice",
    "Found",
    "MatchScope",
    "Nothing",
    "Number",
    "Operation",
    "Output",
    "Rest",
    "Term",
    "Trace",
    "Traced",
    "attribute_value",
    "satisfies",
]

COMMUTATIVE = frozenset(
    ["Add", "Mul", "And", "Or", "Xor", "Equal", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Max", "Min", "Sum", "Mean"]
)
"""Operators of ai.onnx whose two inputs may be exchanged."""


@dataclasses.dataclass(frozen=True, slots=True)
class MatchScope:
    """Where a pattern is matched."""

    graph: Graph | None
    """The graph of the root; all matched nodes are in it."""
    overridable: frozenset[Value]
    """Inputs with a default, which are no constants."""


@dataclasses.dataclass(frozen=True, slots=True)
class Found:
    """What is bound so far."""

    values: Mapping[str, Value | tuple[Value | None, ...] | None]
    """Parameter -> the value, None where left out, or a tuple for the rest of the inputs."""
    nodes: Mapping[Operation, Node]
    """Term -> the node that it stands for."""
    attributes: Mapping[str, AttributeValue]
    """Captured attributes; Any, as their kinds differ."""

    def bind(self, name: str, value: Value | tuple[Value | None, ...] | None) -> Found | None:
        """Return this with `name` bound, or None where it is bound to another value."""
        if name not in self.values:
            return Found({**self.values, name: value}, self.nodes, self.attributes)
        known = self.values[name]
        return self if known is value or (isinstance(known, tuple) and known == value) else None


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class AnyValue:
    """Any one value, the same wherever the name occurs."""

    name: str
    """The parameter that it binds."""
    must_be_constant: bool = False
    """Whether only an initializer or the output of a Constant node matches."""
    may_be_missing: bool = False
    """Whether an input that is left out matches."""
    depth: int = 0
    """How many nodes deep it reaches."""

    def match(self, value: Value | None, found: Found, place: MatchScope) -> Iterator[Found]:
        """Yield `found` with the value bound."""
        if value is None and not self.may_be_missing:
            return
        if self.must_be_constant and value is not None and tensor_of(value, place.overridable) is None:
            return
        bound = found.bind(self.name, value)
        if bound is not None:
            yield bound


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Nothing:
    """An input that is left out."""

    depth: int = 0
    """How many nodes deep it reaches."""

    def match(self, value: Value | None, found: Found, place: MatchScope) -> Iterator[Found]:
        """Yield `found` where there is no value."""
        if value is None:
            yield found


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Number:
    """A constant of one element."""

    value: float
    """What it must be."""
    tolerance: float
    """By how much it may differ, relative to `value` after rounding to the constant's type."""
    depth: int = 0
    """How many nodes deep it reaches."""

    def match(self, value: Value | None, found: Found, place: MatchScope) -> Iterator[Found]:
        """Yield `found` where the value is that constant."""
        array = small_constant(value, place.overridable, max_elements=1)
        if array is None or array.size != 1 or array.dtype.kind in "OUS":
            return
        expected = np.asarray(self.value).astype(array.dtype)
        if expected.dtype.kind in "iub" and float(expected) != self.value:
            return
        actual, wanted = float(array.reshape(())), float(expected)
        if actual == wanted or abs(actual - wanted) <= self.tolerance * abs(wanted):
            yield found


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Rest:
    """All further inputs of an operator."""

    name: str
    """The parameter that it binds, to a tuple."""
    depth: int = 0
    """How many nodes deep it reaches."""

    def match(self, value: Value | None, found: Found, place: MatchScope) -> Iterator[Found]:
        """Yield nothing: `Operation` binds it."""
        return iter(())


class Choice:
    """Alternatives, tried in order."""

    __slots__ = ("depth", "terms")

    def __init__(self, terms: tuple[Term, ...]) -> None:
        """Hold the alternatives."""
        self.terms = terms
        self.depth: int = max(term.depth for term in terms)

    def match(self, value: Value | None, found: Found, place: MatchScope) -> Iterator[Found]:
        """Yield the matches of each alternative."""
        for term in self.terms:
            yield from term.match(value, found, place)


@dataclasses.dataclass(frozen=True, slots=True)
class AttributeCapture:
    """An attribute that is captured, whatever it is."""

    name: str
    """The name under which a match has it."""


class Operation:
    """A node: operator, inputs, attributes."""

    __slots__ = (
        "_has_rest",
        "_is_commutative",
        "_producers",
        "constraints",
        "depth",
        "domain",
        "inputs",
        "is_shared",
        "name",
        "op_type",
    )

    def __init__(
        self,
        domain: str,
        op_type: str,
        inputs: tuple[Term, ...],
        constraints: Mapping[str, AttributeValue],
        *,
        name: str,
        is_shared: bool,
        is_ordered: bool,
    ) -> None:
        """Make the term of a node; `constraints` are Any: values, predicates or captures."""
        self.domain, self.op_type, self.name, self.is_shared = domain, op_type, name, is_shared
        self.inputs, self.constraints = inputs, constraints
        self._has_rest = bool(inputs) and isinstance(inputs[-1], Rest)
        self._is_commutative = not is_ordered and not domain and op_type in COMMUTATIVE and len(inputs) == 2 and not self._has_rest
        self.depth: int = 1 + max((term.depth for term in inputs), default=0)
        producers = enumerate(_producers(term) for term in inputs)
        self._producers = tuple((index, names) for index, names in producers if names is not None)

    def may_match(self, node: Node) -> bool:
        """Return whether the producers of a node's inputs are such that it may match: a quick look that spares most searches."""
        inputs = node.inputs
        if _are_made_by(inputs, self._producers):
            return True
        return self._is_commutative and len(inputs) > 1 and _are_made_by(inputs[1::-1], self._producers)

    def match_node(self, node: Node, found: Found, place: MatchScope) -> Iterator[Found]:
        """Yield each way in which `node` is this operator on these inputs."""
        if node.op_type != self.op_type or node.domain != self.domain or node.overload:
            return
        inputs = node.inputs
        while inputs and inputs[-1] is None:
            inputs = inputs[:-1]
        if len(inputs) > len(self.inputs) and not self._has_rest:
            return
        attributes = self._match_attributes(node, found.attributes)
        if attributes is None:
            return
        start = Found(found.values, {**found.nodes, self: node}, attributes)
        yield from self._match_inputs(0, inputs, start, place)
        if self._is_commutative and len(inputs) == 2:
            yield from self._match_inputs(0, inputs[::-1], start, place)

    def _match_inputs(self, index: int, inputs: Sequence[Value | None], found: Found, place: MatchScope) -> Iterator[Found]:
        if index == len(self.inputs):
            yield found
            return
        term = self.inputs[index]
        if isinstance(term, Rest):
            bound = found.bind(term.name, tuple(inputs[index:]))
            if bound is not None:
                yield bound
            return
        value = inputs[index] if index < len(inputs) else None
        for more in term.match(value, found, place):
            yield from self._match_inputs(index + 1, inputs, more, place)

    def _match_attributes(self, node: Node, captured: Mapping[str, AttributeValue]) -> Mapping[str, AttributeValue] | None:
        for name, constraint in self.constraints.items():
            actual = attribute_value(node, name)
            if isinstance(constraint, AttributeCapture):
                captured = {**captured, constraint.name: actual}
            elif not satisfies(actual, constraint):
                return None
        return captured


def _producers(term: Term) -> frozenset[str] | None:
    """Return the operators of the nodes whose outputs a term matches; None for any, or none."""
    if isinstance(term, Output):
        return frozenset([term.operation.op_type])
    if not isinstance(term, Choice):
        return None
    found = [_producers(alternative) for alternative in term.terms]
    return None if None in found else frozenset().union(*(names for names in found if names is not None))


def _are_made_by(inputs: Sequence[Value | None], producers: Sequence[tuple[int, frozenset[str]]]) -> bool:
    for index, names in producers:
        value = inputs[index] if index < len(inputs) else None
        if value is None or value.producer is None or value.producer.op_type not in names:
            return False
    return True


def attribute_value(node: Node, name: str) -> AttributeValue:
    """Return the value of an attribute (Any, by its kind).

    A node that lacks it has the schema's default, or None where there is none.
    """
    attribute = node.attributes.get(name)
    if attribute is not None:
        return attribute.value
    schema = find_schema(node.domain, node.op_type, node.version)
    formal = None if schema is None else schema.attributes.get(name)
    return None if formal is None else formal.default


def satisfies(actual: AttributeValue, constraint: AttributeValue) -> bool:
    """Return whether the value of an attribute (Any, by its kind) is what a pattern demands: a value or a predicate."""
    if callable(constraint):
        return bool(constraint(actual))
    if isinstance(constraint, (list, tuple)):
        return isinstance(actual, (list, tuple)) and tuple(actual) == tuple(constraint)
    if isinstance(constraint, float) and isinstance(actual, float):
        return bool(np.float32(actual) == np.float32(constraint))
    return bool(actual == constraint)


class Output:
    """One output of a node."""

    __slots__ = ("depth", "index", "operation")

    def __init__(self, operation: Operation, index: int) -> None:
        """Stand for output `index` of `operation`."""
        self.operation, self.index = operation, index
        self.depth: int = operation.depth

    def match(self, value: Value | None, found: Found, place: MatchScope) -> Iterator[Found]:
        """Yield each way in which a node of the graph makes `value` as this output."""
        if value is None or value.index != self.index:
            return
        node = value.producer
        if node is None or node.graph is not place.graph:
            return
        known = found.nodes.get(self.operation)
        if known is None:
            yield from self.operation.match_node(node, found, place)
        elif known is node:
            yield found


class Trace(Protocol):
    """Follows the search for a match of one pattern, to say where it stopped."""

    def follow(self, traced: Traced, value: Value | None, found: Found, place: MatchScope) -> Iterator[Found]:
        """Yield the ways in which `value` matches the term of `traced` when `found` is bound already."""


class Traced:
    """An input of an operation whose matching is followed."""

    __slots__ = ("_trace", "depth", "operation", "term")

    def __init__(self, term: Term, trace: Trace) -> None:
        """Stand for `term`, as an input of an operation that is set later."""
        self.term, self._trace = term, trace
        self.operation: Operation | None = None
        self.depth: int = term.depth

    def match(self, value: Value | None, found: Found, place: MatchScope) -> Iterator[Found]:
        """Yield what the term yields."""
        return self._trace.follow(self, value, found, place)


Term: TypeAlias = AnyValue | Choice | Nothing | Number | Output | Rest | Traced
"""Matches a value: match(value, found, place) yields each way."""
