"""Project queries, keys and values by one product."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.ir import Attribute, Model, Node, Value
from sardonyx.ir.walk import nested_graphs
from sardonyx.optimize.contract import Context, Pass
from sardonyx.optimize.edit import Names, are_placed_apart, overridable_values, remove_dead, tensor_of
from sardonyx.optimize.rule import Builder
from sardonyx.optimize.target import microsoft
from sardonyx.optimize.terms import attribute_value

__all__ = ["PACK_QUERY_PROJECTIONS"]

_MICROSOFT = "com.microsoft"
_PARTS = 3
_SCALES = (14, 15)
"""Inputs of GroupQueryAttention that normalize queries and keys, which packed ones do not have."""


class _PackQueryProjections:
    """Make one product of those of queries, keys and values that GroupQueryAttention reads.

        q = MatMul(x, a); k = MatMul(x, b); v = MatMul(x, c)
        y, … = GroupQueryAttention(q, k, v, …)

        ->      p = MatMul(x, [a b c])
                y, … = GroupQueryAttention(p, _, _, …)

    and likewise for MatMulNBits. Only for providers that prefer GroupQueryAttention.

    Left alone: weights that are no constants, that others read, or of different packings; products that others read; groups of
    columns (`g_idx`); attention that normalizes queries and keys.

    Holds before: shapes inferred. Cost: O(nodes), and a copy of the weights.
    """

    name = "pack_query_projections"
    makes = microsoft("GroupQueryAttention")
    not_saved = "onnxruntime makes this form for CUDA and WebGPU only"
    aliases = ("GroupQueryAttentionFusion",)

    def run(self, model: Model, context: Context) -> bool:
        """Pack; whether any were."""
        overridable = overridable_values(model)
        names: Names | None = None
        changed = False
        for graph in nested_graphs(model.graph):
            for node in [node for node in graph if node.op_type == "GroupQueryAttention" and node.domain == _MICROSOFT]:
                products = _products(node, overridable)
                if products is not None:
                    names = names or Names.of(model)
                    _pack(Builder(products[0], model.opset_imports, names.fresh), node, products)
                    changed = True
        return changed


PACK_QUERY_PROJECTIONS: Pass = _PackQueryProjections()


def _products(node: Node, overridable: frozenset[Value]) -> list[Node] | None:
    """Return the three products of one value that queries, keys and values are, where they can be one, in that order."""
    if any(node.input(index) for index in _SCALES):
        return None
    found = [_own_producer(node, node.input(index)) for index in range(_PARTS)]
    products = [product for product in found if product is not None]
    if len(products) != _PARTS or len({_kind(product) for product in products}) != 1 or are_placed_apart([node, *products]):
        return None
    check = _CHECKS.get((products[0].domain, products[0].op_type))
    if check is None or any(product.inputs[0] is not products[0].inputs[0] for product in products):
        return None
    weights = [value for product in products for value in product.inputs[1:] if value is not None]
    if any(tensor_of(value, overridable) is None or value.use_count != 1 for value in weights):
        return None
    return products if all(map(check, products)) else None


def _own_producer(node: Node, value: Value | None) -> Node | None:
    if value is None or value.use_count != 1 or value.producer is None or value.producer.graph is not node.graph:
        return None
    return value.producer


def _kind(product: Node) -> tuple[object, ...]:
    """Return what products must agree in to be fused."""
    inputs = tuple(None if value is None else value.dtype for value in product.inputs)
    names = ("K", "bits", "block_size", "accuracy_level") if product.op_type == "MatMulNBits" else ()
    return product.domain, product.op_type, inputs, *(attribute_value(product, name) for name in names)


def _is_matrix(product: Node) -> bool:
    weights = product.inputs[1]
    return weights is not None and weights.shape is not None and len(weights.shape) == 2


def _has_no_groups(product: Node) -> bool:
    return product.input(4) is None


_CHECKS: dict[tuple[str, str], Callable[[Node], bool]] = {("", "MatMul"): _is_matrix, (_MICROSOFT, "MatMulNBits"): _has_no_groups}
"""Which products can be one, and on what condition."""


def _pack(op: Builder, node: Node, products: Sequence[Node]) -> None:
    first = products[0]
    attributes = dict(first.attributes)
    if first.op_type == "MatMul":
        weights: list[Value | None] = [op.constant(np.concatenate([_array(product, 1) for product in products], axis=1))]
    else:
        attributes["N"] = Attribute.of(sum(product.integer("N", 0) for product in products))
        weights = [_stacked(op, products, place) for place in range(1, len(first.inputs))]
    packed = op.node(first.op_type, first.inputs[0], *weights, _domain=first.domain, _version=first.version, _attributes=attributes)
    node.set_inputs([packed, None, None, *node.inputs[_PARTS:]])
    remove_dead(products)


def _stacked(op: Builder, products: Sequence[Node], place: int) -> Value | None:
    """Return the rows of an input of all products; numbers keep their shape, scales and zero points are flat."""
    if products[0].input(place) is None:
        return None
    arrays = [_array(product, place) for product in products]
    return op.constant(np.concatenate(arrays if place == 1 else [array.reshape(-1) for array in arrays]))


def _array(product: Node, place: int) -> Array:
    tensor = tensor_of(product.inputs[place])
    if tensor is None:
        raise ValueError(f"input {place} of {product!r} is no constant")
    return tensor.numpy()
