"""Compute a gated layer with packed weights in one node."""

from __future__ import annotations

from sardonyx.ir import Graph, Model, Node, Value
from sardonyx.ir.walk import nested_graphs
from sardonyx.optimize.contract import Context, Pass
from sardonyx.optimize.edit import Names
from sardonyx.optimize.helpers.packed_projections import fuse, is_packed, normalization_before, packing
from sardonyx.optimize.rule import Builder
from sardonyx.optimize.target import microsoft
from sardonyx.optimize.terms import attribute_value

__all__ = ["FUSE_NBITS_MLP"]

_ACTIVATIONS = {("", "Swish"), ("com.microsoft", "QuickGelu")}


class _FuseNbitsMlp:
    """Make com.microsoft.MatMulNBitsMlp of a normalization, two products with packed weights, SiLU and a product.

        x = RMSNormalization(a + skip, scale)
        gate = MatMulNBits(x, …); up = MatMulNBits(x, …)          ->      y, s = MatMulNBitsMlp(a, skip, scale, …, …)
        y = Swish(gate) * up                                              {activation = "silu"}

    with or without a residual; where others read the sum, it is the second output. Only for providers that prefer the operator.

    Left alone: weights with zero points or groups, or that nodes make; weights of two packings or sizes; normalizations of other
    axes than the last, and without a scale of its size; types other than float and float16; parts that others read.

    Holds before: shapes inferred. Cost: O(nodes).
    """

    name = "fuse_nbits_mlp"
    makes = microsoft("MatMulNBitsMlp")
    aliases = ("MatMulNBitsMlpFusion",)

    def run(self, model: Model, context: Context) -> bool:
        """Fuse; whether any was."""
        names: Names | None = None
        changed = False
        for graph in nested_graphs(model.graph):
            for node in [node for node in graph if node.op_type == "Mul" and not node.domain]:
                projections = _projections(graph, node)
                if projections is not None:
                    names = names or Names.of(model)
                    changed |= _fuse(model, names, node, *projections)
        return changed


FUSE_NBITS_MLP: Pass = _FuseNbitsMlp()


def _projections(graph: Graph, node: Node) -> tuple[Node, Node] | None:
    """Return the products that make gate and up of a product, where they are."""
    for first, second in (node.inputs, node.inputs[::-1]):
        activation, up = _own_producer(graph, first), _own_producer(graph, second)
        if activation is None or (activation.domain, activation.op_type) not in _ACTIVATIONS:
            continue
        gate = _own_producer(graph, activation.inputs[0])
        if gate is not None and up is not None and float(attribute_value(activation, "alpha")) == 1 and _match(gate, up):
            return gate, up
    return None


def _own_producer(graph: Graph, value: Value | None) -> Node | None:
    """Return what makes a value that one node of `graph` reads."""
    if value is None or value.use_count != 1 or value.producer is None or value.producer.graph is not graph:
        return None
    return value.producer


def _match(gate: Node, up: Node) -> bool:
    if not (is_packed(gate) and is_packed(up)) or gate.inputs[0] is not up.inputs[0]:
        return False
    return packing(gate) == packing(up) and gate.integer("N") == up.integer("N")


def _fuse(model: Model, names: Names, node: Node, gate: Node, up: Node) -> bool:
    x = gate.inputs[0]
    normalization = None
    if x is not None:
        normalization = normalization_before(x, [gate, up]) or normalization_before(x, [up, gate])
    if normalization is None:
        return False
    op = Builder(normalization.nodes[0], model.opset_imports, names.fresh)
    return fuse(op, "MatMulNBitsMlp", normalization, [gate, up], [node.output], N=gate.integer("N", 0), activation="silu")
