"""Inference of types, shapes and small values: facts flow through the nodes in topological order, subgraphs and functions included.

    facts = infer_graph(model)                                   sets Value.type, returns Value -> Fact
    facts = infer_graph(model, overrides={x: tensor(FLOAT, (8, 3))})      for one set of input shapes; the model stays as it is

What the model declares is a second opinion. An element type that contradicts the inferred one raises InvalidGraph; a shape that
does is overruled, as in ONNX Runtime, with the trace event "infer.contradiction". A declared shape counts only where nothing is
inferred, and its symbols only for the inputs of the main graph: exporters give one name to dimensions of different sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from sardonyx import errors
from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.cancellation import check_cancelled, raise_interrupt
from sardonyx.config import LIMITS
from sardonyx.errors import InvalidArgument, InvalidGraph, SardonyxError, located
from sardonyx.ir import Attribute, Expr, Function, FunctionId, Graph, Model, Node, Shape, Tensor, TensorType, Value, ValueType
from sardonyx.ir.replaced import is_replaced, original_domain
from sardonyx.ir.shape import anonymous
from sardonyx.ops.fact import MAX_VALUE_SIZE, UNKNOWN, Fact, ShapeCall, ShapeEntry, dims_text, find_shape_function
from sardonyx.ops.schema import place_of
from sardonyx.ops.session_operators import find_session_operator
from sardonyx.ops.shapes.elements import MAX_WEIGHT
from sardonyx.trace import event

__all__ = ["InferenceMemory", "fact_of", "infer_graph", "infer_node"]

_FIRST_IR_VERSION_WITH_OPTIONAL_INITIALIZERS = 4
_MAX_BODY_NODES = 100_000
_FEW_ELEMENTS = 64
_TELLS_INPUTS = "; its inputs are "


@dataclasses.dataclass(frozen=True, slots=True)
class _Remembered:
    """What a node was when its outputs were inferred."""

    entry: ShapeEntry
    version: int
    output_count: int
    inputs: tuple[Fact | None, ...]
    attributes: tuple[tuple[str, Attribute], ...]
    outputs: tuple[Fact, ...]

    def holds(self, node: Node, entry: ShapeEntry, inputs: Sequence[Fact | None]) -> bool:
        """Return whether `node` is what it was, and the facts of its inputs say the same."""
        return (
            self.entry is entry
            and self.version == node.version
            and self.output_count == len(node.outputs)
            and len(self.inputs) == len(inputs)
            and self.attributes == tuple(node.attributes.items())
            and all(old is new or _say_the_same(old, new) for old, new in zip(self.inputs, inputs, strict=True))
        )


def _say_the_same(one: Fact | None, other: Fact | None) -> bool:
    if one is None or other is None or one.type != other.type:
        return False
    if one.value is None or other.value is None or one.value is other.value:
        return one.value is other.value
    return one.value.dtype == other.value.dtype and one.value.size <= _FEW_ELEMENTS and bool(np.array_equal(one.value, other.value))


class InferenceMemory:
    """What earlier inferences of a graph that is being edited found: nodes that stayed what they were are not inferred again."""

    __slots__ = ("nodes", "sources")

    def __init__(self) -> None:
        """Know nothing."""
        self.nodes: dict[Node, _Remembered] = {}
        """What was inferred for a node without subgraphs."""
        self.sources: dict[Value, tuple[ValueType | None, Tensor | None, Fact]] = {}
        """The facts of inputs and initializers, with the type and the tensor that they say."""


def infer_graph(
    target: Model | Graph,
    *,
    overrides: Mapping[Value, Fact] | None = None,
    functions: Mapping[FunctionId, Function] | None = None,
    memory: InferenceMemory | None = None,
    strict: bool = False,
) -> dict[Value, Fact]:
    """Infer the facts of every value of a model or graph and of its subgraphs; O(nodes).

    Args:
        target: the model, or a graph of it.
        overrides: facts that replace what would be inferred, such as concrete input shapes. With it no value's type is set, what
            the model declares in symbols is not used, and a shape that cannot be raises InvalidArgument: the inputs are at fault.
        functions: the functions that nodes of a graph may call; those of the model by default.
        memory: what earlier inferences found, to which this one adds; not for use with `overrides`.
        strict: whether a declared shape that contradicts the inferred one is an error.

    Returns:
        What is known of each value, those inside function bodies excepted.

    Raises:
        InvalidGraph: shapes or types that no run can make right.
    """
    graph = target.graph if isinstance(target, Model) else target
    found = target.functions if isinstance(target, Model) and functions is None else functions or {}
    fixed = isinstance(target, Model) and target.ir_version < _FIRST_IR_VERSION_WITH_OPTIONAL_INITIALIZERS
    inference = _Inference(found, {} if overrides is None else overrides, is_binding=overrides is not None, memory=memory)
    inference.is_strict = strict
    try:
        inference.infer(graph, None, initializers_are_fixed=fixed)
    except InvalidGraph as error:
        if overrides is None:
            raise
        raise InvalidArgument(f"for the shapes of these inputs: {error}") from error
    if overrides is None:
        _set_types(inference.facts)
    return inference.facts


def infer_node(node: Node, facts: Mapping[Value, Fact] | None = None) -> tuple[Fact, ...]:
    """Return the facts of one node's outputs, from `facts` of its inputs or else what their types and constants say.

    Sets nothing.
    """
    return _Inference({}, {}, is_binding=False, given=facts or {}).outputs_of(node)


def fact_of(value: Value) -> Fact:
    """Return what a value says by itself: its declared type, and the elements of a small constant."""
    constant = value.constant
    if constant is None:
        return UNKNOWN if value.type is None else Fact(value.type)
    elements = constant.numpy() if constant.size <= MAX_VALUE_SIZE else None
    return Fact(TensorType(constant.dtype, constant.shape), elements)


class _Budget:
    """How much work bodies of control flow and functions may still cause; shared by all levels of one inference.

    A body is inferred several times, and each of those infers the bodies in it: without a bound a small file could hang us.
    """

    __slots__ = ("_depth", "_nodes")

    def __init__(self) -> None:
        self._depth, self._nodes = 0, _MAX_BODY_NODES

    def enter(self, graph: Graph) -> bool:
        """Return whether a body may be inferred; if so, `leave` must follow."""
        self._nodes -= len(graph) + 1
        if self._nodes < 0 or self._depth >= LIMITS.function_depth:
            event("infer.gave_up", place=f"body {graph.name!r}", error="too many or too deeply nested bodies")
            return False
        self._depth += 1
        return True

    def leave(self) -> None:
        """Take back an `enter` that said yes."""
        self._depth -= 1


class _Inference:
    """One pass over a graph; `facts` holds what it has found."""

    __slots__ = (
        "_arguments",
        "_budget",
        "_calls",
        "_functions",
        "_given",
        "_is_binding",
        "_memory",
        "_overrides",
        "facts",
        "is_strict",
    )

    def __init__(
        self,
        functions: Mapping[FunctionId, Function],
        overrides: Mapping[Value, Fact],
        *,
        is_binding: bool,
        given: Mapping[Value, Fact] | None = None,
        budget: _Budget | None = None,
        memory: InferenceMemory | None = None,
    ) -> None:
        self._functions, self._overrides, self._is_binding = functions, overrides, is_binding
        self._given, self._memory = given or {}, memory
        self._budget = _Budget() if budget is None else budget
        self._arguments: Mapping[str, Attribute] = {}
        self._calls: tuple[FunctionId, ...] = ()
        self.facts: dict[Value, Fact] = {}
        self.is_strict = False

    def infer(self, graph: Graph, inputs: Sequence[Fact] | None, *, initializers_are_fixed: bool = False) -> list[Fact]:
        """Infer all nodes of `graph`, whose inputs are as `inputs` says or else as declared, and return its outputs' facts."""
        facts = self.facts
        for value in graph.initializers.values():
            facts[value] = fact_of(value) if self._memory is None else self._source(value, None, self._memory)
        for index, value in enumerate(graph.inputs):
            if initializers_are_fixed and value.constant is not None:
                continue
            given = inputs[index] if inputs is not None and index < len(inputs) else UNKNOWN
            if inputs is None and self._memory is not None:
                facts[value] = self._source(value, given, self._memory)
            else:
                facts[value] = self._settled(value, given, symbols_hold=inputs is None)
        for node in graph:
            check_cancelled()
            for value, fact in zip(node.outputs, self.outputs_of(node), strict=False):
                facts[value] = fact
        return [self._fact(value) for value in graph.outputs]

    def _source(self, value: Value, given: Fact | None, memory: InferenceMemory) -> Fact:
        """Return the fact of an initializer, or of an input of the main graph (`given`).

        It is the same object as long as it says the same.
        """
        known = memory.sources.get(value)
        if known is not None and known[0] is value.type and known[1] is value.constant:
            return known[2]
        fact = fact_of(value) if given is None else self._settled(value, given, symbols_hold=True)
        memory.sources[value] = (fact.type, value.constant, fact)
        return fact

    def outputs_of(self, node: Node) -> tuple[Fact, ...]:
        """Return the facts of a node's outputs, merged with what the model declares."""
        try:
            found = self._inferred(node)
            missing = len(node.outputs) - len(found)
            if missing > 0:
                found += (UNKNOWN,) * missing
            return tuple([self._settled(value, fact, node=node) for value, fact in zip(node.outputs, found, strict=False)])
        except SardonyxError as error:
            raise located(error, place_of(node)) from error

    def _fact(self, value: Value) -> Fact:
        found = self.facts.get(value)
        if found is None:
            found = self._given.get(value)
        return fact_of(value) if found is None else found

    def _inferred(self, node: Node) -> tuple[Fact, ...]:
        if self._functions:
            function = self._functions.get((node.domain, node.op_type, node.overload))
            if function is not None:
                return self._called(node, function)
        custom = find_session_operator(node.domain, node.op_type, node.version)
        if custom is not None and not is_replaced(node.domain):
            return custom.infer(node, [None if value is None else self._fact(value) for value in node.inputs])
        entry = find_shape_function(original_domain(node.domain), node.op_type, node.version)
        if entry is None:
            return ()
        inputs = [None if value is None else self._fact(value) for value in node.inputs]
        if len(inputs) < entry.needed or None in inputs[: entry.needed]:
            return ()
        if len(inputs) > entry.most:
            del inputs[entry.most :]
        memory = self._memory
        if memory is None:
            return self._applied(node, entry, inputs)
        known = memory.nodes.get(node)
        if known is not None and known.holds(node, entry, inputs):
            return known.outputs
        found = self._applied(node, entry, inputs)
        if not node.subgraphs:
            attributes = tuple(node.attributes.items())
            memory.nodes[node] = _Remembered(entry, node.version, len(node.outputs), tuple(inputs), attributes, found)
        return found

    def _applied(self, node: Node, entry: ShapeEntry, inputs: Sequence[Fact | None]) -> tuple[Fact, ...]:
        attributes = self._attributes(node)
        declared = tuple(value.dtype for value in node.outputs)
        call = ShapeCall(
            node.name, node.op_type, node.domain, node.version, attributes, len(node.outputs), declared, self._infer_body
        )
        taken = entry.attributes
        named = {name: attribute.value for name, attribute in attributes.items() if name in taken} if taken else {}
        try:
            found = entry.function(call, *inputs, **named)
            return (_bounded(found),) if isinstance(found, Fact) else tuple([_bounded(fact) for fact in found])
        except InvalidGraph as error:
            told = "" if _TELLS_INPUTS in str(error) else f"{_TELLS_INPUTS}{_inputs_text(node, inputs)}"
            raise InvalidGraph(f"{error}{told}") from None
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise_interrupt(error)
            event("infer.gave_up", place=place_of(node), error=repr(error))
        if any(fact is not None and fact.value is not None for fact in inputs):
            return self._applied(node, entry, [None if fact is None else Fact(fact.type) for fact in inputs])
        return tuple(map(_unranked, node.outputs))

    def _attributes(self, node: Node) -> Mapping[str, Attribute]:
        """Return the attributes of a node, with references to those of the calling node resolved, or left out where it has none."""
        for attribute in node.attributes.values():
            if attribute.reference is not None:
                break
        else:
            return node.attributes
        found = {}
        for name, attribute in node.attributes.items():
            given = attribute if attribute.reference is None else self._arguments.get(attribute.reference)
            if given is not None:
                found[name] = given
        return found

    def _infer_body(self, graph: Graph, inputs: Sequence[Fact]) -> list[Fact]:
        if not self._budget.enter(graph):
            return [UNKNOWN] * len(graph.outputs)
        try:
            return self.infer(graph, inputs)
        finally:
            self._budget.leave()

    def _called(self, node: Node, function: Function) -> tuple[Fact, ...]:
        """Return the facts of a call's outputs, found by inferring the body with facts of its own; unknown for a recursive call."""
        if function.id in self._calls:
            return ()
        inner = _Inference(self._functions, {}, is_binding=True, budget=self._budget)
        inner._calls = (*self._calls, function.id)
        inner._arguments = self._call_arguments(node, function)
        inputs = [UNKNOWN if value is None else self._fact(value) for value in node.inputs]
        return tuple(inner._infer_body(function.graph, inputs))

    def _call_arguments(self, node: Node, function: Function) -> dict[str, Attribute]:
        found = {name: default for name, default in function.attributes.items() if default is not None}
        return {**found, **self._attributes(node)}

    def _settled(self, value: Value, fact: Fact, *, node: Node | None = None, symbols_hold: bool = False) -> Fact:
        override = self._overrides.get(value)
        return self._merged(value, fact, node, symbols_hold=symbols_hold) if override is None else override

    def _merged(self, value: Value, fact: Fact, node: Node | None, *, symbols_hold: bool) -> Fact:
        """Return `fact`, with what the model declares about `value` where `fact` says nothing.

        A node's output of a known type and an unknown rank keeps that: the declaration may be false, and
        only a run shows the shape.
        """
        declared = value.type
        if declared is None or declared is fact.type:
            return fact
        if fact.type is None:
            return Fact(declared if symbols_hold else _without_symbols(declared))
        if not isinstance(declared, TensorType) or not isinstance(fact.type, TensorType):
            return _merged_kinds(value, declared, fact)
        if declared.dtype is not fact.type.dtype:
            raise InvalidGraph(
                f'output "{value.name}" is declared as {declared}, but the operator makes {fact.type} of its inputs; '
                f"correct or remove the declaration"
            )
        if fact.type.shape is None:
            if node is not None:
                return fact
            return Fact(declared if symbols_hold else _without_symbols(declared))
        if not self._is_binding and declared.shape is not None and node is not None:
            _report_contradiction(value, declared.shape, fact.type.shape, node, is_strict=self.is_strict)
        return fact


