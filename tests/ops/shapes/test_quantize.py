"""Facts about quantization."""

from __future__ import annotations

import pytest
from support.infer_op import A, dtype_of, floats, infer_op, infer_shape

from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidGraph
from sardonyx.ir.text import parse_model
from sardonyx.ops.fact import tensor
from sardonyx.ops.infer import infer_graph


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


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "double", "float"])
def test_dynamic_scales_have_the_declared_type(kind: str) -> None:
    """The input's, where the model says so."""
    text = f"opset 21 graph(x: {kind}[4]) -> (y: uint8[4], s: {kind}[], z: uint8[]) {{ y, s, z = DynamicQuantizeLinear(x) }}"
    model = parse_model(text)
    infer_graph(model)
    declared = {"float16": DataType.FLOAT16, "bfloat16": DataType.BFLOAT16, "double": DataType.DOUBLE, "float": DataType.FLOAT}
    assert model.graph.outputs[1].dtype is declared[kind]


def test_dynamic_scales_of_a_third_type_are_refused() -> None:
    """Neither float32 nor the input's."""
    text = "opset 21 graph(x: float[4]) -> (y: uint8[4], s: float16[], z: uint8[]) { y, s, z = DynamicQuantizeLinear(x) }"
    with pytest.raises(InvalidGraph, match="declared as"):
        infer_graph(parse_model(text))
