"""Facts about products and quantized operators of com.microsoft."""

from __future__ import annotations

from typing import Any

from support.infer_op import A, B, dtype_of, error_of, floats, infer_op, infer_shape, ints

from sardonyx.dtypes import DataType
from sardonyx.ir import Shape
from sardonyx.ops.fact import Fact, tensor

BYTE = tensor(DataType.UINT8, (A, 4))
POINT = tensor(DataType.UINT8, ())


def shape_of(op_type: str, *inputs: Fact | None, **attributes: Any) -> Shape | None:
    return infer_shape(op_type, *inputs, domain="com.microsoft", **attributes)


def test_products_of_packed_weights() -> None:
    """The attributes say how large the packed weights are."""
    packed = tensor(DataType.UINT8, (32, 2, 16))
    assert shape_of("MatMulNBits", floats(A, B, 64), packed, floats(64), K=64, N=32, bits=4, block_size=32) == (A, B, 32)
    message = error_of("MatMulNBits", floats(A, 63), packed, floats(64), domain="com.microsoft", K=64, N=32, block_size=32)
    assert "does not end in K=64" in message


def test_fused_products_transpose() -> None:
    """Each input may be turned before the product."""
    assert shape_of("FusedMatMul", floats(2, A, 3), floats(2, B, 3), transB=1) == (2, A, B)
    assert shape_of("FusedMatMul", floats(A, 2, 3), floats(2, 3, B), transBatchA=1) is not None
    assert shape_of("FusedGemm", floats(A, 3), floats(B, 3), transB=1) == (A, B)


def test_types_of_quantized_products() -> None:
    """Scales give the float type, the last zero point the quantized one."""
    integers = tensor(DataType.INT8, (4, 5))
    assert shape_of("DynamicQuantizeMatMul", floats(A, 4), integers, floats()) == (A, 5)
    assert dtype_of("MatMulIntegerToFloat", BYTE, integers, floats(), floats(), domain="com.microsoft") is DataType.FLOAT
    gemm = (BYTE, floats(), POINT, tensor(DataType.UINT8, (4, 5)), floats(), POINT)
    assert infer_op("QGemm", *gemm, domain="com.microsoft")[0].dtype is DataType.FLOAT
    assert infer_op("QGemm", *gemm, None, floats(), POINT, domain="com.microsoft")[0].dtype is DataType.UINT8


def test_quantized_element_wise() -> None:
    """Inputs are broadcast across their scales and zero points."""
    assert shape_of("QLinearAdd", BYTE, floats(), POINT, tensor(DataType.UINT8, (4,)), floats(), POINT, floats(), POINT) == (A, 4)
    assert shape_of("QLinearSigmoid", BYTE, floats(), POINT, floats(), POINT) == (A, 4)
    assert shape_of("QLinearConcat", floats(), POINT, BYTE, floats(), POINT, BYTE, floats(), POINT, axis=1) == (A, 8)
    condition = tensor(DataType.BOOL, (1, 4))
    assert shape_of("QLinearWhere", condition, BYTE, floats(), POINT, POINT, floats(), POINT, floats(), POINT) == (A, 4)


def test_quantized_pools_in_both_layouts() -> None:
    """channels_last moves the channels to the end."""
    image = tensor(DataType.UINT8, (A, 3, 8, 8))
    scales = (floats(), POINT, floats(), POINT)
    assert shape_of("QLinearGlobalAveragePool", image, *scales) == (A, 3, 1, 1)
    last = tensor(DataType.UINT8, (A, 8, 8, 3))
    assert shape_of("QLinearGlobalAveragePool", last, *scales, channels_last=1) == (A, 1, 1, 3)
    assert shape_of("QLinearAveragePool", last, *scales, kernel_shape=(2, 2), channels_last=1) == (A, 7, 7, 3)


def test_biases() -> None:
    """BiasAdd keeps the shape, BiasSplitGelu halves the last axis."""
    assert shape_of("BiasAdd", floats(A, 4), floats(4), floats(A, 4)) == (A, 4)
    assert shape_of("BiasSplitGelu", floats(A, 8), ints(1)) == (A, 4)
