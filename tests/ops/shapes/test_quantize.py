"""Facts about quantization."""

from __future__ import annotations

from support.infer_op import A, dtype_of, floats, infer_op, infer_shape

from sardonyx.dtypes import DataType
from sardonyx.ops.fact import tensor


def test_type_of_quantized() -> None:
    """The zero point's type, else the attribute's, else uint8."""
    assert dtype_of("QuantizeLinear", floats(A, 3), floats(), tensor(DataType.INT8, ())) is DataType.INT8
    assert dtype_of("QuantizeLinear", floats(A, 3), floats(), output_dtype=int(DataType.INT4)) is DataType.INT4
    assert dtype_of("QuantizeLinear", floats(A, 3), floats()) is DataType.UINT8


def test_type_of_dequantized() -> None:
    """The scale's type, unless the attribute names another."""
    byte = tensor(DataType.INT8, (A, 3))
    assert dtype_of("DequantizeLinear", byte, tensor(DataType.FLOAT16, ())) is DataType.FLOAT16
    assert infer_shape("DequantizeLinear", byte, floats()) == (A, 3)


def test_dynamic_quantization_gives_scalars() -> None:
    """Scale and zero point are scalars."""
    facts = infer_op("DynamicQuantizeLinear", floats(A, 3), outputs=3)
    assert [fact.shape for fact in facts] == [(A, 3), (), ()]
    assert [fact.dtype for fact in facts] == [DataType.UINT8, DataType.FLOAT, DataType.UINT8]
