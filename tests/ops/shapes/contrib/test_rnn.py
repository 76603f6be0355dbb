"""Facts about recurrent networks of com.microsoft."""

from __future__ import annotations

from typing import Any

from support.infer_op import A, B, floats, infer_op, infer_shape

from sardonyx.dtypes import DataType
from sardonyx.ir import Shape
from sardonyx.ops.fact import Fact, tensor

BYTE = tensor(DataType.UINT8, (A, 4))
POINT = tensor(DataType.UINT8, ())
MICROSOFT = "com.microsoft"


def shape_of(op_type: str, *inputs: Fact | None, **attributes: Any) -> Shape | None:
    return infer_shape(op_type, *inputs, domain=MICROSOFT, **attributes)


def test_weights_are_transposed() -> None:
    """R is (directions, H, 4 H), so the second dimension is the size."""
    weights, recurrence = tensor(DataType.INT8, (1, 8, 64)), tensor(DataType.INT8, (1, 16, 64))
    facts = infer_op("DynamicQuantizeLSTM", floats(A, B, 8), weights, recurrence, domain=MICROSOFT, outputs=3)
    assert [fact.shape for fact in facts] == [(A, 1, B, 16), (1, B, 16), (1, B, 16)]
