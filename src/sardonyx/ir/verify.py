"""Checks that a model is what the rest of sardonyx takes for granted; tests run it after every pass.

    order       a node reads only what stands before it, in its own graph or in one around it: no cycles, no way out of a scope
    producers   each value is made once: by one node, as an input, or as an initializer
    links       uses and inputs agree both ways, as do producers and outputs, and nodes and their graph
    functions   none calls itself, directly or through others; chains of calls are not too deep
    references  only a function's body refers to attributes of its caller, and only to those that the function has
    names       inputs and outputs of the main graph differ in name, and initializers are found under their own

Types and attributes of operators are not checked: that is for the schemas.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sardonyx.cancellation import check_cancelled
from sardonyx.config import LIMITS
from sardonyx.errors import InvalidGraph, located
from sardonyx.ir.graph import Graph, Node, Use, User, Value
from sardonyx.ir.model import Function, FunctionId, Model
from sardonyx.ir.walk import nested_graphs

__all__ = ["describe_cycle", "describe_node", "verify"]


def verify(model: Model) -> None:
    """Check `model`; O(nodes + edges).

    Raises:
        InvalidGraph: the first fault found, with the names of the model, node and values that it concerns.
    """
    try:
        _check_interface(model.graph)
        _Checker(None).check(model.graph)
        for function in model.functions.values():
            _check_function(function)
        _check_calls(model)
    except InvalidGraph as error:
        raise located(error, model.label) from error


def describe_node(node: Node) -> str:
    """Describe `node` for messages: its name and operator, and its outputs where it has no name."""
    operator = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
    return f"node {node.name!r} ({operator})" if node.name else f"node ({operator}) -> {[value.name for value in node.outputs]}"


def describe_cycle(nodes: Sequence[Node]) -> str:
    """Name the nodes of one cycle, and the values between them, given `nodes` that wait for one another in vain."""
    waiting = set(nodes)
    node, path, seen = nodes[0], list[tuple[Node, Value]](), dict[Node, int]()
    while node not in seen:
        seen[node] = len(path)
        value = next(value for value in _read_by(node) if value.producer in waiting)
        path.append((node, value))
        node = value.producer if value.producer is not None else node
    cycle = path[seen[node] :]
    shown = [f"{describe_node(reader)} reads {value.name!r}" for reader, value in cycle[:10]]
    more = f", … ({len(cycle)} nodes)" if len(cycle) > len(shown) else ""
    return f"{', '.join(shown)}{more}, which is produced by {describe_node(cycle[0][0])}" if not more else ", ".join(shown) + more


def _read_by(node: Node) -> Iterable[Value]:
    """Return the values that `node` reads: its inputs, and what its subgraphs read."""
    yield from (value for value in node.inputs if value is not None)
    for subgraph in node.subgraphs:
        for graph in nested_graphs(subgraph):
            yield from (value for inner in graph for value in inner.inputs if value is not None)
            yield from graph.outputs


class _Checker:
    """Walks one main graph or function body with all that is nested in it, in order."""

    def __init__(self, function: Function | None) -> None:
        self._function = function
        self._visible: set[Value] = set()
        self._uses: dict[Value, list[Use]] = {}

    def check(self, graph: Graph) -> None:
        """Check `graph`, then that the uses which each value lists are those that the walk met."""
        self._graph(graph, 0)
        for value, met in self._uses.items():
            listed = value.uses
            if len(listed) != len(met) or tuple(met) != listed:  # the order differs where the graph was edited
                _compare_uses(value, set(listed), set(met))

    def _graph(self, graph: Graph, depth: int) -> None:
        if depth > LIMITS.function_depth:
            raise InvalidGraph(f"subgraphs are nested more than {LIMITS.function_depth} levels deep")
        added: list[Value] = []
        self._sources(graph, added)
        count = 0
        for node in graph:
            check_cancelled()
            count += 1
            try:
                self._node(node, graph, depth, added)
            except InvalidGraph as error:
                raise located(error, describe_node(node)) from error
        if count != len(graph):
            raise InvalidGraph(f"graph {graph.name!r} counts {len(graph)} nodes but links {count}")
        for index, value in enumerate(graph.outputs):
            if value not in self._visible:
                raise InvalidGraph(f"output {value.name!r} of graph {graph.name!r} is produced by nothing in it or around it")
            self._uses[value].append((graph, index))
        self._visible.difference_update(added)

    def _sources(self, graph: Graph, added: list[Value]) -> None:
        for value in graph.inputs:
            self._define(value, "input", added)
        inputs = set(graph.inputs)
        for name, value in graph.initializers.items():
            what = f"initializer {name!r} of graph {graph.name!r}"
            if value.constant is None:
                raise InvalidGraph(f"{what} has no tensor; expected a value with a constant")
            if value.name != name:
                raise InvalidGraph(f"{what} is a value called {value.name!r}; expected it under its own name")
            if value not in inputs:
                self._define(value, "initializer", added)
        for value in (*graph.inputs, *graph.initializers.values()):
            if value.producer is not None:
                raise InvalidGraph(f"value {value.name!r} is a source of graph {graph.name!r}, yet has a producer")

    def _node(self, node: Node, graph: Graph, depth: int, added: list[Value]) -> None:
        if node.graph is not graph:
            raise InvalidGraph(f"it stands in graph {graph.name!r} but says it is in {node.graph!r}")
        visible, uses = self._visible, self._uses
        for index, value in enumerate(node.inputs):
            if value is None:
                continue
            if value not in visible:
                raise _out_of_sight(value, index, graph)
            uses[value].append((node, index))
        if node.attributes:
            self._references(node)
            for subgraph in node.subgraphs:
                self._graph(subgraph, depth + 1)
        for index, value in enumerate(node.outputs):
            self._define(value, "output", added)
            if value.producer is not node or value.index != index:
                producer = "nothing" if value.producer is None else f"output {value.index} of {describe_node(value.producer)}"
                raise InvalidGraph(f"its output {index} ({value.name!r}) says it is produced by {producer}")

    def _define(self, value: Value, what: str, added: list[Value]) -> None:
        if value in self._visible:
            first = "an input or initializer" if value.producer is None else describe_node(value.producer)
            raise InvalidGraph(f"{what} {value.name!r} is defined twice, also as {first}; expected a single producer")
        self._visible.add(value)
        self._uses[value] = []
        added.append(value)

    def _references(self, node: Node) -> None:
        for name, attribute in node.attributes.items():
            reference = attribute.reference
            if reference is None:
                continue
            if self._function is None:
                raise InvalidGraph(f"its attribute {name!r} refers to attribute {reference!r} of a caller, but this is no function")
            if reference not in self._function.attributes:
                known = sorted(self._function.attributes)
                raise InvalidGraph(f"its attribute {name!r} refers to {reference!r}, but the function has only {known}")


def _compare_uses(value: Value, listed: set[Use], met: set[Use]) -> None:
    for user, index in met - listed:
        raise InvalidGraph(f"{_describe_user(user)} reads {value.name!r} at {index}, but the value does not list that use")
    for user, index in listed - met:
        raise InvalidGraph(f"value {value.name!r} lists {_describe_user(user)} as reading it at {index}, which it does not")


def _out_of_sight(value: Value, index: int, graph: Graph) -> InvalidGraph:
    what = f"its input {index} ({value.name!r})"
    producer = value.producer
    if producer is None:
        return InvalidGraph(f"{what} is no input or initializer of graph {graph.name!r} or of one around it")
    source = describe_node(producer)
    if producer.graph is None:
        return InvalidGraph(f"{what} is produced by {source}, which is in no graph")
    if producer.graph is graph:
        return InvalidGraph(f"{what} is produced by {source}, which does not stand before it")
    return InvalidGraph(f"{what} is produced by {source} in graph {producer.graph.name!r}, which it cannot see from here")


def _describe_user(user: User) -> str:
    return describe_node(user) if isinstance(user, Node) else f"graph {user.name!r}"


def _check_interface(graph: Graph) -> None:
    for what, values in (("inputs", graph.inputs), ("outputs", graph.outputs)):
        named: dict[str, Value] = {}
        for value in values:
            if value.name and named.setdefault(value.name, value) is not value:
                raise InvalidGraph(f"two {what} of the main graph are called {value.name!r}; expected different names")


def _check_function(function: Function) -> None:
    try:
        _Checker(function).check(function.graph)
    except InvalidGraph as error:
        raise located(error, f"function {_describe_id(function.id)}") from error


def _check_calls(model: Model) -> None:
    """Walk the calls between functions depth first, without recursion; a function met again on the way is on a cycle."""
    calls = {key: _called(model, function) for key, function in model.functions.items()}
    depths: dict[FunctionId, int] = {}
    for start in calls:
        path: dict[FunctionId, None] = {}
        stack = [start]
        while stack:
            current = stack[-1]
            if current not in depths and current not in path:
                path[current] = None
                for callee in calls[current]:
                    if callee in path:
                        raise _recursion(list(path), callee)
                stack.extend(callee for callee in calls[current] if callee not in depths)
                continue
            stack.pop()
            if current in path:
                del path[current]
                depths[current] = 1 + max((depths[callee] for callee in calls[current]), default=0)
    deepest = max(depths, key=lambda key: depths[key], default=None)
    if deepest is not None and depths[deepest] > LIMITS.function_depth:
        raise InvalidGraph(
            f"function {_describe_id(deepest)} starts a chain of {depths[deepest]} calls; "
            f"at most {LIMITS.function_depth} are allowed"
        )


def _called(model: Model, function: Function) -> list[FunctionId]:
    found: dict[FunctionId, None] = {}
    for graph in nested_graphs(function.graph):
        for node in graph:
            key = (node.domain, node.op_type, node.overload)
            if key in model.functions:
                found[key] = None
    return list(found)


def _recursion(path: list[FunctionId], callee: FunctionId) -> InvalidGraph:
    cycle = [*path[path.index(callee) :], callee]
    chain = " -> ".join(_describe_id(key) for key in cycle)
    return InvalidGraph(f"function {_describe_id(callee)} calls itself: {chain}; functions cannot be recursive")


def _describe_id(key: FunctionId) -> str:
    domain, name, overload = key
    return repr(f"{domain}.{name}{':' if overload else ''}{overload}")
