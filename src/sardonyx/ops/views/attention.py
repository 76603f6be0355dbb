"""Attention and rotary embeddings, of ai.onnx and of com.microsoft."""

from typing import NamedTuple, Self

from sardonyx.ir import Operator

__all__ = ["Attention", "LinearAttention", "MicrosoftAttention", "RotaryEmbedding"]


class Attention(NamedTuple):
    """Attention of ai.onnx."""

    query_heads: int | None
    """How many heads queries that come as (B, S, H x D) have."""
    key_heads: int | None
    """How many heads keys and values that come as (B, T, H x D) have."""
    scale: float | None
    """The factor of the scores; None for 1 / sqrt(D)."""
    is_causal: bool
    """Whether a query sees the keys up to its own place only."""
    softcap: float
    """The limit that the scores tend to; 0 for none."""
    softmax_precision: int | None
    """The data type in which the softmax is computed; None where it is left open."""
    takes_short_masks: bool
    """Whether a mask may be for fewer keys than there are, of which the others are hidden: from opset 24 on."""

    @classmethod
    def of(cls, node: Operator) -> Self:
        """Read a node."""
        return cls(
            node.integer("q_num_heads"),
            node.integer("kv_num_heads"),
            node.number("scale"),
            node.flag("is_causal"),
            node.number("softcap", 0.0),
            node.integer("softmax_precision"),
            node.version >= 24,
        )

    @property
    def is_in_float(self) -> bool:
        """Whether the softmax may be computed in float32."""
        return self.softmax_precision in (None, 0, 1)


class MicrosoftAttention(NamedTuple):
    """Attention, MultiHeadAttention or GroupQueryAttention of com.microsoft."""

    heads: int
    """How many heads the queries have."""
    key_heads: int
    """How many heads keys and values have; those of the queries but for GroupQueryAttention."""
    scale: float | None
    """The factor of the scores; None, or 0 in a file, for 1 / sqrt(D)."""
    is_causal: bool
    """Whether a query sees the keys up to its own place only."""
    fill: float
    """What is added to the scores of hidden keys."""

    @classmethod
    def of(cls, node: Operator) -> Self:
        """Read a node."""
        heads = node.integer("num_heads", 0)
        return cls(
            heads,
            node.integer("kv_num_heads", heads),
            node.number("scale") or None,
            node.flag("unidirectional"),
            node.number("mask_filter_value", -10000.0),
        )


_UPDATE_RULES = {"linear": (False, False), "gated": (True, False), "delta": (False, True), "gated_delta": (True, True)}


class LinearAttention(NamedTuple):
    """A linear attention, of either domain."""

    N: int
    """How many query heads there are; 0 where it is not said."""
    M: int
    """How many states a batch has; 0 where it is not said."""
    scale: float
    """The factor of the outputs; 0 for 1 / sqrt(K)."""
    rule: str
    """How the state changes."""
    is_known: bool
    """Whether the standard has that rule."""
    decays: bool
    """Whether the state shrinks at each step."""
    corrects: bool
    """Whether what the state already returns for the key is taken off the value."""
    slots: int
    """How many of the last states are kept; 0 for the last one, without an axis of them."""

    @classmethod
    def of(cls, node: Operator) -> Self:
        """Read a node."""
        rule = node.text("update_rule", "gated_delta")
        return cls(
            node.integer("q_num_heads", 0),
            node.integer("kv_num_heads", 0),
            node.number("scale", 0.0),
            rule,
            rule in _UPDATE_RULES,
            *_UPDATE_RULES.get(rule, (False, False)),
            node.integer("state_window", 0),
        )


class RotaryEmbedding(NamedTuple):
    """A rotary embedding, of either domain."""

    heads: int
    """How many heads an input (B, S, H x D) has; 0 where its shape says it."""
    width: int
    """How many elements of each head are rotated; 0 for all."""
    is_interleaved: bool
    """Whether the elements of a pair lie next to each other, rather than in the halves of a head."""

    @classmethod
    def of(cls, node: Operator) -> Self:
        """Read a node."""
        return cls(node.integer("num_heads", 0), node.integer("rotary_embedding_dim", 0), node.flag("interleaved"))
