"""What the passes on projections with packed weights share: which they match, and the normalization in front of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import DataType
from sardonyx.ir import Node, Value
from sardonyx.ops.views.normalize import LayerNormalization
from sardonyx.optimize.edit import are_placed_apart, inherit_metadata, remove_dead, take_over
from sardonyx.optimize.rule import Builder
from sardonyx.optimize.terms import attribute_value

__all__ = ["Normalization", "fuse", "is_packed", "normalization_before", "packing", "weights_of"]

MICROSOFT = "com.microsoft"
_PLAIN = ("RMSNormalization", "SimplifiedLayerNormalization")
_SUM = 3
"""The output of SkipSimplifiedLayerNormalization that is the sum."""
_TYPES = (DataType.FLOAT, DataType.FLOAT16)


@dataclasses.dataclass(frozen=True, slots=True)
class Normalization:
    """A root mean square normalization along the last axis, with the sum in front of it where there is one."""

    nodes: tuple[Node, ...]
    """The nodes that compute it, first the first."""
    inputs: tuple[Value | None, ...]
    """What is normalized, the residual or None, the scale."""
    epsilon: float
    """What is added to the mean of the squares."""
    total: Value | None
    """The sum, where anything else may read it."""


def is_packed(node: Node | None) -> bool:
    """Return whether a node is a MatMulNBits without zero points and groups whose weights are no node's output."""
    if node is None or node.op_type != "MatMulNBits" or node.domain != MICROSOFT or node.input(3) or node.input(4):
        return False
    return all(value is None or value.producer is None for value in node.inputs[1:])


def packing(node: Node) -> tuple[int, ...]:
    """Return what packed weights must agree in: features, bits, block and accuracy."""
    return tuple(node.integer(name, default) for name, default in (("K", 0), ("bits", 4), ("block_size", 0), ("accuracy_level", 0)))


def weights_of(node: Node) -> tuple[Value | None, ...]:
    """Return the numbers, scales and bias of a MatMulNBits."""
    return node.input(1), node.input(2), node.input(5)


def normalization_before(value: Value, readers: Sequence[Node]) -> Normalization | None:
    """Return the normalization that makes `value`, where just `readers` read it."""
    node = value.producer
    if node is None or node.graph is None or value.index or [user for user, _ in value.uses] != list(readers):
        return None
    if node.op_type == "SkipSimplifiedLayerNormalization" and node.domain == MICROSOFT:
        return _with_residual(node)
    return _plain(node) if node.op_type in _PLAIN else None


def _with_residual(node: Node) -> Normalization | None:
    unused = all(not value.use_count for value in node.outputs[1:_SUM])
    if node.input(3) or not unused or not _fits(node.input(0), node.input(2)):
        return None
    total = node.outputs[_SUM] if len(node.outputs) > _SUM else None
    return Normalization((node,), node.inputs[:3], float(attribute_value(node, "epsilon")), total)


def _plain(node: Node) -> Normalization | None:
    x, scale = node.inputs[:2]
    if not _fits(x, scale) or any(value.use_count for value in node.outputs[1:]):
        return None
    view, rank = LayerNormalization.of(node), len(x.shape or ()) if x is not None else 0
    if view.axis not in (-1, rank - 1) or not view.stashes_float:
        return None
    add = None if x is None else x.producer
    if add is None or not _is_sum(add, node):
        return Normalization((node,), (x, None, scale), view.epsilon, None)
    return Normalization((add, node), (*add.inputs, scale), view.epsilon, x)


def _is_sum(add: Node, node: Node) -> bool:
    """Return whether a node adds two values of one shape, in the graph of `node`."""
    shape = add.outputs[0].shape
    return (
        add.op_type == "Add"
        and not add.domain
        and add.graph is node.graph
        and shape is not None
        and all(value is not None and value.shape == shape for value in add.inputs)
    )


def _fits(x: Value | None, scale: Value | None) -> bool:
    """Return whether types and shapes are those of the fused operators, and the scale is no node's output."""
    if x is None or scale is None or not x.shape or scale.producer is not None:
        return False
    return x.dtype in _TYPES and scale.dtype is x.dtype and scale.shape == x.shape[-1:]


def fuse(
    op: Builder,
    op_type: str,
    normalization: Normalization,
    projections: Iterable[Node],
    old: Sequence[Value],
    **attributes: int | float | str,
) -> bool:
    """Put one node of com.microsoft in the place of a normalization and its projections, in front of the former.

    Args:
        op: builds in front of the first node of the normalization.
        op_type: the operator.
        normalization: what is in front of the projections.
        projections: their MatMulNBits, in the order of the operator's inputs.
        old: the values that the node's first outputs replace.
        attributes: those that the projections do not share.

    Returns:
        Whether it was done; not where nodes are placed on different providers.
    """
    products = list(projections)
    gone = [*normalization.nodes, *products, *(value.producer for value in old if value.producer is not None)]
    if are_placed_apart(gone):
        return False
    shared = dict(zip(("K", "bits", "block_size", "accuracy_level"), packing(products[0]), strict=True))
    weights = [value for product in products for value in weights_of(product)]
    replaced = [*old, *([normalization.total] if normalization.total is not None else [])]
    new = op.outputs(
        op_type,
        len(replaced),
        *normalization.inputs,
        *weights,
        _domain=MICROSOFT,
        epsilon=normalization.epsilon,
        **shared,
        **attributes,
    )
    for before, after in zip(replaced, new, strict=True):
        take_over(before, after, op.version())
    inherit_metadata(gone, op.nodes)
    remove_dead(reversed(gone))
    return True
