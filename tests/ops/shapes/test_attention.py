"""Facts about attention."""

from __future__ import annotations

from support.infer_op import UNKNOWN_DIM, A, B, error_of, floats, infer_op, infer_shape, plain

from sardonyx.dtypes import DataType
from sardonyx.ir import symbol
from sardonyx.ops.fact import UNKNOWN, tensor

PAST = symbol("past")


def test_attention_of_rank_4() -> None:
    """Keys grow by the past, and scores have a row for each query."""
    q, kv, past = floats(A, 8, B, 64), floats(A, 2, B, 64), floats(A, 2, PAST, 64)
    facts = infer_op("Attention", q, kv, kv, None, past, past, outputs=4)
    total = PAST + B
    assert [fact.shape for fact in facts] == [(A, 8, B, 64), (A, 2, total, 64), (A, 2, total, 64), (A, 8, B, total)]


def test_attention_of_rank_3_packs_heads() -> None:
    """With rank 3 the heads are packed in the last axis, of the output too."""
    facts = infer_op("Attention", floats(A, B, 512), floats(A, B, 128), floats(A, B, 64), outputs=2, q_num_heads=8, kv_num_heads=2)
    assert [fact.shape for fact in facts[:2]] == [(A, B, 256), (A, 2, B, 64)]
    assert infer_shape("Attention", tensor(DataType.FLOAT), floats(1, 2, 3, 4), UNKNOWN) == (UNKNOWN_DIM,) * 4
    assert "Q has shape [2, 3]" in error_of("Attention", floats(2, 3), floats(1, 2, 3, 4), floats(1, 2, 3, 4))


def test_attention_of_no_known_rank() -> None:
    """Its output may have three dimensions or four."""
    assert infer_shape("Attention", UNKNOWN, UNKNOWN, UNKNOWN, q_num_heads=2, kv_num_heads=2) is None


def test_flex_attention_has_the_size_of_the_values() -> None:
    """The head size of the values is that of the output."""
    fact = infer_op("FlexAttention", floats(A, 4, B, 8), floats(A, 4, 9, 8), floats(A, 4, 9, 16), domain="ai.onnx.preview")[0]
    assert plain(fact) == (A, 4, B, 16)


def test_rotary_embedding_keeps_the_shape() -> None:
    """A rotation changes no shape, in either domain."""
    assert infer_shape("RotaryEmbedding", floats(A, 8, B, 64), floats(B, 32), floats(B, 32)) == (A, 8, B, 64)
    assert infer_shape("RotaryEmbedding", floats(A, B, 64), floats(A, B), domain="com.microsoft") == (A, B, 64)


def test_linear_attention_gives_its_state() -> None:
    """The output has the values' size, the state keys by values."""
    facts = infer_op(
        "LinearAttention", floats(A, B, 64), floats(A, B, 32), floats(A, B, 16), outputs=2, q_num_heads=4, kv_num_heads=2
    )
    assert [fact.shape for fact in facts] == [(A, B, 32), (A, 2, 16, 8)]


def test_linear_attention_of_more_states_than_queries_has_their_heads() -> None:
    """As com.microsoft allows; a window of states has an axis of its own."""
    facts = infer_op(
        "LinearAttention",
        floats(A, B, 32),
        floats(A, B, 64),
        floats(A, B, 40),
        outputs=2,
        domain="com.microsoft",
        q_num_heads=2,
        kv_num_heads=4,
        state_window=3,
    )
    assert [fact.shape for fact in facts] == [(A, B, 40), (3, A, 4, 16, 10)]
