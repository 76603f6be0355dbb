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
no charge, since there will be others to meet it; where as much comes as goes, it moves if one that undoes it waits below. Any
other, and one behind an operator that makes its tensor larger or several of it, moves only where transposes wait below all of them.

Left alone: nodes that the caller does not offer, operators without a handler, and inputs of unknown rank. O(nodes).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeAlias

from sardonyx.cancellation import check_cancelled
from sardonyx.ir import Attribute, AttributeKind, Graph, Node, Value
from sardonyx.optimize.transposes.across_reshape import merge_across_reshape
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

_Leading: TypeAlias = Mapping[Value, Collection[Permutation]]
"""Value -> the permutations of the transposes that read it, by way of nodes that one can be pushed through."""

_HANDLERS: Mapping[str, Mapping[str, Handler]] = {
    "": {**ELEMENTWISE, **AXES, **VECTORS, **RESHAPES, **PRODUCTS, **QUANTIZATION},
    "com.microsoft": MICROSOFT,
}
"""Domain -> operator -> how a transpose is pushed through it."""


def handled_operators(domain: str = "") -> tuple[str, ...]:
    """Return the operators of `domain` that transposes are pushed through, sorted."""
    return tuple(sorted(_HANDLERS.get(domain, {})))


def push_transposes(graph: Graph, offered: Collection[Node], *, between_layouts: bool = True) -> None:
    """Push the transposes of `graph` through the nodes of `offered`; transposes that nobody reads any more are removed.

    Args:
        graph: where.
        offered: the nodes that may be changed.
        between_layouts: whether transposes between the channels-first and the channels-last layout move on at no charge.
    """
    edit, leading = Edit(graph), _leading(graph, offered)
    first: dict[tuple[Value, Permutation], Value] = {}
    for node in graph:
        check_cancelled()
        if permutation_of(node) is not None:
            _merge(edit, node, first)
        elif node in offered:
            _push(edit, node, leading, offered, between_layouts)
    _sweep(graph)
    for node in graph:
        check_cancelled()
        if not pull_through_reshape(edit, node, offered):
            merge_across_reshape(edit, node, offered)
    keep_units_whole(edit, offered)
    _sweep(graph)


def _sweep(graph: Graph) -> None:
    """Remove what nobody reads any more: transposes, and dequantizations that have a twin."""
    for node in reversed(graph):
        check_cancelled()
        is_ours = permutation_of(node) is not None or node.op_type == "DequantizeLinear"
        if is_ours and not any(value.use_count for value in node.outputs):
            graph.remove(node)


def _handler_of(node: Node) -> Handler | None:
    return _HANDLERS.get(node.domain, {}).get(node.op_type)


def _leading(graph: Graph, offered: Collection[Node]) -> _Leading:
    found: dict[Value, set[Permutation]] = {}
    for node in reversed(graph):
        check_cancelled()
        handler = _handler_of(node) if node in offered else None
        permutation = permutation_of(node)
        if permutation is None and handler is None:
            continue
        below: set[Permutation] = set().union(*(found.get(value, ()) for value in node.outputs))
        ahead = below if permutation is None else {permutation}
        for value in node.inputs[:1] if handler is None else handler.carriers(node):
            if value is not None and ahead:
                found.setdefault(value, set()).update(ahead)
    return found


def _push(edit: Edit, node: Node, leading: _Leading, offered: Collection[Node], between_layouts: bool) -> None:
    handler = _handler_of(node)
    if handler is None:
        return
    for permutation in _in_front(edit, node, handler):
        is_free = between_layouts and changes_layout(permutation)
        if _pays(edit, node, handler, permutation, leading, is_free) and handler.push(edit, node, permutation):
            return
        if is_free and mix_in_products(edit, node, permutation, offered):
            return


def _in_front(edit: Edit, node: Node, handler: Handler) -> list[Permutation]:
    """Return the permutations of the transposes that feed `node` where it matters, each once."""
    found = (edit.transpose_of(value) for value in handler.carriers(node))
    return list(dict.fromkeys(item[0] for item in found if item is not None))


def _pays(edit: Edit, node: Node, handler: Handler, permutation: Permutation, leading: _Leading, is_free: bool) -> bool:
    carriers = handler.carriers(node)
    if any(value is not None and value.shape is None for value in carriers):
        return False
    lost = [value for value in node.outputs if value not in leading]
    if is_free and (len(lost) < len(node.outputs) or (len(lost) == 1 and not handler.grows)):
        lost = []
    charge = sum(weight_of(value.shape) for value in lost)
    gain = sum(weight_of(value.shape) for value in node.outputs if _is_undone(value, permutation))
    gain += edit.going(carriers, permutation, node if charge else None)
    cost = edit.coming(carriers, permutation) + charge
    undo = inverse(permutation)
    return cost < gain or (is_free and cost == gain and any(undo in leading.get(value, ()) for value in node.outputs))


def _is_undone(value: Value, permutation: Permutation) -> bool:
    """Return whether nobody reads `value` but transposes that undo `permutation`."""
    users = [user for user, _ in value.uses]
    undo = inverse(permutation)
    maker = value.producer
    if maker is None or not users:
        return False
    return all(isinstance(user, Node) and user.graph is maker.graph and permutation_of(user) == undo for user in users)


def _merge(edit: Edit, node: Node, first: dict[tuple[Value, Permutation], Value]) -> None:
    """Replace two transposes by one; none where the two undo each other, where one changes nothing, and where `first` has one."""
    source, second = node.inputs[0], permutation_of(node)
    if source is None or second is None:
        return
    found = edit.transpose_of(source)
    if found is not None:
        source, second = found[1], then(found[0], second)
        node.replace_input(0, source)
        node.attributes["perm"] = Attribute(AttributeKind.INTS, second)
    if second == identity(len(second)):
        node.output.replace_all_uses_with(source)
        return
    same = first.setdefault((source, second), node.output)
    if same is not node.output and not node.output.is_graph_output:
        node.output.replace_all_uses_with(same)
