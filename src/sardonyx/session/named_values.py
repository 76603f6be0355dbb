"""Values of a model by the names that its file gives them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sardonyx.errors import InvalidArgument
from sardonyx.forks import without_fork
from sardonyx.ir import Model, Value
from sardonyx.ir.walk import nested_graphs
from sardonyx.ops.schema import place_of
from sardonyx.optimize.contract import Context
from sardonyx.optimize.passes.inline_functions import InlineFunctions

__all__ = ["find_values", "made_values"]

_MOST_HINTS = 3


def find_values(model: Model, names: Sequence[str]) -> list[Value]:
    """Return the values of the main graph that have these names.

    Where one is missing, calls of model-local functions are inlined, in place, and their values named after them, "call/value".

    Raises:
        InvalidArgument: nothing is called so, or it is inside the body of a control-flow node.
    """
    known = _values(model)
    if model.functions and any(name not in known for name in names):
        InlineFunctions(names_values=True).run(model, Context())
        known = _values(model)
    for name in names:
        if name not in known:
            raise InvalidArgument(_unknown(model, name))
    return [known[name] for name in names]


def _values(model: Model) -> dict[str, Value]:
    graph = model.graph
    given = {value.name: value for value in (*graph.initializers.values(), *graph.inputs)}
    return given | {value.name: value for value in made_values(model)}


def made_values(model: Model) -> Iterator[Value]:
    """Yield the named values that nodes of the main graph make, in the order of the nodes."""
    return (value for node in model.graph for value in node.outputs if value.name)


def _unknown(model: Model, name: str) -> str:
    for node in model.graph:
        inner = (value.name for body in node.subgraphs for graph in nested_graphs(body) for each in graph for value in each.outputs)
        if name in inner:
            return (
                f"{name!r} is a value inside {place_of(node)}, computed as often as that runs its body; only values of the main "
                "graph are given out: make it an output of the body and of the node"
            )
    outputs = [value.name for value in model.graph.outputs]
    made = next(([value.name for value in node.outputs if value.name] for node in model.graph if node.name == name), None)
    if made:
        return f"{name!r} is a node; name what it makes: {' or '.join(map(repr, made))}; the outputs of the model are {outputs}"
    with without_fork():
        import difflib  # which only messages need

    near = difflib.get_close_matches(name, list(_values(model)), _MOST_HINTS)
    hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
    return f"there is no output {name!r}, nor another value of this name; the outputs are {outputs}{hint}"
