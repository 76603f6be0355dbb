"""Facts about the gated delta network."""

from __future__ import annotations

from typing import Any

import pytest
from support.infer_op import A, B, floats, infer_op

from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidGraph
from sardonyx.ops.fact import Fact, tensor

BOUNDS = tensor(DataType.INT32, (4,))


def infer(*inputs: Fact | None, **attributes: Any) -> list[Fact]:
    return list(infer_op("GatedDeltaNet", *inputs, outputs=3, domain="com.microsoft", **attributes))


def test_the_output_has_a_value_for_each_token() -> None:
    """States are in float whatever the tokens are; nothing is captured without slots."""
    query, value = tensor(DataType.FLOAT16, (A, 2, 8)), tensor(DataType.FLOAT16, (A, 4, 6))
    facts = infer(query, query, value, BOUNDS)
    assert [fact.shape for fact in facts] == [(A, 4, 6), (3, 4, 6, 8), (3, 0)]
    assert [fact.dtype for fact in facts] == [DataType.FLOAT16, DataType.FLOAT, DataType.FLOAT]


def test_tokens_in_two_axes_say_how_many_sequences_there_are() -> None:
    """The output has both axes."""
    facts = infer(floats(A, B, 2, 8), floats(A, B, 2, 8), floats(A, B, 4, 6))
    assert [fact.shape for fact in facts] == [(A, B, 4, 6), (A, 4, 6, 8), (A, 0)]


def test_a_query_that_holds_all_has_the_sizes_of_the_state() -> None:
    """It has one axis of features."""
    facts = infer(floats(A, 56), None, None, None, None, None, floats(B, 4, 6, 8))
    assert [fact.shape for fact in facts] == [(A, 4, 6), (B, 4, 6, 8), (B, 0)]


def test_the_size_of_captured_steps_is_open() -> None:
    """It depends on the decay."""
    shape = infer(floats(A, 2, 8), floats(A, 2, 8), floats(A, 4, 6), BOUNDS, state_update_capacity=2)[2].shape
    assert shape is not None
    assert not isinstance(shape[1], int)


def test_inputs_of_another_rank_are_refused() -> None:
    """By their names."""
    with pytest.raises(InvalidGraph, match="value has shape"):
        infer(floats(A, 2, 8), floats(A, 2, 8), floats(A, 4))
    with pytest.raises(InvalidGraph, match="initial_state has shape"):
        infer(floats(A, 2, 8), floats(A, 2, 8), floats(A, 4, 6), None, None, None, floats(B, 4, 6))
