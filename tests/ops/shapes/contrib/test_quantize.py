"""Facts about quantized look-up of com.microsoft."""

from __future__ import annotations

from typing import Any

from support.infer_op import A, B, infer_op, infer_shape

from sardonyx.dtypes import DataType
from sardonyx.ir import Shape
from sardonyx.ops.fact import Fact, tensor

BYTE = tensor(DataType.UINT8, (A, 4))
POINT = tensor(DataType.UINT8, ())
MICROSOFT = "com.microsoft"


def shape_of(op_type: str, *inputs: Fact | None, **attributes: Any) -> Shape | None:
    return infer_shape(op_type, *inputs, domain=MICROSOFT, **attributes)


def test_gather_of_packed_blocks() -> None:
    """Two 4-bit elements in a byte make the last axis twice as long."""
    data, scales = tensor(DataType.UINT8, (1000, 32)), tensor(DataType.FLOAT16, (1000, 2))
    (fact,) = infer_op("GatherBlockQuantized", data, tensor(DataType.INT64, (A, B)), scales, domain=MICROSOFT)
    assert (fact.dtype, fact.shape) == (DataType.FLOAT16, (A, B, 64))
    nibbles = tensor(DataType.INT4, (1000, 32))
    assert shape_of("GatherBlockQuantized", nibbles, tensor(DataType.INT64, (A,)), scales) == (A, 32)


def test_gather_of_ggml_rows() -> None:
    """Each index becomes K weights, of bfloat16 where no type is said."""
    data, indices = tensor(DataType.UINT8, (1000, 36)), tensor(DataType.INT64, (A, B))
    (fact,) = infer_op("GatherPacked", data, indices, packed_type=2, K=64, domain=MICROSOFT)
    assert (fact.dtype, fact.shape) == (DataType.BFLOAT16, (A, B, 64))
    (fact,) = infer_op("GatherPacked", data, indices, packed_type=2, K=64, output_dtype=1, domain=MICROSOFT)
    assert fact.dtype is DataType.FLOAT
