"""Products of matrices: FULLY_CONNECTED, BATCH_MATMUL."""

from __future__ import annotations

from sardonyx.dtypes import DataType
from sardonyx.formats.tflite.operator import ACTIVATION, Operator, imports
from sardonyx.formats.tflite.operators.conv import bias, integer_weights
from sardonyx.formats.tflite.quantize import dynamic_product
from sardonyx.ir import Value

__all__ = ["batch_matmul", "fully_connected"]


@imports("FULLY_CONNECTED")
def fully_connected(op: Operator) -> None:
    """Multiply rows (…, K) by the rows of weights (M, K), and add a bias (M,)."""
    options = op.options("FullyConnectedOptions")
    if options.integer("weights_format"):
        op.unsupported("shuffled weights are not supported; convert the model without them")
    if op.rank(1) != 2:
        op.refuse(f"its weights have shape {list(op.info(1).shape)}; expected (M, K)")
    build, depth = op.build, op.info(1).shape[1]
    value = op.raw(0)
    hybrid = op.is_hybrid(1)
    if op.rank(0) != 2 or op.info(0).signature[1] != depth:
        value = build.reshape(value, (-1, depth))
    if hybrid:
        columns, scales = integer_weights(op, 1, (1, 0)), op.scales(1)
        asymmetric = options.flag("asymmetric_quantize_inputs")
        value = dynamic_product(build, value, columns, scales, asymmetric=asymmetric)
        value = build.node("Add", value, op.real(2)) if op.has(2) else value
    else:
        value = build.node("Gemm", op.real_of(0, value), op.real(1), bias(op, 2, 1), transB=1)
    value = op.activate(value, options.choice("fused_activation_function", ACTIVATION))
    op.put(0, value)
    if options.flag("keep_num_dims") and op.rank(0) != 2:
        op.put_raw(0, _with_rows(op, op.value(0)))


def _with_rows(op: Operator, value: Value) -> Value:
    """Return (rows, M) in the shape of the input but for its last axis."""
    signature = op.info(0).signature
    if signature.count(-1) <= 1 and -1 not in signature[-1:]:
        return op.build.reshape(value, (*signature[:-1], op.info(1).shape[0]))
    rows = op.build.node("Shape", op.raw(0), start=0, end=-1)
    return op.build.node("Reshape", value, op.build.node("Concat", rows, op.build.ints(op.info(1).shape[0]), axis=0))


@imports("BATCH_MATMUL")
def batch_matmul(op: Operator) -> None:
    """Multiply matrices, each side transposed where the options say so; leading axes are broadcast."""
    options = op.options("BatchMatMulOptions")
    sides = []
    for index, field in enumerate(op.names_of("BatchMatMulOptions")[:2]):
        rank = op.rank(index)
        order = [*range(rank - 2), rank - 1, rank - 2]
        value = op.build.transpose(op.raw(index), order) if options.flag(field) else op.raw(index)
        sides.append(value)
    if op.is_hybrid(1) and op.info(1).dtype is DataType.INT8 and len(op.scales(1)) == 1:
        asymmetric = options.flag("asymmetric_quantize_inputs")
        op.put(0, dynamic_product(op.build, sides[0], sides[1], op.scales(1), asymmetric=asymmetric))
        return
    op.put(0, op.build.node("MatMul", *(op.real_of(index, value) for index, value in enumerate(sides))))
