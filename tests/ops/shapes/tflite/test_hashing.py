"""Hashes of text and numbers, random bits."""

import pytest
from support.infer_op import infer_op

from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidGraph
from sardonyx.ops.fact import tensor

DOMAIN = "sardonyx.tflite"


def test_a_projection_has_a_number_for_each_function_or_bit() -> None:
    """Sparse, or dense."""
    given = [tensor(DataType.FLOAT, (3, 7)), tensor(DataType.FLOAT, (5,))]
    for is_sparse, count in ((1, 3), (0, 21)):
        [fact] = infer_op("LshProjection", *given, domain=DOMAIN, is_sparse=is_sparse)
        assert (fact.dtype, fact.shape) == (DataType.INT32, (count,))


def test_groups_of_words_are_as_many_as_a_run_shows() -> None:
    """On one axis."""
    [fact] = infer_op("SkipGram", tensor(DataType.STRING, (1,)), domain=DOMAIN, ngram_size=2, max_skip_size=0)
    assert fact.dtype is DataType.STRING
    assert fact.shape is not None
    assert len(fact.shape) == 1


def test_random_bits_have_the_shape_that_is_asked_for() -> None:
    """Behind the next state."""
    facts = infer_op(
        "RngBitGenerator", tensor(DataType.UINT64, (2,)), domain=DOMAIN, outputs=2, algorithm="PHILOX", shape=(3, 4), to=12
    )
    assert [(fact.dtype, fact.shape) for fact in facts] == [(DataType.UINT64, (2,)), (DataType.UINT32, (3, 4))]


def test_bits_of_no_type_are_refused() -> None:
    """Numbers that TensorProto.DataType does not have."""
    state = tensor(DataType.UINT64, (2,))
    with pytest.raises(InvalidGraph, match="'to' is -2"):
        infer_op("RngBitGenerator", state, domain=DOMAIN, outputs=2, algorithm="PHILOX", shape=(3, 4), to=-2)
