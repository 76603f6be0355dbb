"""Facts about element-wise operators of com.microsoft."""

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


def test_shape_is_that_of_the_first_input() -> None:
    """Biases, gates and scales change no shape."""
    assert shape_of("BiasGelu", floats(A, 3), floats(3)) == (A, 3)
    assert shape_of("FastGelu", floats(A, 3)) == (A, 3)
    assert shape_of("BiasAdd", floats(A, 4), floats(4), floats(A, 4)) == (A, 4)
    assert shape_of("GatedAdd", floats(A, 4), floats(A, 4), floats(A, 1)) == (A, 4)


def test_bias_shows_how_long_the_last_axis_is() -> None:
    """Where the input does not say it."""
    assert shape_of("FastGelu", floats(A, B), floats(4)) == (A, 4)


def test_split_gelu_halves_the_last_axis() -> None:
    """One half gates the other."""
    assert shape_of("BiasSplitGelu", floats(A, 8), floats(8)) == (A, 4)


def test_gate_of_linear_attention_has_two_parts() -> None:
    """Decay is as the first input, rate as the last."""
    facts = infer_op("LinearAttentionGate", floats(A, B, 4), floats(4), floats(4), floats(A, B, 1), domain=MICROSOFT, outputs=2)
    assert [fact.shape for fact in facts] == [(A, B, 4), (A, B, 1)]
