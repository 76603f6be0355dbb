"""Facts about operators of com.microsoft on tokens and characters."""

from __future__ import annotations

from support.infer_op import UNKNOWN_DIM, A, B, floats, infer_op, infer_shape

from sardonyx.dtypes import DataType
from sardonyx.ops.fact import tensor

TOKENS = tensor(DataType.INT64, (A,))
PLACE = tensor(DataType.INT64, (1,))


def test_an_echo_is_as_its_input() -> None:
    """SampleOp."""
    assert infer_shape("SampleOp", floats(A, 2), domain="com.microsoft") == (A, 2)


def test_predicted_tokens_make_the_length_open() -> None:
    """Without them the tokens stay as they are."""
    assert infer_shape("BifurcationDetector", TOKENS, TOKENS, PLACE, domain="com.microsoft") == (A,)
    assert infer_shape("BifurcationDetector", TOKENS, TOKENS, PLACE, TOKENS, domain="com.microsoft") == (UNKNOWN_DIM,)


def test_hashes_are_integers_of_32_bits() -> None:
    """Signed where they need not be positive."""
    for positive, dtype in ((1, DataType.UINT32), (0, DataType.INT32)):
        (found,) = infer_op("MurmurHash3", floats(A, B), domain="com.microsoft", positive=positive)
        assert (found.dtype, found.shape) == (dtype, (A, B))


def test_words_become_vectors() -> None:
    """As long as W has filters."""
    sequence = tensor(DataType.INT32, (A, 12))
    assert infer_shape("WordConvEmbedding", sequence, floats(7, 1, 3, 4), floats(7), floats(99, 4), domain="com.microsoft") == (
        A,
        7,
    )
