"""Facts about the convolution of packed sequences."""

from __future__ import annotations

import pytest
from support.infer_op import A, B, floats, infer_op

from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidGraph
from sardonyx.ops.fact import Fact, tensor

BOUNDS = tensor(DataType.INT32, (3,))


def convolve(x: Fact, state: Fact) -> list[Fact]:
    inputs = (x, floats(8, 1, 4), BOUNDS, None, state)
    return list(infer_op("VarlenCausalConvWithState", *inputs, outputs=3, domain="com.microsoft", state_update_capacity=2))


def test_a_convolution_keeps_tokens_and_state() -> None:
    """Captured tokens have as many slots as the attribute says."""
    assert [fact.shape for fact in convolve(floats(A, 8), floats(B, 8, 3))] == [(A, 8), (B, 8, 3), (B, 2, 8)]


def test_inputs_of_another_rank_are_refused() -> None:
    """Tokens have two axes, states three."""
    with pytest.raises(InvalidGraph, match="expected rank 2"):
        convolve(floats(1, A, 8), floats(B, 8, 3))
    with pytest.raises(InvalidGraph, match="expected rank 3"):
        convolve(floats(A, 8), floats(B, 8))
