"""How many places a sliding window has: the arithmetic of convolution and pooling."""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.errors import InvalidGraph
from sardonyx.ir import Dim, Shape
from sardonyx.ir.shape import ceil_div, minimum
from sardonyx.ops.views.window import Window

__all__ = ["slide", "slide_back"]


def slide(window: Window[Dim], sizes: Shape) -> Shape:
    """Return the output's spatial sizes for an input of spatial `sizes`.

    An axis without elements has the places that the standard's formula gives, all of them in the padding; 0 or more.
    """
    return tuple([_slide(window, axis, dim) for axis, dim in enumerate(sizes)])


def _slide(window: Window[Dim], axis: int, dim: Dim) -> Dim:
    stride = window.strides[axis]
    if window.is_same:
        return ceil_div(dim, stride)
    begin, end = (0, 0) if window.auto_pad == "VALID" else (window.pads[axis], window.pads[axis + len(window.kernel)])
    reach = (window.kernel[axis] - 1) * window.dilations[axis] + 1
    room = dim + begin + end - reach
    places = room // stride + 1
    if window.ceil_mode:
        places = minimum(ceil_div(room, stride) + 1, ceil_div(dim + begin, stride))
    if isinstance(room, int) and isinstance(places, int) and room < 0 and places < (1 if dim else 0):
        raise InvalidGraph(
            f"a window of {reach} does not fit in the {dim} elements of spatial axis {axis} with padding {begin} and {end}"
        )
    return places


def slide_back(window: Window[Dim], sizes: Shape, output_padding: Sequence[int]) -> Shape:
    """Return the spatial sizes of an output over which the window would slide to make `sizes`: those of ConvTranspose."""
    result: list[Dim] = []
    count = len(window.kernel)
    for axis, dim in enumerate(sizes):
        stride = window.strides[axis]
        if window.is_same:
            result.append(dim * stride)
            continue
        pads = 0 if window.auto_pad == "VALID" else window.pads[axis] + window.pads[axis + count]
        reach = (window.kernel[axis] - 1) * window.dilations[axis] + 1
        result.append((dim - 1) * stride + output_padding[axis] + reach - pads)
    return tuple(result)
