"""What attention does to the scores of queries and keys, besides scaling them."""

from __future__ import annotations

import enum

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.values import Register
from sardonyx.codegen.float_words import float_word
from sardonyx.codegen.kernels.softmax import exp_of_difference
from sardonyx.lazy_dataclasses import dataclass

__all__ = ["AttentionShape", "Masking", "sum_with_sink"]


class Masking(enum.Enum):
    """What is added to the scores."""

    NONE = "none"
    """Nothing."""
    KEYS = "keys"
    """A number for each key, the same for all queries of a head."""
    FULL = "full"
    """A number for each pair, packed by `pack` into panels [S / width][T][width] of queries along the lanes."""


@dataclass(frozen=True, slots=True)
class AttentionShape:
    """What the code of a kernel depends on."""

    masking: Masking
    """What is added to the scores."""
    is_causal: bool = False
    """Whether query s sees the keys 0 to past + s only."""
    replaces: bool = False
    """Whether the mask is made of 0 and -inf, and -inf takes the place of a score, be it NaN, instead of being added."""
    softcap: float = 0.0
    """Where positive, scores become softcap * tanh(score / softcap) before the mask."""
    has_sink: bool = False
    """Whether the softmax of each head has one more score, whose value is zero."""
    in_pairs: bool = False
    """Whether products are of pairs of bfloat16."""

    @property
    def name(self) -> str:
        """It as a part of a symbol."""
        cap = f"cap{float_word(self.softcap):x}" if self.softcap > 0 else ""
        masking = self.masking.value + ("bool" if self.replaces else "")
        return "_".join(
            part for part in (masking, "causal" * self.is_causal, cap, "sink" * self.has_sink, "bf16x2" * self.in_pairs) if part
        )


def sum_with_sink(b: Function, total: Register, greatest: Register, sink: Register) -> Register:
    """Return l of queries with one more score, l + exp(sink - m); infinite for one that sees no key."""
    top = b.max(greatest, sink)
    return total + exp_of_difference(b, sink, top) / exp_of_difference(b, greatest, top)
