"""Store the weights of quantized operators as uint8 instead of int8."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sardonyx.dtypes import Array, DataType
from sardonyx.ir import Graph, Model, Node, Tensor, Value
from sardonyx.ir.walk import nested_graphs
from sardonyx.optimize.contract import Context, Pass
from sardonyx.optimize.edit import Names, overridable_values, tensor_of
from sardonyx.optimize.target import OptIn

__all__ = ["STORE_WEIGHTS_AS_UINT8"]

_MICROSOFT = "com.microsoft"
_SHIFT = 128

_WEIGHTS: Mapping[tuple[str, str], tuple[tuple[int, int], ...]] = {
    ("", "ConvInteger"): ((1, 3),),
    ("", "MatMulInteger"): ((1, 3),),
    ("", "QLinearConv"): ((3, 5),),
    ("", "QLinearMatMul"): ((3, 5),),
    (_MICROSOFT, "DynamicQuantizeLSTM"): ((1, 9), (2, 11)),
    (_MICROSOFT, "DynamicQuantizeMatMul"): ((1, 3),),
    (_MICROSOFT, "MatMulIntegerToFloat"): ((1, 5),),
    (_MICROSOFT, "QAttention"): ((1, 7),),
    (_MICROSOFT, "QGemm"): ((3, 5),),
}
"""Operator -> which inputs are weights of one type, each with the input that is its zero point."""

_ACTIVATIONS = (DataType.FLOAT, DataType.FLOAT16, DataType.UINT8)
"""What is multiplied by the weights, or quantized to uint8 for that."""


class _StoreWeightsAsUint8:
    """Add 128 to int8 weights and their zero points.

        QLinearConv(x, …, w: int8, w_scale, w_zero, …)      ->      QLinearConv(x, …, w + 128: uint8, w_scale, w_zero + 128, …)

    and likewise ConvInteger, MatMulInteger, QLinearMatMul, and DynamicQuantizeLSTM, DynamicQuantizeMatMul, MatMulIntegerToFloat,
    QAttention and QGemm of com.microsoft. The numbers are the same, bit by bit. Some kernels for x64 add products of uint8 and int8
    in 16 bits, where they overflow, but not those of uint8 and uint8; the session option `session.x64quantprecision` = "1" asks
    for it, as in onnxruntime.

    Left alone: weights, and zero points, that are no constants; weights that other nodes read too; products with int8, which do not
    overflow, and for which onnxruntime has no kernels then.

    Holds before: shapes inferred. Cost: O(nodes), and one pass over the weights.
    """

    name = "store_weights_as_uint8"
    opt_in = OptIn("session.x64quantprecision", "1", "only some kernels for x64 need it")
    aliases = ("Avx2WeightS8ToU8Transformer",)

    def run(self, model: Model, context: Context) -> bool:
        """Store; whether any were."""
        overridable = overridable_values(model)
        found = [(graph, node) for graph in nested_graphs(model.graph) for node in graph if _is_signed(node, overridable)]
        names = Names.of(model) if found else Names(())
        for graph, node in found:
            for weights, zero in _WEIGHTS[node.domain, node.op_type]:
                _shift(graph, node, weights, zero, names)
        return bool(found)


STORE_WEIGHTS_AS_UINT8: Pass = _StoreWeightsAsUint8()


def _is_signed(node: Node, overridable: frozenset[Value]) -> bool:
    """Return whether all weights of a node are int8 and may be replaced."""
    places = _WEIGHTS.get((node.domain, node.op_type), ())
    x = node.input(0)
    return (
        bool(places)
        and x is not None
        and x.dtype in _ACTIVATIONS
        and all(
            _is_own(node.input(weights), overridable) and _is_constant_or_missing(node.input(zero), overridable)
            for weights, zero in places
        )
    )


def _is_own(value: Value | None, overridable: frozenset[Value]) -> bool:
    tensor = tensor_of(value, overridable)
    return value is not None and tensor is not None and tensor.dtype is DataType.INT8 and value.use_count == 1


def _is_constant_or_missing(value: Value | None, overridable: frozenset[Value]) -> bool:
    return value is None or tensor_of(value, overridable) is not None


def _shift(graph: Graph, node: Node, weights: int, zero: int, names: Names) -> None:
    given = tensor_of(node.input(zero))
    points = np.zeros((), np.int8) if given is None else given.numpy()
    inputs = [*node.inputs, *[None] * (zero + 1 - len(node.inputs))]
    for index, array in ((weights, _numpy(node.input(weights))), (zero, points)):
        old = inputs[index]
        tensor = Tensor.from_array((array.astype(np.int16) + _SHIFT).astype(np.uint8))
        inputs[index] = graph.add_initializer(tensor, names.fresh(f"{old.name if old else node.name}/uint8"))
    node.set_inputs(inputs)


def _numpy(value: Value | None) -> Array:
    tensor = tensor_of(value)
    if tensor is None:
        raise ValueError(f"{value!r} is no constant")
    return tensor.numpy()