def _unranked(value: Value) -> Fact:
    """Return what is declared of a value but its shape: kernels write as much as the operator makes, whatever is declared."""
    return Fact(TensorType(value.type.dtype, None)) if isinstance(value.type, TensorType) else UNKNOWN


def _merged_kinds(value: Value, declared: ValueType, fact: Fact) -> Fact:
    """Merge two types that are not both tensors: the inferred one, of whatever kind."""
    if type(declared) is not type(fact.type):
        raise InvalidGraph(f'"{value.name}" is declared as {declared}, but it is {fact.type}; correct or remove the declaration')
    return Fact(declared, fact.value) if "None" in repr(fact.type) and "None" not in repr(declared) else fact


def _report_contradiction(value: Value, declared: Shape, inferred: Shape, node: Node, *, is_strict: bool) -> None:
    if declared == inferred:
        return
    if len(declared) == len(inferred) and all(
        a == b or isinstance(a, Expr) or isinstance(b, Expr) for a, b in zip(declared, inferred, strict=True)
    ):
        return
    if is_strict:
        raise InvalidGraph(
            f'output "{value.name}" is declared with shape {dims_text(declared)}, but the operator makes {dims_text(inferred)} of '
            "its inputs; correct or remove the declaration, or leave out session.strict_shape_type_inference"
        )
    event("infer.contradiction", place=place_of(node), value=value.name, declared=dims_text(declared), inferred=dims_text(inferred))


