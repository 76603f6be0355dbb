"""Activations whose limits or parameters depend on the version."""

import math
from typing import NamedTuple, Self

from sardonyx.ir import Operator

__all__ = ["LARGEST_FLOAT", "Clip", "Selu", "has_one_slope_vector"]

LARGEST_FLOAT = 3.4028234663852886e38
"""The limit that stands for one that is left out, of float32."""


class Clip(NamedTuple):
    """Elements kept between two limits."""

    limits: tuple[float, float] | None
    """The limits that attributes give before opset 11; None from then on, when they are inputs 1 and 2.

    One that is left out is the greatest finite float32, before opset 6 infinity.
    """
    has_limits: bool
    """Whether the node gives a limit as an attribute."""

    @classmethod
    def of(cls, node: Operator) -> Self:
        """Read a node."""
        least, most = node.number("min"), node.number("max")
        if node.version >= 11:
            return cls(None, False)
        limit = math.inf if node.version < 6 else LARGEST_FLOAT
        limits = (-limit if least is None else least, limit if most is None else most)
        return cls(limits, least is not None or most is not None)


class Selu(NamedTuple):
    """gamma * x where x > 0, else gamma * (alpha * exp(x) - alpha)."""

    alpha: float
    """The scale of the negative side."""
    gamma: float
    """The scale of both; rounded to four places, as alpha is, before opset 6."""

    @classmethod
    def of(cls, node: Operator) -> Self:
        """Read a node."""
        alpha, gamma = (1.67326319217681884765625, 1.05070102214813232421875) if node.version >= 6 else (1.6732, 1.0507)
        return cls(node.number("alpha", alpha), node.number("gamma", gamma))


def has_one_slope_vector(node: Operator) -> bool:
    """Return whether a PRelu has one slope for all or one for each channel, as before opset 7, rather than one that broadcasts."""
    return node.version < 7
