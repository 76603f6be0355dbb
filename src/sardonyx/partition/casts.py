"""Casts for types that a provider lacks: float16 and bfloat16 nodes that a provider runs in float32 are run in float32.

    x16 ─ MatMul ─ Add ─ Softmax ─ y16      becomes      x16 ─ Cast ─ MatMul ─ Add ─ Softmax ─ Cast ─ y16

A node lacks a kernel where no provider but the last, which runs everything, claims it as it is, and one claims it with its
narrow floats widened. Around these nodes an island grows over all nodes that are claimed either way, so that there is one Cast for
each value that enters or leaves an island, not a pair for each node. A narrow constant is widened once.

Operators outside the standard, whose schemas list no types, are taken to have float32 wherever they have half types.

Left alone: nodes whose result type is said by an attribute (Cast and its like), random numbers and nodes with subgraphs; and,
where they are claimed as they are, a look-up in a constant table, which would take twice its memory, and what makes
an output of an input, as a decoder's cache is: all of it would be cast twice in every run. O(nodes), and nothing but a look at the
types where there are no narrow floats.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from sardonyx.dtypes import DataType
from sardonyx.ir import AttributeKind, Graph, Node, Tensor, TensorType, Value
from sardonyx.ops.schema import OpSchema, ParameterOption
from sardonyx.ops.schemas import find_schema
from sardonyx.partition.claims import claims_of
from sardonyx.provider import Provider

__all__ = ["NARROW", "Widening", "widen"]

NARROW = (DataType.FLOAT16, DataType.BFLOAT16)
"""The types that are widened to float32."""

_TYPED_BY_ATTRIBUTE = ("dtype", "output_datatype", "output_dtype", "to")
_EXCLUDED = frozenset(("Bernoulli", "BitCast", "Cast", "CastLike", "Multinomial", "RandomNormalLike", "RandomUniformLike"))
_LOOKUPS = frozenset(("Gather", "GatherElements", "GatherND"))
_APPENDING = frozenset(("Attention", "Concat", "GroupQueryAttention"))
"""Operators that make a longer cache of one."""
_CAST_VERSION = 13


class Widening:
    """Constants that were widened, for all graphs of a model."""

    def __init__(self) -> None:
        """Begin with none."""
        self._tensors: dict[Tensor, Tensor] = {}

    def of(self, narrow: Tensor) -> Tensor:
        """Return `narrow` in float32; computed when it is first read, and once."""
        if narrow not in self._tensors:
            self._tensors[narrow] = Tensor.widened(narrow)
        return self._tensors[narrow]


def widen(graph: Graph, providers: Sequence[Provider], widening: Widening) -> int:
    """Widen the islands of `graph` (not of its subgraphs); returns how many nodes are in them.

    Args:
        graph: the graph.
        providers: in the order in which they are asked; the last runs everything.
        widening: constants that other graphs of the model have widened.

    Raises:
        EPFail: a provider raised, or claimed what it was not offered.
    """
    able = {node for node in graph if _can_widen(node)}
    if not able or len(providers) < 2:
        return 0
    native = claims_of(graph, providers[:-1]).claimed()
    if able <= native:
        return 0
    copy, copies = _copy(graph)
    _apply(copy, {copies[node] for node in able}, widening)
    wide = claims_of(copy, providers[:-1]).claimed()
    runs_wide = {node for node in able if copies[node] in wide}
    island = _grow(runs_wide - native, {node for node in runs_wide & native if not _is_lookup(node) and not _is_cache(node, graph)})
    _apply(graph, island, widening)
    return len(island)


def _is_narrow(value: Value | None) -> bool:
    return value is not None and isinstance(value.type, TensorType) and value.dtype in NARROW


def _values_of(node: Node) -> Iterable[Value]:
    return (value for value in (*node.inputs, *node.outputs) if value is not None)


def _can_widen(node: Node) -> bool:
    """Return whether a node has narrow floats, and means the same with wide ones in their place."""
    if node.op_type in _EXCLUDED or node.subgraphs or not any(_is_narrow(value) for value in _values_of(node)):
        return False
    if any(name in node.attributes for name in _TYPED_BY_ATTRIBUTE) or any(
        attribute.kind is AttributeKind.TENSOR and attribute.value.dtype in NARROW for attribute in node.attributes.values()
    ):
        return False
    if any(not isinstance(value.type, TensorType) for value in _values_of(node)):
        return False
    schema = find_schema(node.domain, node.op_type, node.version)
    return schema is None or _takes_floats(node, schema)


def _takes_floats(node: Node, schema: OpSchema) -> bool:
    for values, formals in ((node.inputs, schema.inputs), (node.outputs, schema.outputs)):
        for index, value in enumerate(values):
            if not _is_narrow(value):
                continue
            is_repeated = formals and index >= len(formals) - 1 and formals[-1].option is ParameterOption.VARIADIC
            formal = formals[-1] if is_repeated else formals[index]
            constraint = schema.type_constraints.get(formal.type)
            if constraint is None or (constraint.types and "tensor(float)" not in constraint.types):
                return False
    return True


def _copy(graph: Graph) -> tuple[Graph, dict[Node, Node]]:
    """Return a copy of `graph`, and the copy of each node; constants, attributes and subgraphs are shared."""
    values: dict[Value, Value] = {}

    def twin(value: Value | None) -> Value | None:
        if value is not None and value not in values:
            values[value] = Value(value.name, value.type, value.constant)
        return None if value is None else values[value]

    copy = Graph(graph.name)
    copy.inputs = [made for value in graph.inputs if (made := twin(value)) is not None]
    found: dict[Node, Node] = {}
    for node in graph:
        inputs = [twin(value) for value in node.inputs]
        outputs = [made for value in node.outputs if (made := twin(value)) is not None]
        found[node] = copy.append(
            Node(
                node.op_type,
                inputs,
                outputs,
                node.attributes,
                domain=node.domain,
                version=node.version,
                name=node.name,
                overload=node.overload,
            )
        )
    for value in graph.outputs:
        made = twin(value)
        if made is not None:
            copy.add_output(made)
    return copy, found


def _wide_type(value: Value) -> TensorType:
    return TensorType(DataType.FLOAT, value.shape)


def _is_lookup(node: Node) -> bool:
    table = node.input(0)
    return node.op_type in _LOOKUPS and table is not None and table.constant is not None


def _is_cache(node: Node, graph: Graph) -> bool:
    if node.op_type not in _APPENDING:
        return False
    return any(value in graph.outputs for value in node.outputs) and any(value in graph.inputs for value in node.inputs)


def _grow(seeds: Collection[Node], ground: Collection[Node]) -> set[Node]:
    """Return `seeds`, and all of `ground` that narrow values connect with them."""
    island, waiting = set(seeds), list(seeds)
    while waiting:
        for value in _values_of(waiting.pop()):
            if not _is_narrow(value) or value.constant is not None:
                continue
            around = [user for user, _ in value.uses]
            for other in (value.producer, *around):
                if isinstance(other, Node) and other in ground and other not in island:
                    island.add(other)
                    waiting.append(other)
    return island


def _apply(graph: Graph, island: Collection[Node], widening: Widening) -> None:
    entered: dict[Value, Value] = {}
    for node in graph:
        if node not in island:
            continue
        for index, value in enumerate(node.inputs):
            if value is not None and _is_narrow(value):
                if value not in entered:
                    entered[value] = _enter(graph, node, value, widening)
                node.replace_input(index, entered[value])
        for value in node.outputs:
            if _is_narrow(value):
                _leave(graph, node, value, island)


def _enter(graph: Graph, node: Node, value: Value, widening: Widening) -> Value:
    """Return `value` in float32, for `node` and those after it."""
    if value.constant is not None:
        return graph.add_initializer(widening.of(value.constant), value.name)
    cast = Node("Cast", [value], 1, {"to": int(DataType.FLOAT)}, version=_CAST_VERSION, name=f"{value.name or node.name}/widened")
    cast.output.type = _wide_type(value)
    return graph.insert_before(node, cast).output


def _leave(graph: Graph, node: Node, value: Value, island: Collection[Node]) -> None:
    """Let `node` make `value` in float32, and those outside the island read it narrow."""
    narrow, outside = value.type, [(user, index) for user, index in value.uses if user not in island]
    value.type = _wide_type(value)
    if not outside or not isinstance(narrow, TensorType):
        return
    cast = Node("Cast", [value], 1, {"to": int(narrow.dtype)}, version=_CAST_VERSION, name=f"{node.name}/narrowed")
    cast.output.type = narrow
    graph.insert_after(node, cast)
    for user, index in outside:
        if isinstance(user, Graph):
            if user is graph and value.name:
                cast.output.name, value.name = value.name, ""
            user.set_output(index, cast.output)
        else:
            user.replace_input(index, cast.output)
