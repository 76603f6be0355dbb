"""Remove what no output depends on."""

from __future__ import annotations

from sardonyx.ir import Graph, Model, Node, Value
from sardonyx.optimize.contract import Context, Pass

__all__ = ["ELIMINATE_DEAD_NODES"]


class _EliminateDeadNodes:
    """Remove nodes, initializers and outputs of control flow that nothing reads.

        y, z = If(c) {then: (a, b), else: (d, e)}     z unused  ->  y = If(c) {then: (a), else: (d)}
        y, s = Loop(n, c, x) {body: (c, x, scanned)}  s unused  ->  y = Loop(n, c, x) {body: (c, x)}

    Left alone: inputs of the main graph, used or not, and initializers that are inputs too, as they are the interface; states that
    Loop and Scan carry, which the next iteration may read; outputs of other operators, whose place has a meaning.
    No operator of ONNX has side effects; those that draw random numbers go like any other.

    Holds before: nodes in topological order. Cost: O(nodes).
    """

    name = "eliminate_dead_nodes"

    def run(self, model: Model, context: Context) -> bool:
        """Remove; whether anything went."""
        changed = _clean(model.graph)
        for function in model.functions.values():
            changed |= _clean(function.graph)
        return changed


ELIMINATE_DEAD_NODES: Pass = _EliminateDeadNodes()


def _clean(graph: Graph) -> bool:
    """Clean a graph from its end to its start, so that one walk suffices."""
    changed = False
    for node in reversed(graph):
        if not any(value.use_count for value in node.outputs):
            graph.remove(node)
            changed = True
            continue
        shorten = _SHORTEN.get(node.op_type) if not node.domain else None
        if shorten is not None:
            changed |= shorten(node)
        for subgraph in node.subgraphs:
            changed |= _clean(subgraph)
    return _drop_initializers(graph) or changed


def _drop_initializers(graph: Graph) -> bool:
    inputs = set(graph.inputs)
    unused = [name for name, value in graph.initializers.items() if not value.use_count and value not in inputs]
    for name in unused:
        del graph.initializers[name]
    return bool(unused)


def _shorten_if(node: Node) -> bool:
    unused = [index for index, value in enumerate(node.outputs) if not value.use_count]
    if any(len(branch.outputs) != len(node.outputs) for branch in node.subgraphs):
        return False
    for branch in node.subgraphs:
        _set_outputs(branch, [value for index, value in enumerate(branch.outputs) if index not in unused])
    _drop_node_outputs(node, unused)
    return bool(unused)


def _shorten_loop(node: Node) -> bool:
    """Drop unused scan outputs: those behind the carried states, of which there are as many as inputs but two."""
    states = len(node.inputs) - 2
    (body,) = node.subgraphs
    if len(body.outputs) != len(node.outputs) + 1:
        return False
    unused = [index for index, value in enumerate(node.outputs) if index >= states and not value.use_count]
    _set_outputs(body, [value for index, value in enumerate(body.outputs) if index - 1 not in unused])
    _drop_node_outputs(node, unused)
    return bool(unused)


def _set_outputs(graph: Graph, outputs: list[Value]) -> None:
    if len(outputs) == len(graph.outputs):
        return
    graph.clear_outputs()
    for value in outputs:
        graph.add_output(value)


def _drop_node_outputs(node: Node, unused: list[int]) -> None:
    node.outputs = tuple(value for index, value in enumerate(node.outputs) if index not in unused)
    for index, value in enumerate(node.outputs):
        value.index = index


_SHORTEN = {"If": _shorten_if, "Loop": _shorten_loop}
