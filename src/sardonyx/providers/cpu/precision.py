"""How precise products of float32 models are, by the names that PyTorch has for it."""

from __future__ import annotations

from sardonyx.values.named import NamedEnum

__all__ = ["BFLOAT16", "BYTES", "FLOAT32", "PARTED", "PRECISIONS", "Precision", "with_weights"]


class Precision(NamedEnum):
    """What operands of products may be rounded to."""

    HIGHEST = 0
    """Nothing below float32."""
    HIGH = 1
    """As precise as three products of bfloat16, which are computed in matrix tiles; elsewhere float32, which is as fast."""
    MEDIUM = 2
    """bfloat16, with sums in float32."""


FLOAT32 = "float32"
BFLOAT16 = "bfloat16, sums in float32"
PARTED = "three products of bfloat16, sums in float32"
BYTES = "8-bit integers, sums in int32"
"""What operands of products are multiplied in, as reports say it."""


def with_weights(precision: str, weights: str) -> str:
    """Return a precision with what the weights are stored in, where they are decoded as they are multiplied."""
    return f"{precision}, weights in {weights}"


PRECISIONS = {kind.name.lower(): kind for kind in Precision}
"""Text of the option -> precision."""
