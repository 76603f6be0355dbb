"""Views of attention."""

from __future__ import annotations

import pytest
from support.view_node import node

from sardonyx.ops.views.attention import Attention, MicrosoftAttention, RotaryEmbedding


def test_an_attention_scales_by_the_size_of_its_heads() -> None:
    """By default; nothing is capped or hidden, and heads are those of the shapes."""
    assert Attention.of(node("Attention", 23)) == Attention(None, None, None, False, 0.0, None, takes_short_masks=False)


@pytest.mark.parametrize(("version", "expected"), [(23, False), (24, True)])
def test_masks_may_be_short_since_24(version: int, expected: bool) -> None:
    """Before, they are for every key."""
    assert Attention.of(node("Attention", version)).takes_short_masks is expected


@pytest.mark.parametrize(("precision", "expected"), [(0, True), (1, True), (10, False), (11, False)])
def test_the_softmax_may_be_in_float32(precision: int, expected: bool) -> None:
    """Where it is left open, or float32 is asked for."""
    assert Attention.of(node("Attention", 23, softmax_precision=precision)).is_in_float is expected


def test_an_attention_of_com_microsoft_hides_keys_by_a_number() -> None:
    """-10000 by default; a scale of 0 stands for the default one, and keys have the heads of the queries."""
    view = MicrosoftAttention.of(node("MultiHeadAttention", 1, domain="com.microsoft", num_heads=8, scale=0.0))
    assert view == MicrosoftAttention(8, 8, None, is_causal=False, fill=-10000.0)
    assert MicrosoftAttention.of(node("GroupQueryAttention", 1, num_heads=8, kv_num_heads=2)).key_heads == 2


def test_a_rotary_embedding_turns_halves_of_whole_heads() -> None:
    """By default."""
    assert RotaryEmbedding.of(node("RotaryEmbedding", 23)) == RotaryEmbedding(0, 0, is_interleaved=False)
