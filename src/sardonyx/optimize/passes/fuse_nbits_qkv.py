"""Project queries, keys and values with packed weights in one node."""

from __future__ import annotations

from sardonyx.ir import Model, Node
from sardonyx.ir.walk import nested_graphs
from sardonyx.optimize.contract import Context, Pass
from sardonyx.optimize.edit import Names
from sardonyx.optimize.helpers.packed_projections import Normalization, fuse, is_packed, normalization_before, packing
from sardonyx.optimize.rule import Builder
from sardonyx.optimize.target import microsoft

__all__ = ["FUSE_NBITS_QKV"]

_NORMALIZATIONS = ("RMSNormalization", "SimplifiedLayerNormalization", "SkipSimplifiedLayerNormalization")


class _FuseNbitsQkv:
    """Make com.microsoft.MatMulNBitsQkv of a normalization and three products with packed weights.

        x = RMSNormalization(a + skip, scale)
        q = MatMulNBits(x, …)                             q, k, v, s = MatMulNBitsQkv(a, skip, scale, …, …, …)
        k = MatMulNBits(x, …)                    ->
        v = MatMulNBits(x, …)

    with or without a residual; where others read the sum, it is the fourth output. Keys and values are the two of one size; where
    all are, the order of the nodes decides. Only for providers that prefer the operator.

    Left alone: weights with zero points or groups, or that nodes make; weights of several packings, or three sizes; normalizations
    of other axes than the last, and without a scale of its size; types other than float and float16; what others read.

    Holds before: shapes inferred. Cost: O(nodes).
    """

    name = "fuse_nbits_qkv"
    makes = microsoft("MatMulNBitsQkv")
    aliases = ("MatMulNBitsQkvFusion",)

    def run(self, model: Model, context: Context) -> bool:
        """Fuse; whether any was."""
        names: Names | None = None
        changed = False
        for graph in nested_graphs(model.graph):
            for node in [node for node in graph if node.op_type in _NORMALIZATIONS]:
                found = _projections(node)
                if found is not None:
                    names = names or Names.of(model)
                    changed |= _fuse(model, names, *found)
        return changed


FUSE_NBITS_QKV: Pass = _FuseNbitsQkv()


def _projections(node: Node) -> tuple[Normalization, list[Node]] | None:
    """Return a normalization and the products of queries, keys and values that read it."""
    users = [user for user, _ in node.outputs[0].uses if isinstance(user, Node) and user.graph is node.graph and is_packed(user)]
    if len(users) != 3 or any(packing(user) != packing(users[0]) for user in users):
        return None
    normalization = normalization_before(node.outputs[0], users)
    ordered = _queries_first(users)
    return None if normalization is None or ordered is None else (normalization, ordered)


def _queries_first(users: list[Node]) -> list[Node] | None:
    """Return the products in the operator's order; None where they have three sizes."""
    sizes = [user.integer("N") for user in users]
    queries = next((place for place in range(3) if sizes[place - 2] == sizes[place - 1]), None)
    return None if queries is None else [users[queries], *(user for user in users if user is not users[queries])]


def _fuse(model: Model, names: Names, normalization: Normalization, products: list[Node]) -> bool:
    op = Builder(normalization.nodes[0], model.opset_imports, names.fresh)
    return fuse(
        op,
        "MatMulNBitsQkv",
        normalization,
        products,
        [product.output for product in products],
        Nq=products[0].integer("N", 0),
        Nkv=products[1].integer("N", 0),
    )
