"""Facts about quantized operators of com.microsoft."""

from __future__ import annotations

from typing import Any

from support.infer_op import A, dtype_of, floats, infer_op, infer_shape

from sardonyx.dtypes import DataType
from sardonyx.ir import Shape
from sardonyx.ops.fact import Fact, tensor

BYTE = tensor(DataType.UINT8, (A, 4))
POINT = tensor(DataType.UINT8, ())
MICROSOFT = "com.microsoft"


def shape_of(op_type: str, *inputs: Fact | None, **attributes: Any) -> Shape | None:
    return infer_shape(op_type, *inputs, domain=MICROSOFT, **attributes)


def test_quantized_gemm_may_give_floats() -> None:
    """Without a scale for the output the product stays float."""
    gemm = (BYTE, floats(), POINT, tensor(DataType.UINT8, (4, 5)), floats(), POINT)
    assert infer_op("QGemm", *gemm, domain=MICROSOFT)[0] == floats(A, 5)
    assert dtype_of("QGemm", *gemm, None, floats(), POINT, domain=MICROSOFT) is DataType.UINT8


def test_quantized_element_wise() -> None:
    """Inputs are broadcast across their scales and zero points."""
    assert shape_of("QLinearAdd", BYTE, floats(), POINT, tensor(DataType.UINT8, (4,)), floats(), POINT, floats(), POINT) == (A, 4)
    assert shape_of("QLinearSigmoid", BYTE, floats(), POINT, floats(), POINT) == (A, 4)
    assert shape_of("QLinearConcat", floats(), POINT, BYTE, floats(), POINT, BYTE, floats(), POINT, axis=1) == (A, 8)
    condition = tensor(DataType.BOOL, (1, 4))
    assert shape_of("QLinearWhere", condition, BYTE, floats(), POINT, POINT, floats(), POINT, floats(), POINT) == (A, 4)


def test_channels_may_be_last() -> None:
    """channels_last moves the channels to the end, of convolutions as of pools."""
    first, last = tensor(DataType.UINT8, (A, 3, 8, 8)), tensor(DataType.UINT8, (A, 8, 8, 3))
    scales = (floats(), POINT, floats(), POINT)
    assert shape_of("QLinearGlobalAveragePool", first, *scales) == (A, 3, 1, 1)
    assert shape_of("QLinearGlobalAveragePool", last, *scales, channels_last=1) == (A, 1, 1, 3)
    assert shape_of("QLinearAveragePool", last, *scales, kernel_shape=(2, 2), channels_last=1) == (A, 7, 7, 3)
    weights = tensor(DataType.UINT8, (4, 3, 3, 3))
    inputs = (floats(), POINT, weights, floats(), POINT, floats(), POINT)
    assert shape_of("QLinearConv", first, *inputs) == (A, 4, 6, 6)
    assert shape_of("QLinearConv", last, *inputs, channels_last=1) == (A, 6, 6, 4)
