"""Push transposes through the graph, so that those which undo each other meet and vanish.

    Transpose(x) -> Relu -> Transpose          becomes      x -> Relu
    Add(Transpose(x), Transpose(y))            becomes      Transpose(Add(x, y))
    Add(Transpose(x), constant)                becomes      Transpose(Add(x, transposed constant))

The nodes are walked once, in order. A node that a transpose feeds is computed on what the transpose reads, and the transpose goes
behind it, where that pays; a transpose behind a transpose is merged with it, in the end also where a Reshape stands between. The
nodes stay the same objects; `transposes/` says for each operator what changes.

**What pays.** A transpose costs as much as its tensor has dimensions that are not 1, and nothing where it moves only dimensions of
1; constants, also behind DequantizeLinear, are transposed at once and cost nothing. Those that go must outweigh those that
come. Where a provider's part is being converted, a transpose between the channels-first and the channels-last layout moves on at
no charge, since there will be others to meet it. Any other, and one behind an operator that makes its tensor larger or several of
it, moves only where a transpose waits below.

Left alone: nodes that the caller does not offer, operators without a handler, and inputs of unknown rank. O(nodes).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sardonyx.ir import Attribute, AttributeKind, Graph, Node, Value
from sardonyx.optimize.transposes.axes import AXES
from sardonyx.optimize.transposes.edit import Edit
from sardonyx.optimize.transposes.elementwise import ELEMENTWISE
from sardonyx.optimize.transposes.handler import Handler
from sardonyx.optimize.transposes.permutation import (
    Permutation,
    changes_layout,
    identity,
    inverse,
    permutation_of,
    then,
    weight_of,
)
from sardonyx.optimize.transposes.products import PRODUCTS, mix_in_products
from sardonyx.optimize.transposes.quantize import MICROSOFT, QUANTIZATION, keep_units_whole
from sardonyx.optimize.transposes.reshape import RESHAPES, pull_through_reshape
from sardonyx.optimize.transposes.vectors import VECTORS

__all__ = ["handled_operators", "push_transposes"]

_HANDLERS: Mapping[str, Mapping[str, Handler]] = {
    "": {**ELEMENTWISE, **AXES, **VECTORS, **RESHAPES, **PRODUCTS, **QUANTIZATION},
    "com.microsoft": MICROSOFT,
}
"""Domain -> operator -> how a transpose is pushed through it."""


def handled_operators(domain: str = "") -> tuple[str, ...]:
    """The operators of `domain` that transposes are pushed through, sorted."""
    return tuple(sorted(_HANDLERS.get(domain, {})))


def push_transposes(graph: Graph, offered: Collection[Node], *, between_layouts: bool = True) -> None:
    """Push the transposes of `graph` through the nodes of `offered`; transposes that nobody reads any more are removed.

    Args:
        graph: where.
        offered: the nodes that may be changed.
        between_layouts: whether transposes between the channels-first and the channels-last layout move on at no charge.
    """
    edit, leading = Edit(graph), _leading(graph, offered)
    for node in graph:
        if permutation_of(node) is not None:
            _merge(node)
        elif node in offered:
            _push(edit, node, leading, offered, between_layouts)
    _sweep(graph)
    for node in graph:
        pull_through_reshape(edit, node, offered)
    keep_units_whole(edit, offered)
    _sweep(graph)


def _sweep(graph: Graph) -> None:
    """Remove what nobody reads any more: transposes, and dequantizations that have a twin."""
    for node in reversed(graph):
        is_ours = permutation_of(node) is not None or node.op_type == "DequantizeLinear"
        if is_ours and not any(value.use_count for value in node.outputs):
            graph.remove(node)


def _handler_of(node: Node) -> Handler | None:
    return _HANDLERS.get(node.domain, {}).get(node.op_type)


def _leading(graph: Graph, offered: Collection[Node]) -> set[Value]:
    """The values that a transpose reads, by way of nodes that one can be pushed through."""
    found: set[Value] = set()
    for node in reversed(graph):
        handler = _handler_of(node) if node in offered else None
        if permutation_of(node) is not None:
            found.update(value for value in node.inputs if value is not None)
        elif handler is not None and any(value in found for value in node.outputs):
            found.update(value for value in handler.carriers(node) if value is not None)
    return found


def _push(edit: Edit, node: Node, leading: Collection[Value], offered: Collection[Node], between_layouts: bool) -> None:
    handler = _handler_of(node)
    if handler is None:
        return
    for permutation in _in_front(node, handler):
        is_free = between_layouts and changes_layout(permutation)
        if _pays(edit, node, handler, permutation, leading, is_free) and handler.push(edit, node, permutation):
            return
        if is_free and mix_in_products(edit, node, permutation, offered):
            return


def _in_front(node: Node, handler: Handler) -> list[Permutation]:
    """The permutations of the transposes that feed `node` where it matters, each once."""
    found = (permutation_of(value.producer) for value in handler.carriers(node) if value is not None)
    return list(dict.fromkeys(permutation for permutation in found if permutation is not None))


def _pays(edit: Edit, node: Node, handler: Handler, permutation: Permutation, leading: Collection[Value], is_free: bool) -> bool:
    carriers = handler.carriers(node)
    if any(value is not None and value.shape is None for value in carriers):
        return False
    meets = any(value in leading for value in node.outputs)
    moves_on = is_free and not handler.grows
    charge = 0 if meets or (moves_on and len(node.outputs) == 1) else sum(weight_of(value.shape) for value in node.outputs)
    gain = sum(weight_of(value.shape) for value in node.outputs if _is_undone(value, permutation))
    going = edit.going(carriers, permutation, node if charge else None)
    return edit.coming(carriers, permutation) + charge < going + gain


def _is_undone(value: Value, permutation: Permutation) -> bool:
    """Whether nobody reads `value` but transposes that undo `permutation`."""
    users = [user for user, _ in value.uses]
    undo = inverse(permutation)
    return bool(users) and all(isinstance(user, Node) and permutation_of(user) == undo for user in users)


def _merge(node: Node) -> None:
    """One transpose in place of two; none where the two undo each other, and where one changes nothing."""
    source, second = node.inputs[0], permutation_of(node)
    if source is None or second is None:
        return
    first = permutation_of(source.producer)
    before = None if source.producer is None else source.producer.inputs[0]
    if first is not None and before is not None:
        source, second = before, then(first, second)
        node.replace_input(0, source)
        node.attributes["perm"] = Attribute(AttributeKind.INTS, second)
    if second == identity(len(second)):
        node.output.replace_all_uses_with(source)
