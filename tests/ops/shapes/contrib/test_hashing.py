"""Facts about hashes of n-grams."""

from __future__ import annotations

from typing import Any

import pytest
from support.infer_op import A, B, infer_op

from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidGraph
from sardonyx.ir import Dim
from sardonyx.ops.fact import Fact, tensor

HEADS: dict[str, Any] = {"max_ngram_size": 3, "n_head_per_ngram": 4, "pad_id": 0}


def ids(*shape: Dim) -> Fact:
    return tensor(DataType.INT32, shape)


def infer(op_type: str, *inputs: Fact | None, outputs: int, **attributes: Any) -> list[Fact]:
    return list(infer_op(op_type, *inputs, outputs=outputs, domain="com.microsoft", **{**HEADS, **attributes}))


def test_each_token_has_a_hash_for_each_head() -> None:
    """The ids to carry on are as many as a window reaches back."""
    facts = infer("NGramHashMapping", ids(A, B), ids(3), ids(8), outputs=2)
    assert [fact.shape for fact in facts] == [(A, B, 8), (A, 2)]
    assert {fact.dtype for fact in facts} == {DataType.INT32}


def test_packed_sequences_are_one_less_than_their_bounds() -> None:
    """Ids, segments and captured states are listed by sequence."""
    facts = infer("VarlenNGramHashMapping", ids(A), ids(3), ids(8), ids(6), outputs=4, state_update_capacity=3)
    assert [fact.shape for fact in facts] == [(A, 8), (5, 2), (5, 2), (5, 3, 2)]


def test_ids_of_another_rank_are_refused() -> None:
    """Packed ones have one axis, others two."""
    with pytest.raises(InvalidGraph, match="expected rank 2"):
        infer("NGramHashMapping", ids(A), ids(3), ids(8), outputs=1)
    with pytest.raises(InvalidGraph, match="expected rank 1"):
        infer("VarlenNGramHashMapping", ids(A, B), ids(3), ids(8), ids(6), outputs=1)


def test_sizes_that_no_attribute_gives_are_open() -> None:
    """A run refuses the node."""
    shape = infer("NGramHashMapping", ids(A, B), ids(3), ids(8), outputs=1, max_ngram_size=1)[0].shape
    assert shape is not None
    assert not isinstance(shape[2], int)
