"""How many places a sliding window has: the arithmetic of convolution and pooling."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from sardonyx.errors import InvalidGraph
from sardonyx.ir import Dim, Shape
from sardonyx.ir.shape import ceil_div, minimum

__all__ = ["Window", "slide", "slide_back"]


@dataclasses.dataclass(frozen=True, slots=True)
class Window:
    """A sliding window over the spatial axes, as the attributes of Conv and the pools describe it."""

    kernel: Shape
    """The size along each spatial axis."""
    strides: tuple[int, ...]
    """The step along each axis."""
    dilations: tuple[int, ...]
    """The distance between the window's elements along each axis."""
    pads: tuple[int, ...]
    """Padding at the begins, then at the ends of the axes."""
    auto_pad: str = "NOTSET"
    """NOTSET, VALID, SAME_UPPER or SAME_LOWER."""
    ceil_mode: bool = False
    """Whether a window may hang over the end, as long as it begins before the padding there."""

    @staticmethod
    def of(
        kernel: Shape,
        strides: Sequence[int] | None,
        dilations: Sequence[int] | None,
        pads: Sequence[int] | None,
        auto_pad: str = "NOTSET",
        ceil_mode: int = 0,
    ) -> Window:
        """Make a window with the defaults filled in; raises InvalidGraph for lists of the wrong length or a step below 1."""
        count = len(kernel)
        found = Window(
            kernel,
            tuple(strides) if strides else (1,) * count,
            tuple(dilations) if dilations else (1,) * count,
            tuple(pads) if pads else (0,) * (2 * count),
            auto_pad,
            bool(ceil_mode),
        )
        lists = (("strides", found.strides, count), ("dilations", found.dilations, count), ("pads", found.pads, 2 * count))
        for name, items, expected in lists:
            if len(items) != expected:
                raise InvalidGraph(f"{name}={list(items)} has {len(items)} elements, expected {expected} for {count} spatial axes")
            if name != "pads" and min(items, default=1) < 1:
                raise InvalidGraph(f"{name}={list(items)} has an element below 1")
        return found


def slide(window: Window, sizes: Shape) -> Shape:
    """The output's spatial sizes for an input of spatial `sizes`."""
    return tuple([_slide(window, axis, dim) for axis, dim in enumerate(sizes)])


def _slide(window: Window, axis: int, dim: Dim) -> Dim:
    stride = window.strides[axis]
    if window.auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        return ceil_div(dim, stride)
    begin, end = (0, 0) if window.auto_pad == "VALID" else (window.pads[axis], window.pads[axis + len(window.kernel)])
    reach = (window.kernel[axis] - 1) * window.dilations[axis] + 1
    room = dim + begin + end - reach
    if dim == 0:
        return 0
    if isinstance(room, int) and room < 0:
        raise InvalidGraph(
            f"a window of {reach} does not fit in the {dim} elements of spatial axis {axis} with padding {begin} and {end}"
        )
    if not window.ceil_mode:
        return room // stride + 1
    return minimum(ceil_div(room, stride) + 1, ceil_div(dim + begin, stride))


def slide_back(window: Window, sizes: Shape, output_padding: Sequence[int]) -> Shape:
    """The spatial sizes of an output over which the window would slide to make `sizes`: those of ConvTranspose."""
    result: list[Dim] = []
    count = len(window.kernel)
    for axis, dim in enumerate(sizes):
        stride = window.strides[axis]
        if window.auto_pad in ("SAME_UPPER", "SAME_LOWER"):
            result.append(dim * stride)
            continue
        pads = 0 if window.auto_pad == "VALID" else window.pads[axis] + window.pads[axis + count]
        reach = (window.kernel[axis] - 1) * window.dilations[axis] + 1
        result.append((dim - 1) * stride + output_padding[axis] + reach - pads)
    return tuple(result)
