"""Facts about mixtures of experts."""

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


def test_shape_is_kept() -> None:
    """Tokens come back in shape, whatever expert they went through."""
    assert shape_of("MoE", floats(A, B, 8), floats(A, 4), floats(4, 16, 8), None, floats(4, 8, 16)) == (A, B, 8)


def test_a_router_has_a_row_for_each_token() -> None:
    """Leading axes of the logits are merged; full scores are in float."""
    half = tensor(DataType.FLOAT16, (2, B, 16))
    facts = infer_op("MoEGroupRouter", half, floats(16), outputs=3, domain=MICROSOFT, top_k=2)
    assert [fact.shape for fact in facts] == [(2 * B, 16)] * 3
    assert [fact.dtype for fact in facts] == [DataType.FLOAT16, DataType.FLOAT, DataType.FLOAT]


def test_a_router_that_projects_has_the_experts_of_its_weights() -> None:
    """The tokens' last size is that of their features; what is unknown stays so."""
    facts = infer_op("MoEGroupRouter", floats(A, 256), floats(8), floats(8, 256), outputs=3, domain=MICROSOFT, top_k=2)
    assert facts[1].shape == (A, 8)
    shape = infer_op("MoEGroupRouter", tensor(DataType.FLOAT), floats(8), domain=MICROSOFT, top_k=2)[0].shape
    assert shape is not None
    assert len(shape) == 2
