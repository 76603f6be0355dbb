"""Facts about attention of com.microsoft."""

from __future__ import annotations

from support.infer_op import A, B, floats, infer_op, ints, plain

from sardonyx.dtypes import DataType
from sardonyx.ir import symbol
from sardonyx.ops.fact import tensor

MICROSOFT = "com.microsoft"
PAST = symbol("past")


def test_group_query_attention_caches_up_to_the_total_length() -> None:
    """The cache is as long as the longer of past and total length."""
    q, kv, past = floats(A, B, 512), floats(A, B, 128), floats(A, 2, PAST, 64)
    total = ints(PAST + B)
    facts = infer_op(
        "GroupQueryAttention", q, kv, kv, past, past, ints(0), total, domain=MICROSOFT, outputs=3, num_heads=8, kv_num_heads=2
    )
    assert [fact.shape for fact in facts[:3]] == [(A, B, 512), (A, 2, PAST + B, 64), (A, 2, PAST + B, 64)]


def test_packed_queries_hold_keys_and_values() -> None:
    """Without keys the queries hold all three."""
    inputs = (floats(A, B, 768), None, None, None, None, ints(0), ints(4))
    facts = infer_op("GroupQueryAttention", *inputs, domain=MICROSOFT, num_heads=8, kv_num_heads=2)
    assert plain(facts[0]) == (A, B, 512)


def test_multi_head_attention() -> None:
    """Keys may come with their heads apart or packed."""
    q, past = floats(A, B, 512), floats(A, 8, PAST, 64)
    facts = infer_op(
        "MultiHeadAttention", q, q, floats(A, B, 256), None, None, None, past, past, domain=MICROSOFT, outputs=3, num_heads=8
    )
    assert [fact.shape for fact in facts[:3]] == [(A, B, 256), (A, 8, PAST + B, 64), (A, 8, PAST + B, 32)]
    shared = infer_op(
        "MultiHeadAttention", q, q, q, None, None, None, past, past, ints(1), domain=MICROSOFT, outputs=3, num_heads=8
    )
    assert plain(shared[1]) == plain(past)
    assert plain(infer_op("MultiHeadAttention", floats(A, B, 8, 3, 64), domain=MICROSOFT, num_heads=8)[0]) == (A, B, 512)


def test_attention_with_packed_weights() -> None:
    """A third of the weights' columns are values."""
    facts = infer_op("Attention", floats(A, B, 768), floats(768, 2304), domain=MICROSOFT, outputs=2, num_heads=12)
    assert [fact.shape for fact in facts] == [(A, B, 768), (2, A, 12, B, 64)]
    byte = tensor(DataType.UINT8, (A, B, 768))
    (fact,) = infer_op(
        "QAttention", byte, tensor(DataType.INT8, (768, 2304)), floats(2304), floats(), floats(), domain=MICROSOFT, num_heads=12
    )[:1]
    assert (fact.dtype, fact.shape) == (DataType.FLOAT, (A, B, 768))


def test_one_token_grows_its_caches() -> None:
    """A past grows by one, a shared buffer not at all; an encoder's keys are the cache."""
    q, past = floats(A, 1, 512), floats(A, 8, PAST, 64)
    name = "DecoderMaskedMultiHeadAttention"
    facts = infer_op(name, q, q, q, None, None, past, past, domain=MICROSOFT, outputs=4, num_heads=8)
    assert [fact.shape for fact in facts] == [(A, 1, 512), (A, 8, PAST + 1, 64), (A, 8, PAST + 1, 64), (A, 8, 1, PAST + 1)]
    facts = infer_op(name, q, q, q, None, None, past, past, domain=MICROSOFT, outputs=3, num_heads=8, past_present_share_buffer=1)
    assert facts[1].shape == (A, 8, PAST, 64)
    facts = infer_op(name, q, past, past, domain=MICROSOFT, outputs=3, num_heads=8)
    assert [fact.shape for fact in facts] == [(A, 1, 512), (A, 8, PAST, 64), (A, 8, PAST, 64)]


def test_one_token_of_self_attention() -> None:
    """Past and present stack keys and values."""
    inputs = (floats(A, 1, 768), floats(768, 2304), floats(2304), None, floats(2, A, 12, PAST, 64))
    facts = infer_op("DecoderMaskedSelfAttention", *inputs, domain=MICROSOFT, outputs=2, num_heads=12)
    assert [fact.shape for fact in facts] == [(A, 1, 768), (2, A, 12, PAST + 1, 64)]


def test_sparse_and_paged_attention_keep_their_caches() -> None:
    """Caches have the shape that they came with."""
    q, kv, cache = floats(A, B, 512), floats(A, B, 128), floats(A, 2, PAST, 64)
    facts = infer_op("SparseAttention", q, kv, kv, cache, cache, domain=MICROSOFT, outputs=3, num_heads=8, kv_num_heads=2)
    assert [fact.shape for fact in facts] == [(A, B, 512), cache.shape, cache.shape]
    pages = floats(16, 32, 2, 64)
    facts = infer_op(
        "PagedAttention", floats(B, 768), None, None, pages, pages, domain=MICROSOFT, outputs=3, num_heads=8, kv_num_heads=2
    )
    assert [fact.shape for fact in facts] == [(B, 512), pages.shape, pages.shape]


def test_rotation_keeps_the_shape() -> None:
    """Positions change no shape."""
    (fact,) = infer_op("MRotaryEmbedding", floats(A, B, 512), domain=MICROSOFT)
    assert fact.shape == (A, B, 512)
