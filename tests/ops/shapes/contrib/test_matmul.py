"""Facts about products of com.microsoft."""

from __future__ import annotations

from typing import Any

from support.infer_op import A, B, dtype_of, error_of, floats, infer_shape, ints

from sardonyx.dtypes import DataType
from sardonyx.ir import Shape
from sardonyx.ops.fact import Fact, tensor

BYTE = tensor(DataType.UINT8, (A, 4))
POINT = tensor(DataType.UINT8, ())
MICROSOFT = "com.microsoft"


def shape_of(op_type: str, *inputs: Fact | None, **attributes: Any) -> Shape | None:
    return infer_shape(op_type, *inputs, domain=MICROSOFT, **attributes)


def test_products_of_packed_weights() -> None:
    """The attributes say how large the packed weights are."""
    packed = tensor(DataType.UINT8, (32, 2, 16))
    assert shape_of("MatMulNBits", floats(A, B, 64), packed, floats(64), K=64, N=32, bits=4, block_size=32) == (A, B, 32)
    assert shape_of("MatMulBnb4", floats(A, 64), tensor(DataType.UINT8, (1024,)), floats(32), K=64, N=32) == (A, 32)
    message = error_of("MatMulNBits", floats(A, 63), packed, floats(64), domain=MICROSOFT, K=64, N=32, block_size=32)
    assert "does not end in K=64" in message


def test_products_of_weights_in_blocks() -> None:
    """The inputs themselves say how large the weights are."""
    assert shape_of("MatMulFpQ4", floats(A, B, 64), tensor(DataType.UINT8, (672,)), ints(64, 16)) == (A, B, 16)
    assert shape_of("MatMulBlockQuantizedFp8Weight", floats(A, 64), tensor(DataType.FLOAT8E4M3FN, (B, 64)), floats(B, 1)) == (A, B)
    assert shape_of("MatMulBlockQuantizedFp4Weight", floats(A, 64), tensor(DataType.UINT8, (B, 32)), floats(B, 1)) == (A, B)


def test_fused_products_transpose() -> None:
    """Each input may be turned before the product."""
    assert shape_of("FusedMatMul", floats(2, A, 3), floats(2, B, 3), transB=1) == (2, A, B)
    assert shape_of("FusedMatMul", floats(A, 2, 3), floats(2, 3, B), transBatchA=1) == (2, A, B)
    assert shape_of("FusedMatMulActivation", floats(A, 3), floats(B, 3), transB=1, activation="Relu") == (A, B)
    assert shape_of("FusedGemm", floats(A, 3), floats(B, 3), transB=1) == (A, B)


def test_fused_convolution_is_as_the_plain_one() -> None:
    """What is added before the activation changes no shape."""
    assert shape_of("FusedConv", floats(A, 3, 8, 8), floats(4, 3, 3, 3), None, floats(A, 4, 6, 6)) == (A, 4, 6, 6)


def test_types_of_quantized_products() -> None:
    """Scales give the float type, integer products are int32."""
    integers = tensor(DataType.INT8, (4, 5))
    assert shape_of("DynamicQuantizeMatMul", floats(A, 4), integers, floats()) == (A, 5)
    assert dtype_of("MatMulIntegerToFloat", BYTE, integers, floats(), floats(), domain=MICROSOFT) is DataType.FLOAT
    words = tensor(DataType.INT16, (4, 4))
    assert dtype_of("MatMulInteger16", words, words, domain=MICROSOFT) is DataType.INT32
