"""Facts about mixtures of experts."""

from __future__ import annotations

from typing import Any

from support.infer_op import A, B, floats, infer_shape

from sardonyx.dtypes import DataType
from sardonyx.ir import Shape
from sardonyx.ops.fact import Fact, tensor

BYTE = tensor(DataType.UINT8, (A, 4))
POINT = tensor(DataType.UINT8, ())
MICROSOFT = "com.microsoft"


def shape_of(op_type: str, *inputs: Fact | None, **attributes: Any) -> Shape | None:
    return infer_shape(op_type, *inputs, domain=MICROSOFT, **attributes)


def test_shape_is_kept() -> None:
    """Tokens come back in shape, whatever expert they went through."""
    assert shape_of("MoE", floats(A, B, 8), floats(A, 4), floats(4, 16, 8), None, floats(4, 8, 16)) == (A, B, 8)