def _without_symbols(type: ValueType) -> ValueType:
    """Return `type` with its symbolic dimensions made anonymous, of whatever kind of type it is."""
    if not isinstance(type, TensorType) or type.shape is None:
        return type
    return TensorType(type.dtype, tuple(anonymous() if isinstance(dim, Expr) else dim for dim in type.shape))


def _bounded(fact: Fact) -> Fact:
    """Return `fact` with expressions that have grown too long made anonymous.

    Raises:
        InvalidGraph: a dimension is negative.
        NotImplemented: there are more dimensions than an array can have.
    """
    shape = fact.shape
    if shape is None:
        return fact
    if len(shape) > LIMITS.rank:
        raise errors.NotImplemented(
            f"the output would have {len(shape)} dimensions; at most {LIMITS.rank} are possible: merge some of them by a Reshape"
        )
    is_heavy = False
    for dim in shape:
        if isinstance(dim, Expr):
            is_heavy = is_heavy or dim.weight > MAX_WEIGHT
        elif dim < 0:
            raise InvalidGraph(f"the output would have shape {dims_text(shape)}; no dimension may be negative")
    if not is_heavy:
        return fact
    bounded = tuple(anonymous() if isinstance(dim, Expr) and dim.weight > MAX_WEIGHT else dim for dim in shape)
    return Fact(TensorType(fact.type.dtype, bounded), fact.value) if isinstance(fact.type, TensorType) else fact


def _inputs_text(node: Node, inputs: Iterable[Fact | None]) -> str:
    named = zip(node.inputs, inputs, strict=False)
    return ", ".join("none" if value is None or fact is None else f'"{value.name}" {_fact_text(fact)}' for value, fact in named)


def _fact_text(fact: Fact) -> str:
    return f"{fact.dtype}{dims_text(fact.shape)}" if fact.dtype is not None else str(fact.type or "of unknown type")


def _set_types(facts: Mapping[Value, Fact]) -> None:
    for value, fact in facts.items():
        if fact.type is not None:
            value.type = fact.type
