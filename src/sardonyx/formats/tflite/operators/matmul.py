"""Products of matrices: FULLY_CONNECTED, BATCH_MATMUL."""

from __future__ import annotations

import math

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.formats.tflite.operator import ACTIVATION, Operator, Options, imports
from sardonyx.formats.tflite.operators.conv import bias, integer_weights
from sardonyx.formats.tflite.quantize import block_product, dynamic_product
from sardonyx.ir import Value

__all__ = ["batch_matmul", "fully_connected"]

_SHUFFLED_BYTES = 1
"""The number of weights of 8 bits that lie in blocks, SHUFFLED4x16INT8."""
_SHUFFLED_FLOATS = 127
"""The number of such floats, SHUFFLED16x1FLOAT32, which Circle has."""


@imports("FULLY_CONNECTED")
def fully_connected(op: Operator) -> None:
    """Multiply rows (…, K) by the rows of weights (M, K), and add a bias (M,)."""
    options = op.options("FullyConnectedOptions")
    if op.rank(1) != 2:
        op.refuse(f"its weights have shape {list(op.info(1).shape)}; expected (M, K)")
    weights_format = options.integer("weights_format")
    if weights_format == _SHUFFLED_BYTES:
        _shuffled(op, options)
    elif weights_format in (0, _SHUFFLED_FLOATS):
        _plain(op, options, shuffled=weights_format != 0)
    else:
        op.refuse(f"its weights are in the order {weights_format}, which the schema has no name for")
    if options.flag("keep_num_dims") and op.rank(0) != 2:
        op.put_raw(0, _with_rows(op, op.value(0)))


def _plain(op: Operator, options: Options, *, shuffled: bool) -> None:
    """Multiply rows (…, K) by the rows of weights, to rows of a matrix; shuffled weights lie in blocks of 16 rows, by columns.

    Source: the layout of onert's kernel FullyConnected16x1Float32.
    """
    build, depth = op.build, op.info(1).shape[1]
    value = op.raw(0)
    hybrid = op.is_hybrid(1)
    if shuffled and (op.info(1).dtype is not DataType.FLOAT or op.info(1).shape[0] % 16 or not math.prod(op.info(1).shape)):
        op.refuse(f"shuffled weights of {op.info(1).dtype} and shape {list(op.info(1).shape)} are no blocks of 16 rows of floats")
    if op.rank(0) != 2 or op.info(0).signature[1] != depth:
        value = build.reshape(value, (-1, depth))
    blocks = op.blocks(1)
    if blocks is not None:
        value = block_product(build, value, *blocks)
        value = build.node("Add", value, op.real(2)) if op.has(2) else value
    elif hybrid:
        columns, scales = integer_weights(op, 1, (1, 0)), op.scales(1)
        asymmetric = options.flag("asymmetric_quantize_inputs")
        value = dynamic_product(build, value, columns, scales, asymmetric=asymmetric)
        value = build.node("Add", value, op.real(2)) if op.has(2) else value
    else:
        weights = op.real(1)
        if shuffled:
            turned = build.transpose(build.reshape(weights, (-1, depth, 16)), (0, 2, 1))
            weights = build.reshape(turned, (-1, depth))
        value = build.node("Gemm", op.real_of(0, value), weights, bias(op, 2, 1), transB=1)
    value = op.activate(value, options.choice("fused_activation_function", ACTIVATION))
    op.put(0, value)


def _shuffled(op: Operator, options: Options) -> None:
    """Multiply rows of uint8 by weights that lie in blocks of 4 rows and 16 columns, to int16.

    Zero points are 128, and the highest bit of each weight is flipped. The second output, where a kernel keeps the rows in
    the order of such weights, is made too.

    Source: the layout of LiteRT's reference kernel ShuffledFullyConnected.
    """
    build, (units, depth) = op.build, op.info(1).shape
    if not units or not depth or units % 4 or depth % 16:
        op.refuse(f"shuffled weights of shape {[units, depth]} are no blocks of 4 rows and 16 columns")
    kinds = ((op.info(0), DataType.UINT8, 128), (op.info(1), DataType.UINT8, 128), (op.output(0), DataType.INT16, 0))
    for info, dtype, point in kinds:
        found = info.quantization
        if info.dtype is not dtype or found is None or not found.is_per_tensor or found.zero_points[0] != point:
            op.refuse(f"the tensor {info.name!r} is no {dtype} with one scale and the zero point {point}, as shuffled weights need")
    flip = build.constant(np.uint8(128))
    blocks = build.transpose(build.reshape(op.raw(1), (units // 4, depth // 16, 4, 16)), (0, 2, 1, 3))
    weights = build.node("BitwiseXor", build.reshape(blocks, (units, depth)), flip)
    rows = build.reshape(op.raw(0), (-1, depth))
    value = build.node("Gemm", op.real_of(0, rows), op.real_of(1, weights), bias(op, 2, 1), transB=1)
    value = op.activate(value, options.choice("fused_activation_function", ACTIVATION))
    op.put(0, value)
    if len(op.outputs) > 1:
        kept = build.node("BitwiseXor", rows, flip)
        if math.prod(op.info(0).shape) == 4 * depth:
            kept = build.transpose(build.reshape(kept, (4, depth // 16, 16)), (1, 0, 2))
        op.put_raw(1, build.reshape(kept, op.output(1).signature))


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
