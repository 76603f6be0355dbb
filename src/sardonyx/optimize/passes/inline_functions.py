"""Put the bodies of model-local functions in the place of their calls."""

from __future__ import annotations

from sardonyx.config import LIMITS
from sardonyx.errors import InvalidGraph
from sardonyx.ir import Attribute, Function, FunctionId, Graph, Model, Node, Value
from sardonyx.ir.walk import nested_graphs
from sardonyx.ops.schema import place_of
from sardonyx.optimize.contract import Context, Pass
from sardonyx.optimize.edit import Names, Resolve, clone_node, inherit_metadata, take_over

__all__ = ["INLINE_FUNCTIONS", "KEEP_CALL", "InlineFunctions"]

KEEP_CALL = "sardonyx.keep_call"
"""The metadata of a call that is not inlined, since a provider runs the function whole; its value is the provider's name."""


class InlineFunctions:
    """Replace each node that calls a model-local function by a copy of its body, then drop the functions.

        y = local.F(x) {alpha = 2.0}      ->      y = Mul(x, k)       with k from alpha, named after the call: call/k

    References to attributes take the call's value, else the function's default; where there is neither, the attribute is left out.
    Nodes keep the opset version under which the function was read. Nested calls are inlined too. Calls marked `KEEP_CALL` stay, and
    then the functions do.

    Raises InvalidGraph for a recursion, which has no end, for calls nested deeper than `LIMITS.function_depth`, for more than
    `LIMITS.nodes` nodes, or more than `LIMITS.function_nodes` and `LIMITS.function_growth` times those of the file, and for a call
    with more inputs or outputs than the function has. Cost: O(nodes after inlining).
    """

    name = "inline_functions"

    def __init__(self, *, names_values: bool = False) -> None:
        """Make the pass; `names_values` names the values of a body after their calls too, "call/value", as its nodes are."""
        self._names_values = names_values

    def run(self, model: Model, context: Context) -> bool:
        """Inline all calls that are not kept; whether there were any, or functions that nobody calls."""
        if not model.functions:
            return False
        _check_growth(model)
        inlining = _Inlining(model, names_values=self._names_values)
        for graph in list(nested_graphs(model.graph)):
            for node in list(graph):
                inlining.inline(node, ())
        if not any(_is_kept(node) for graph in nested_graphs(model.graph) for node in graph):
            model.functions.clear()
        return inlining.calls > 0 or not model.functions


INLINE_FUNCTIONS: Pass = InlineFunctions()


class _Inlining:
    """One run: the functions, and the names in use."""

    def __init__(self, model: Model, *, names_values: bool) -> None:
        self._functions, self._names_values = model.functions, names_values
        self._names = Names.of(model)
        self._prefixes = Names(())
        self.calls = 0
        """How many calls were inlined."""

    def inline(self, node: Node, calls: tuple[FunctionId, ...]) -> None:
        """Inline `node` if it calls a function; `calls` are the functions whose bodies it comes from."""
        function = self._functions.get((node.domain, node.op_type, node.overload))
        if function is None or _is_kept(node):
            return
        self.calls += 1
        calls = (*calls, function.id)
        _check_call(node, function, calls)
        for copy in self._put_body(node, function):
            self.inline(copy, calls)
            for subgraph in copy.subgraphs:
                for graph in list(nested_graphs(subgraph)):
                    for inner in list(graph):
                        self.inline(inner, calls)

    def _put_body(self, node: Node, function: Function) -> list[Node]:
        graph, body = node.graph, function.graph
        if graph is None:
            raise ValueError(f"{place_of(node)} is in no graph")
        prefix = self._prefixes.fresh(node.name or node.op_type)
        missing = Value()
        values = {value: given or missing for value, given in zip(body.inputs, _padded(node, len(body.inputs)), strict=True)}
        for value in body.initializers.values():
            if value.constant is not None:
                values[value] = graph.add_initializer(value.constant, self._names.fresh(f"{prefix}/{value.name}"))
        copies = [clone_node(inner, values, _resolver(node, function)) for inner in body]
        inherit_metadata([node], copies)
        for copy in copies:
            graph.insert_before(node, copy)
            self._name(copy, prefix)
            _drop(copy, missing)
        for old, result in zip(node.outputs, body.outputs, strict=False):
            new = values.get(result, result)
            if new is missing:
                raise InvalidGraph(f"{place_of(node)}: the call leaves out {result.name!r}, which {function.name} gives out")
            if self._names_values and new.producer in copies:
                new.name = ""  # it takes the name that the call gives it
            take_over(old, new, function.opset_imports.get("", node.version))
        graph.remove(node)
        return copies

    def _name(self, copy: Node, prefix: str) -> None:
        """Name a copy after the call; its values go unnamed until they are saved, or are named so too; those of subgraphs alike."""
        copy.name = f"{prefix}/{copy.name or copy.op_type}"
        for value in copy.outputs:
            value.name = self._names.fresh(f"{prefix}/{value.name}") if self._names_values and value.name else ""
        for subgraph in copy.subgraphs:
            for value in subgraph.inputs:
                value.name = ""
            for value in subgraph.initializers.values():
                value.name = self._names.fresh(f"{prefix}/{value.name}")
            subgraph.initializers = {value.name: value for value in subgraph.initializers.values()}
            for inner in subgraph:
                self._name(inner, prefix)


