"""Small tensors that follow from shapes alone: what Shape, Gather, Add, Concat and their like compute for a Reshape to read.

    Shape(x) -> Gather(0) -> Mul(12) -> Concat(…, 64)         elements 12 * batch and 64, whatever the operators are

Such a node is claimed as what it makes, not as what it does: its elements are sizes, which binding knows, and one tiny kernel
stores them where anything reads them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from sardonyx.ir import Expr, Node, Value
from sardonyx.ops.fact import Fact
from sardonyx.ops.infer import infer_node
from sardonyx.providers.cpu.expressions import element_type
from sardonyx.providers.cpu.size_claims import Elements

__all__ = ["size_facts", "size_values"]

_MOST_ELEMENTS = 64
_MOST_NODES, _DEEPEST = 64, 32
"""How many nodes before a value are looked at, and how many in a chain."""


def size_values(nodes: Iterable[Node]) -> Mapping[Node, tuple[Elements, ...]]:
    """Return the nodes, given in topological order, whose outputs follow from shapes, with the elements of each output.

    O(nodes).
    """
    return _found(nodes, {})


def size_facts(values: Iterable[Value | None]) -> Mapping[Value, Fact]:
    """Return what is known of values that follow from shapes alone, and of those that they are made of."""
    before: dict[Node, None] = {}
    for value in values:
        _collect(value, before, _DEEPEST)
    facts: dict[Value, Fact] = {}
    _found(before, facts)
    return facts


def _collect(value: Value | None, before: dict[Node, None], deepest: int) -> None:
    """Add the nodes that make a value, in topological order, as far as they may follow from shapes."""
    node = None if value is None else value.producer
    if node is None or node in before or not deepest or len(before) >= _MOST_NODES or not all(map(_is_small, node.outputs)):
        return
    for given in () if _begins(node) else node.inputs:
        _collect(given, before, deepest - 1)
    before[node] = None


def _found(nodes: Iterable[Node], facts: dict[Value, Fact]) -> Mapping[Node, tuple[Elements, ...]]:
    """Return what `size_values` does, and add what is known of each value to `facts`."""
    found: dict[Node, tuple[Elements, ...]] = {}
    for node in nodes:
        if not _may_be_sizes(node, facts):
            continue
        made = infer_node(node, facts)
        facts.update((value, fact) for value, fact in zip(node.outputs, made, strict=False) if fact.value is not None)
        elements = [_elements_of(facts.get(value)) for value in node.outputs]
        known = tuple(item for item in elements if item is not None)
        if len(known) == len(elements):
            found[node] = known
    return found


def _may_be_sizes(node: Node, facts: Mapping[Value, Fact]) -> bool:
    may_follow = _begins(node) or any(value in facts for value in node.inputs)
    return may_follow and not node.subgraphs and all(map(_is_small, node.outputs))


def _begins(node: Node) -> bool:
    return node.op_type in ("Shape", "Size") and not node.domain


def _is_small(value: Value) -> bool:
    sizes = [dim for dim in value.shape or () if isinstance(dim, int)]
    is_fixed = value.shape is not None and len(sizes) == len(value.shape)
    return is_fixed and math.prod(sizes) <= _MOST_ELEMENTS and element_type(value.dtype) is not None


def _elements_of(fact: Fact | None) -> Elements | None:
    items = None if fact is None else fact.elements
    if items is None or not all(isinstance(item, (int, Expr)) for item in items):
        return None
    return tuple(int(item) if isinstance(item, bool) else item for item in items)
