"""Rewrite rules, and the builder with which they make what they put in place of a match.

    MERGE_RELU = Rule("merge_relu", pattern, replace, check)

`check(match)` returns None to fire, a string (the reason) to decline, or anything else: what it learned.
`replace(op, match, learned)` builds the new nodes and returns the new value, or a tuple of them as the pattern does.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import Array, OnnxValue
from sardonyx.errors import InvalidArgument, OptimizationError
from sardonyx.ir import Attribute, Graph, Node, Tensor, Value
from sardonyx.ir.attribute import AttributeValue
from sardonyx.ops.infer import infer_node
from sardonyx.ops.schemas import find_schema
from sardonyx.ops.schemas_contrib import OLDER_SCHEMAS
from sardonyx.optimize.contract import Level
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternFunction
from sardonyx.optimize.target import OpKey, OptIn

__all__ = ["Builder", "Check", "Replace", "Rule", "checked"]

_NEWER_VERSIONS = 40
_RESERVED = {"_domain", "_version", "_attributes"}


class Builder:
    """Makes nodes in front of the root of a match; any attribute is an operator, as the notation `op.Relu(x)` wants it.

    Inputs are values, None, or numbers and arrays, which become constants. Keywords are attributes; one that is None is left out.

        _attributes=node.attributes     attributes to begin with
        _domain="com.microsoft"         another domain, read under the root's version if it is the root's, else the model's
        _version=13                     another version, such as that of a matched node
    """

    def __init__(self, root: Node, opset_imports: Mapping[str, int], fresh: Callable[[str], str]) -> None:
        """Build in front of `root`; `fresh` gives names that no other value has."""
        if root.graph is None:
            raise InvalidArgument(f"{root!r} is in no graph")
        self._root, self._graph, self._imports, self._fresh = root, root.graph, opset_imports, fresh
        self.nodes: list[Node] = []
        """What was made so far."""

    @property
    def graph(self) -> Graph:
        """The graph of the root."""
        return self._graph

    def version(self, domain: str = "", op_type: str = "Identity") -> int:
        """Return the opset version that a new node is read under: the root's in its domain, the model's in another.

        An operator that is newer is read under the version that brought it: versions belong to nodes, not to graphs.
        """
        version = self._root.version if domain == self._root.domain else self._imports.get(domain, 1)
        return _first_version(domain, op_type, version)

    def __getattr__(self, op_type: str) -> Callable[..., Value]:
        """Return the maker of nodes of `op_type` with one output."""
        if op_type.startswith("_"):
            raise AttributeError(op_type)

        def make(*inputs: OnnxValue, **attributes: AttributeValue) -> Value:
            return self.node(op_type, *inputs, **attributes)

        return make

    def node(self, op_type: str, *inputs: OnnxValue, **attributes: AttributeValue) -> Value:
        """Make a node with one output of an operator whose name is computed."""
        return self.outputs(op_type, 1, *inputs, **attributes)[0]

    def outputs(self, op_type: str, count: int, *inputs: OnnxValue, **attributes: AttributeValue) -> tuple[Value, ...]:
        """Make a node with `count` outputs."""
        unknown = {key for key in attributes if key.startswith("_")} - _RESERVED
        if unknown:
            known = ", ".join(sorted(_RESERVED))
            raise InvalidArgument(f"builder: {op_type} takes no {', '.join(sorted(unknown))}; known are {known}")
        domain = attributes.get("_domain", "")
        given: dict[str, Attribute] = dict(attributes.get("_attributes", {}))
        given.update({key: _attribute(value) for key, value in attributes.items() if key not in _RESERVED and value is not None})
        node = Node(
            op_type,
            [self._value(value) for value in inputs],
            count,
            given,
            domain=domain,
            version=attributes.get("_version") or self.version(domain, op_type),
            name=self._root.name,
        )
        self._graph.insert_before(self._root, node)
        self.nodes.append(node)
        for value, fact in zip(node.outputs, infer_node(node), strict=False):
            value.type = fact.type
        return node.outputs

    def constant(self, array: Array, name: str = "") -> Value:
        """Add a constant to the graph of the root, under `name` or one like it."""
        tensor = Tensor.from_array(array)
        return self._graph.add_initializer(tensor, self._fresh(name or f"{self._root.name or self._root.op_type}/constant"))

    def _value(self, value: AttributeValue) -> Value | None:
        if value is None or isinstance(value, Value):
            return value
        return self.constant(np.asarray(value))


@functools.cache
def _first_version(domain: str, op_type: str, version: int) -> int:
    """Return the first version from `version` on at which the standard has the operator; `version` for an unknown one."""
    older = OLDER_SCHEMAS.get((domain, op_type))
    for later in range(version, version + _NEWER_VERSIONS):
        if find_schema(domain, op_type, later) not in (None, older):
            return later
    return version


def _attribute(value: AttributeValue) -> Attribute:
    return value if isinstance(value, Attribute) else Attribute.of(value)


Check: TypeAlias = Callable[[Match], object]
"""f(match) -> None to fire, a string that says why it declines, or what it learned, which `replace` receives."""
Replace: TypeAlias = Callable[[Builder, Match, Any], "Value | tuple[Value, ...]"]
"""f(op, match, learned) -> the values to put in place of the pattern's; `learned` is what check returned."""


def _always(match: Match) -> None:
    return None


def checked(rule: Rule, match: Match) -> object:
    """Return what the check of a rule says of a match.

    Raises:
        OptimizationError: it says True or False, either of which may be meant as "fire" and as "do not".
    """
    said = rule.check(match)
    if isinstance(said, bool):
        raise OptimizationError(f"check returned {said}; return a text that says why to decline, None to fire, or what it learned")
    return said


@dataclasses.dataclass(frozen=True, slots=True)
class Rule:
    """A small pattern and what to put in its place."""

    name: str
    """verb_noun, by which reports list it and a user switches it off."""
    pattern: PatternFunction
    """What is replaced; see pattern.py."""
    replace: Replace
    """Builds the replacement."""
    check: Check = _always
    """Decides on conditions that a pattern cannot say."""
    level: Level = Level.BASIC
    """From which level on the rule is applied."""
    tolerance: float = 1e-5
    """By how much a float32 may differ, relative to the largest of its tensor, as the rule computes in another order; other types
    as much more or less as they are coarser or finer. What only moves elements must be equal bit by bit, whatever stands here."""
    integer_steps: int = 0
    """By how much an integer may differ: 1 where a rule rounds at another place."""
    makes: frozenset[OpKey] = frozenset()
    """Operators standing for several others that it makes: it takes part where one of them is legal (see target.py)."""
    prepares: frozenset[OpKey] = frozenset()
    """Operators that other rules make of what it leaves: it takes part where one of them is legal."""
    takes_apart: frozenset[OpKey] = frozenset()
    """Operators that it decomposes, or whose parts it changes so that they cannot be made: it takes part where none is legal."""
    takes_legal_apart: bool = False
    """True where it takes part also if such an operator is legal: later rules make it again, or its parts are better everywhere."""
    about: Callable[[Match], OpKey] | None = None
    """The operator that one match takes apart, or whose parts it changes: it declines where that is legal. For rules about several,
    of which some may be legal."""
    opt_in: OptIn | None = None
    """The session config entry without which it takes no part."""
    opt_out: str = ""
    """The session config entry that leaves it out where it says "1"."""
    summary: str = ""
    """One imperative sentence on what it does; empty where the first line of its module's docstring is that."""
    aliases: tuple[str, ...] = ()
    """Names that onnxruntime has for what it does, by which a user may disable it too."""