def _check_growth(model: Model) -> None:
    """Raise InvalidGraph where calls of calls would make far more nodes than the file has."""
    count = _nodes_inlined(model)
    if count <= LIMITS.function_nodes:
        return
    graphs = [model.graph, *(function.graph for function in model.functions.values())]
    given = sum(sum(1 for _ in inner) for graph in graphs for inner in nested_graphs(graph))
    most = min(max(LIMITS.function_nodes, LIMITS.function_growth * given), LIMITS.nodes)
    if count > most:
        raise InvalidGraph(
            f"inlining functions would make {count} nodes of the {given} that the file has, and {most} are the limit: functions "
            "call functions that are called several times; save the model with its functions inlined "
            "(onnx.inliner.inline_local_functions), or write their bodies with fewer calls"
        )


def _nodes_inlined(model: Model) -> int:
    """Count the nodes that there would be, those in subgraphs too; a body is counted once, however often it is called: O(nodes)."""
    found: dict[FunctionId, int] = {}

    def count(graph: Graph, depth: int) -> int:
        return sum(counted(node, depth) for inner in nested_graphs(graph) for node in inner)

    def counted(node: Node, depth: int) -> int:
        key = (node.domain, node.op_type, node.overload)
        if key not in model.functions or _is_kept(node) or depth > LIMITS.function_depth:
            return 1
        if key not in found:
            found[key] = 0  # a function that calls itself is refused where its calls are known
            found[key] = count(model.functions[key].graph, depth + 1)
        return found[key]

    return count(model.graph, 0)


def _is_kept(node: Node) -> bool:
    return node.metadata is not None and KEEP_CALL in node.metadata


def _padded(node: Node, count: int) -> list[Value | None]:
    return [node.input(index) for index in range(count)]


def _drop(node: Node, missing: Value) -> None:
    """Leave out the inputs that the call leaves out, in subgraphs too."""
    if any(value is missing for value in node.inputs):
        inputs: list[Value | None] = [None if value is missing else value for value in node.inputs]
        while inputs and inputs[-1] is None:
            inputs.pop()
        node.set_inputs(inputs)
    for subgraph in node.subgraphs:
        for inner in subgraph:
            _drop(inner, missing)


def _check_call(node: Node, function: Function, calls: tuple[FunctionId, ...]) -> None:
    if function.id in calls[:-1]:
        chain = " -> ".join(".".join(part for part in call if part) for call in calls[calls.index(function.id) :])
        raise InvalidGraph(f"{place_of(node)}: functions call themselves without end: {chain}")
    if len(calls) > LIMITS.function_depth:
        raise InvalidGraph(f"{place_of(node)}: functions call functions deeper than {LIMITS.function_depth}, the limit")
    if len(node.inputs) > len(function.graph.inputs) or len(node.outputs) > len(function.graph.outputs):
        raise InvalidGraph(
            f"{place_of(node)} has {len(node.inputs)} inputs and {len(node.outputs)} outputs; the function {function.name!r} takes "
            f"{len(function.graph.inputs)} and gives {len(function.graph.outputs)}"
        )


def _resolver(node: Node, function: Function) -> Resolve:
    def resolve(attribute: Attribute) -> Attribute | None:
        if attribute.reference is None:
            return attribute
        given = node.attributes.get(attribute.reference)
        return function.attributes.get(attribute.reference) if given is None else given

    return resolve
