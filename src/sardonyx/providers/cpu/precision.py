"""How precise products of float32 models are, by the names that PyTorch has for it."""

from __future__ import annotations

from sardonyx.values.named import NamedEnum

__all__ = ["PRECISIONS", "Precision"]


class Precision(NamedEnum):
    """What operands of products may be rounded to."""

    HIGHEST = 0
    """Nothing below float32."""
    HIGH = 1
    """As precise as three products of bfloat16: here float32, which is as fast."""
    MEDIUM = 2
    """bfloat16, with sums in float32."""


PRECISIONS = {kind.name.lower(): kind for kind in Precision}
"""Text of the option -> precision."""
