"""Functions of a model that a provider runs whole, and operators that run through the standard's function body.

A call of a model-local function is offered to the providers before functions are inlined: a call that one of them claims stays, the
others are inlined; all stay where the config entry `session.disable_aot_function_inlining` is "1". Where nobody claims a node in
the end, its function body takes its place, and all is offered anew.
"""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.formats.function import load_function
from sardonyx.ir import Attribute, Function, Graph, Model, Node
from sardonyx.ir.walk import nested_graphs
from sardonyx.ops.function_bodies import function_body
from sardonyx.ops.schemas import find_schema
from sardonyx.optimize.contract import Context
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES
from sardonyx.optimize.passes.inline_functions import INLINE_FUNCTIONS, KEEP_CALL
from sardonyx.partition.claims import claims_of
from sardonyx.provider import Provider

__all__ = ["expand", "keep_claimed_calls"]


def keep_claimed_calls(model: Model, providers: Sequence[Provider], *, keep_all: bool = False) -> int:
    """Mark the calls of local functions that a provider other than the last claims, or all; how many they are.

    Types are those that the file declares.

    Raises:
        EPFail: a provider raised, or claimed what it was not offered.
    """
    if keep_all:
        return sum(_mark(node, "") for graph in nested_graphs(model.graph) for node in _calls(graph, model))
    if not model.functions or len(providers) < 2:
        return 0
    return sum(_keep(graph, model, providers[:-1]) for graph in list(nested_graphs(model.graph)))


def _keep(graph: Graph, model: Model, providers: Sequence[Provider]) -> int:
    calls = _calls(graph, model)
    if not calls:
        return 0
    claims = claims_of(graph, providers, calls)
    claimants = {node: claims.providers_of(node) for node in calls}
    return sum(_mark(node, names[0]) for node, names in claimants.items() if names)


def _calls(graph: Graph, model: Model) -> list[Node]:
    return [node for node in graph if (node.domain, node.op_type, node.overload) in model.functions]


def _mark(node: Node, provider: str) -> int:
    """Let a call stay; returns 1."""
    node.metadata = {**(node.metadata or {}), KEEP_CALL: provider}
    return 1


def expand(model: Model, nodes: Sequence[Node]) -> bool:
    """Replace those of `nodes` that have a function body by it; whether any had one.

    Attributes that a node leaves out take the schema's defaults. Types and shapes inside the bodies are inferred.
    """
    released = [_release(node) for node in nodes]
    prepared = [function for number, node in enumerate(nodes) if (function := _prepare(model, node, number)) is not None]
    if not any(released) and not prepared:
        return False
    context = Context()
    INLINE_FUNCTIONS.run(model, context)
    INFER_SHAPES.run(model, context)
    for function in prepared:
        if function.id not in model.functions:
            function.graph.dismantle()
    return True


def _release(node: Node) -> bool:
    """Let a call that was kept be inlined; whether it is one."""
    if node.metadata is None or KEEP_CALL not in node.metadata:
        return False
    node.metadata = {key: text for key, text in node.metadata.items() if key != KEEP_CALL}
    return True


def _prepare(model: Model, node: Node, number: int) -> Function | None:
    """Let a node call the function that the standard gives for its operator, and return that; None where it has none."""
    body = function_body(node)
    if body is None:
        return None
    function = load_function(body.proto, body.opset_imports)
    schema = find_schema(node.domain, node.op_type, node.version)
    for name in function.attributes:
        default = None if schema is None else schema.attributes[name].default
        if function.attributes[name] is None and default is not None:
            function.attributes[name] = Attribute.of(default)
    function.domain, function.name, function.overload = node.domain, node.op_type, f"body {number}"
    node.overload = function.overload
    model.functions[function.id] = function
    return function
