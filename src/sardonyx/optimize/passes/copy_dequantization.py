"""Give each reader of a DequantizeLinear a DequantizeLinear of its own."""

from __future__ import annotations

from sardonyx.ir import Graph, Model, Node, Value
from sardonyx.ir.walk import nested_graphs
from sardonyx.optimize.contract import Context, Pass
from sardonyx.optimize.edit import Names
from sardonyx.optimize.helpers.quantized import NO_QUANTIZATION, QUANTIZATION

__all__ = ["COPY_DEQUANTIZATION"]


class _CopyDequantization:
    """Copy DequantizeLinear nodes, so that no two inputs of nodes read one.

        d = DequantizeLinear(x, s, z)                 d = DequantizeLinear(x, s, z)
        a = Conv(d, …)                      ->        a = Conv(d, …)
        b = Add(a, d)                                 e = DequantizeLinear(x, s, z)
                                                      b = Add(a, e)

    so that a provider which compiles an operator together with the DequantizeLinear in front of it and the QuantizeLinear behind it
    gets such units that share nothing. The numbers are the same.

    Left alone: outputs of the graph and what subgraphs read, which keep the node as it is.

    Holds before: nothing. Holds after: merging equal nodes undoes it, so nothing of that kind may follow. Cost: O(nodes).
    """

    name = "copy_dequantization"
    makes = QUANTIZATION
    not_saved = "one DequantizeLinear for all readers is smaller"
    opt_out = NO_QUANTIZATION
    aliases = ("EnsureUniqueDQForNodeUnit",)

    def run(self, model: Model, context: Context) -> bool:
        """Copy; whether any was."""
        names: Names | None = None
        changed = False
        for graph in nested_graphs(model.graph):
            for node in [node for node in graph if node.op_type == "DequantizeLinear"]:
                for user, index in _further_readers(graph, node.output):
                    names = names or Names.of(model)
                    user.replace_input(index, _copy(graph, node, names))
                    changed = True
        return changed


COPY_DEQUANTIZATION: Pass = _CopyDequantization()


def _further_readers(graph: Graph, value: Value) -> list[tuple[Node, int]]:
    """Return the inputs of nodes of `graph` that are to read another value."""
    readers = [(user, index) for user, index in value.uses if isinstance(user, Node) and user.graph is graph]
    return readers[1:] if len(readers) == value.use_count else readers


def _copy(graph: Graph, node: Node, names: Names) -> Value:
    output = Value(names.fresh(node.output.name), node.output.type)
    made = Node(node.op_type, node.inputs, [output], node.attributes, domain=node.domain, version=node.version, name=node.name)
    made.metadata = node.metadata
    return graph.insert_after(node, made).output
