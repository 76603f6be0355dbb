"""Operators that pool regions of images."""

from __future__ import annotations

from typing import NamedTuple, Self

from sardonyx.errors import InvalidGraph
from sardonyx.ir import Operator

__all__ = ["MaxRoiPool", "RoiAlign"]


class RoiAlign(NamedTuple):
    """Cells of regions, pooled from bilinear samples."""

    takes_max: bool
    """Whether a cell is the greatest of its weighed neighbours, or the mean of its samples."""
    output: tuple[int, int]
    """Rows and columns of cells."""
    samples: int
    """Samples of a cell along each axis; 0 for as many as it has elements."""
    scale: float
    """From the coordinates of regions to elements."""
    is_shifted: bool
    """Whether elements' centres lie at halves; not so before opset 16."""

    @classmethod
    def of(cls, node: Operator) -> Self:
        """Read a node; raises InvalidGraph for an unknown mode, no cells, or a number of samples that cannot be."""
        mode, transformation = node.text("mode", "avg"), "output_half_pixel"
        if node.version >= 16:
            transformation = node.text("coordinate_transformation_mode", "half_pixel")
        if mode not in ("avg", "max") or transformation not in ("half_pixel", "output_half_pixel"):
            raise InvalidGraph(f"mode={mode!r} and coordinate_transformation_mode={transformation!r}, which there is not")
        output, samples = (node.integer("output_height", 1), node.integer("output_width", 1)), node.integer("sampling_ratio", 0)
        if min(output) < 1 or not 0 <= samples <= 1 << 20:
            raise InvalidGraph(f"an output of {output} with sampling_ratio={samples}, expected lengths from 1 and a ratio to 2^20")
        return cls(mode == "max", output, samples, node.number("spatial_scale", 1.0), transformation == "half_pixel")


class MaxRoiPool(NamedTuple):
    """The greatest elements of the cells of regions."""

    output: tuple[int, int]
    """Rows and columns of cells."""
    scale: float
    """From the coordinates of regions to elements."""

    @classmethod
    def of(cls, node: Operator) -> Self:
        """Read a node; raises InvalidGraph for a shape that is not two positive lengths."""
        shape = node.integers("pooled_shape") or ()
        if len(shape) != 2 or min(shape) < 1:
            raise InvalidGraph(f"pooled_shape={list(shape)}, expected two positive lengths")
        return cls((shape[0], shape[1]), node.number("spatial_scale", 1.0))
