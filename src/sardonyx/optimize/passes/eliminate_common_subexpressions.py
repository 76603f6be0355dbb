"""Compute equal things once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from sardonyx.dtypes import DataType
from sardonyx.ir import ArrayAttribute, Attribute, AttributeKind, Graph, Model, Node, Tensor, Value
from sardonyx.ops.fact import Fact
from sardonyx.optimize.contract import Context, Pass
from sardonyx.optimize.edit import RANDOM, overridable_values

__all__ = ["ELIMINATE_COMMON_SUBEXPRESSIONS"]

_Key: TypeAlias = tuple[object, ...]

SMALL_BYTES = 4096
"""Up to this size constants are compared by content, above it by identity, so that no weights are read from a file."""

_MOST_ITEMS = 256
"""Longer lists among attributes are compared by identity."""

_INTEGERS = frozenset([DataType.INT32, DataType.INT64])
_DOMAINS = frozenset(["", "ai.onnx.ml", "com.microsoft"])


class _EliminateCommonSubexpressions:
    """Merge nodes with the same operator, version, inputs and attributes, or of the same symbolic value, and equal constants.

        a = Relu(x); b = Relu(x); y = Add(a, b)                  ->      a = Relu(x); y = Add(a, a)
        s = Shape(x); t = Shape(z), both (batch, 3)              ->      s = Shape(x), for both

    One symbol is one size: that is what equal names of dimensions say. A node of a subgraph may give way to an equal one of a
    graph around it that comes before. Left alone: operators that draw random numbers; operators of other domains, which may do
    anything; nodes with subgraphs; where level BASIC is all that is asked for, constants of several elements and what only the
    names of dimensions say, since the weights of two layers may be equal by chance, and tools tell them apart by their names; a
    value that an output of a graph names, as it would need a copy in its place; initializers that are inputs too.

    Holds before: nodes in topological order. Cost: O(nodes).
    """

    name = "eliminate_common_subexpressions"
    aliases = (
        "CommonSubexpressionElimination",
        "ConstantSharing",
        "IdenticalChildrenConsolidation",
    )

    def run(self, model: Model, context: Context) -> bool:
        """Merge; whether anything was merged."""
        return _Merging(overridable_values(model), context).merge(model.graph, {}, {})


ELIMINATE_COMMON_SUBEXPRESSIONS: Pass = _EliminateCommonSubexpressions()


class _Merging:
    """One run of the pass; numbers stand for values in keys, so that no object's address decides anything."""

    def __init__(self, overridable: frozenset[Value], context: Context) -> None:
        self._overridable, self._keeps_patterns = overridable, context.keeps_patterns
        self._facts: Mapping[Value, Fact] = {} if context.keeps_patterns else context.facts
        self._numbers: dict[Value, int] = {}

    def merge(self, graph: Graph, seen: dict[_Key, Node], constants: dict[_Key, Value]) -> bool:
        """Merge in `graph` and below, given what graphs around it have."""
        changed = self._merge_constants(graph, constants)
        for node in graph:
            if node.subgraphs:
                for subgraph in node.subgraphs:
                    changed |= self.merge(subgraph, dict(seen), dict(constants))
                continue
            key = self._key(node)
            if key is None:
                continue
            first = seen.setdefault(key, node)
            if first is not node and self._replace(node, first):
                changed = True
        return changed

    def _merge_constants(self, graph: Graph, constants: dict[_Key, Value]) -> bool:
        changed = False
        for name, value in list(graph.initializers.items()):
            if value.constant is None or value in self._overridable:
                continue
            if self._keeps_patterns and value.constant.size != 1:
                continue
            first = constants.setdefault(_tensor_key(value.constant), value)
            if first is not value and not value.is_graph_output:
                value.replace_all_uses_with(first)
                del graph.initializers[name]
                changed = True
        return changed

    def _replace(self, node: Node, first: Node) -> bool:
        """Use the outputs of `first`; one that a graph gives out hands its name to its twin, if that has none to keep."""
        for old, new in zip(node.outputs, first.outputs, strict=True):
            if old.is_graph_output and (new.is_graph_output or first.graph is not node.graph):
                return False
        for old, new in zip(node.outputs, first.outputs, strict=True):
            if new.type is None:
                new.type = old.type
            old.replace_all_uses_with(new)
        if node.graph is not None:
            node.graph.remove(node)
        return True

    def _key(self, node: Node) -> _Key | None:
        if node.domain not in _DOMAINS or node.op_type in RANDOM:
            return None
        if len(node.outputs) == 1:
            symbolic = self._symbolic_key(node.outputs[0])
            if symbolic is not None:
                return symbolic
        inputs = tuple(-1 if value is None else self._number(value) for value in node.inputs)
        attributes = tuple((name, _attribute_key(node.attributes[name])) for name in sorted(node.attributes))
        return node.op_type, inputs, attributes, len(node.outputs), node.version, node.domain, node.overload

    def _symbolic_key(self, value: Value) -> _Key | None:
        """Return a key for a small integer tensor, all of whose elements are known as numbers or expressions."""
        fact = self._facts.get(value)
        if fact is None or fact.value is None or fact.value.dtype.kind not in "Oi" or fact.dtype not in _INTEGERS:
            return None
        elements = tuple(fact.value.ravel().tolist())
        return None if None in elements else ("symbolic", fact.dtype, fact.value.shape, elements)

    def _number(self, value: Value) -> int:
        return self._numbers.setdefault(value, len(self._numbers))


def _attribute_key(attribute: Attribute) -> _Key:
    if isinstance(attribute, ArrayAttribute):
        return (_Identity(attribute),)
    value = attribute.value
    if attribute.kind is AttributeKind.TENSOR and attribute.reference is None:
        return _tensor_key(value)
    if isinstance(value, tuple) and len(value) > _MOST_ITEMS:
        return attribute.kind, attribute.reference, _Identity(value)
    return attribute.kind, attribute.reference, repr(value)


def _tensor_key(tensor: Tensor) -> _Key:
    """Return a key for a tensor: its content where that is small; large or text, the object, which the key keeps alive."""
    if tensor.size_bytes > SMALL_BYTES or tensor.dtype.numpy.kind == "O":
        return (_Identity(tensor),)
    return tensor.dtype, tensor.shape, tensor.numpy().tobytes()


class _Identity:
    """A key that equals only that of the same object."""

    __slots__ = ("_value",)

    def __init__(self, value: object) -> None:
        self._value = value

    def __hash__(self) -> int:
        return id(self._value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and other._value is self._value
