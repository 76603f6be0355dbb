"""Compute weights that are stored quantized once, for providers that compute with floats anyway."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

import numpy as np

from sardonyx.cancellation import check_cancelled, raise_interrupt
from sardonyx.dtypes import bit_width
from sardonyx.errors import SardonyxError
from sardonyx.ir import Model, Node, Tensor, Value
from sardonyx.ir.walk import nested_graphs
from sardonyx.ops.schema import place_of
from sardonyx.optimize.contract import Context, Evaluate, Pass
from sardonyx.optimize.edit import Names, overridable_values, take_over, tensor_of
from sardonyx.optimize.helpers.quantized import INTEGER_PRODUCTS, QUANTIZATION
from sardonyx.optimize.target import OpKey
from sardonyx.trace import event

__all__ = ["FOLD_DEQUANTIZATION", "FOLD_REMAINING_DEQUANTIZATION"]

MOST_BYTES = 8 << 30
"""How many bytes the constants that one run makes may take together."""


class _FoldDequantization:
    """Put float initializers in the place of DequantizeLinear nodes whose inputs are all constants.

        w = DequantizeLinear(w8, scale, zero_point); y = Conv(x, w)      ->      y = Conv(x, w)

    The numbers are the same; the constants become four times (8 bits) or eight times (4 bits) as large, in memory. So a session
    leaves this pass out where a provider prefers products of integers, but for the weights that are left when these are made (as
    `fold_remaining_dequantization`), and altogether where the optimized model is saved or a provider reads DequantizeLinear.

    Left alone: what comes after `MOST_BYTES` of such constants; weights of which many nodes make floats, once these exceed
    `context.dequantize_again_bytes`, as a small file can ask for; all of it where the context has no evaluator; what that refuses.

    Cost: O(nodes), and one pass over the weights.
    """

    opt_out = "session.disable_qdq_constant_folding"

    def __init__(self, name: str, takes_apart: frozenset[OpKey], summary: str) -> None:
        """Make the pass of a name, which takes no part where one of some operators is legal."""
        self.name, self.takes_apart, self.summary = name, takes_apart, summary

    def run(self, model: Model, context: Context) -> bool:
        """Fold; whether anything was."""
        if context.evaluate is None:
            return False
        overridable = overridable_values(model)
        found = [
            node
            for graph in nested_graphs(model.graph)
            for node in graph
            if node.op_type == "DequantizeLinear"
            and not node.domain
            and all(value is None or tensor_of(value, overridable) is not None for value in node.inputs)
        ]
        if not found:
            return False
        names = Names.of(model)
        made_bytes = 0
        for nodes in _by_weights(found):
            sizes = [_size_bytes(node) for node in nodes]
            again_bytes = sum(sizes) - max(sizes)
            if made_bytes + sum(sizes) <= MOST_BYTES and again_bytes <= context.dequantize_again_bytes:
                context.dequantize_again_bytes -= again_bytes
                made_bytes += sum(_fold(node, context.evaluate, names) for node in nodes)
        return made_bytes > 0


def _by_weights(nodes: Sequence[Node]) -> Iterable[list[Node]]:
    """Return the nodes that read the same weights together."""
    groups: dict[Value | None, list[Node]] = {}
    for node in nodes:
        groups.setdefault(node.inputs[0], []).append(node)
    return groups.values()


FOLD_DEQUANTIZATION: Pass = _FoldDequantization(
    "fold_dequantization",
    INTEGER_PRODUCTS | QUANTIZATION,
    "Compute weights that are stored quantized once, where no provider multiplies integers.",
)
FOLD_REMAINING_DEQUANTIZATION: Pass = _FoldDequantization(
    "fold_remaining_dequantization",
    QUANTIZATION,
    "Compute weights that are stored quantized once, where no product of integers reads them.",
)
"""The same, once products of integers are made."""


def _size_bytes(node: Node) -> int:
    tensor, dtype = tensor_of(node.inputs[0]), node.output.dtype
    return 0 if tensor is None or dtype is None else tensor.size * bit_width(dtype) // 8


def _fold(node: Node, evaluate: Evaluate, names: Names) -> int:
    """Replace the node; the bytes of the constant that was made, 0 where none was."""
    tensors = [tensor_of(value) for value in node.inputs]
    start = time.perf_counter()
    try:
        with np.errstate(all="ignore"):
            (array,) = evaluate(node, [None if tensor is None else tensor.numpy() for tensor in tensors])
    except SardonyxError as error:
        check_cancelled()
        raise_interrupt(error)
        event("fold.decline", node=node.name, operator=node.op_type, reason=str(error))
        return 0
    event("fold.dequantize", node=node.name, seconds=time.perf_counter() - start, bytes=array.nbytes)
    _replace(node, Tensor.from_array(np.ascontiguousarray(array).reshape(array.shape)), names)
    return max(array.nbytes, 1)


def _replace(node: Node, tensor: Tensor, names: Names) -> None:
    stored, graph = node.inputs[0], node.graph
    if stored is None or graph is None:
        raise ValueError(f"{place_of(node)} is in no graph")
    base = stored.name or node.name
    take_over(node.output, graph.add_initializer(tensor, names.fresh(f"{base}/dequantized")), node.version)
    graph.remove(node)
