"""The view of GridSample."""

from __future__ import annotations

from typing import NamedTuple, Self

from sardonyx.errors import InvalidGraph
from sardonyx.ir import Operator

__all__ = ["GridSample"]

_MODES = {"bilinear": "linear", "bicubic": "cubic", "linear": "linear", "cubic": "cubic", "nearest": "nearest"}
_PADDINGS = ("border", "reflection", "zeros")


class GridSample(NamedTuple):
    """Samples of images at given positions."""

    mode: str
    """How neighbours are weighed: nearest, linear or cubic, whatever the version calls it."""
    padding: str
    """What lies beyond the image: zeros, border or reflection."""
    align_corners: bool
    """Whether -1 and 1 are the centres of the outer elements, or their edges."""

    @classmethod
    def of(cls, node: Operator) -> Self:
        """Read a node; raises InvalidGraph for an unknown mode or padding."""
        mode, padding = node.text("mode", "linear"), node.text("padding_mode", "zeros")
        if mode not in _MODES:
            raise InvalidGraph(f"mode={mode!r}, expected one of {', '.join(sorted(_MODES))}")
        if padding not in _PADDINGS:
            raise InvalidGraph(f"padding_mode={padding!r}, expected one of {', '.join(_PADDINGS)}")
        return cls(_MODES[mode], padding, bool(node.integer("align_corners", 0)))
