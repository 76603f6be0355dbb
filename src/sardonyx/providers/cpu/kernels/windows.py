"""Windows that slide over the spatial axes of channels-last data: what convolutions and pools read from their attributes.

On axis i, tap k of place p reads element p * strides[i] + k * dilations[i] - begin[i] of the input; begins depend on sizes where
`auto_pad` says so.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from sardonyx.codegen.emit.window import WindowAxis
from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Node, Shape, Value
from sardonyx.partition.layout import NHWC_DOMAIN
from sardonyx.providers.cpu.operands import given, shape_of

__all__ = ["Filters", "Place", "Window", "channels_of", "claim_filters", "claim_window", "conv_axes"]

_LARGEST = 1 << 31
"""Larger numbers in attributes are mistakes or attacks."""


def channels_of(node: Node, value: Value) -> Shape:
    """The channels of a data tensor of `node`, as a shape of one dimension."""
    shape = value.shape or ()
    return shape[-1:] if node.domain == NHWC_DOMAIN else shape[1:2]


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """A window on one axis of a known size."""

    begin: int
    """Padding before the first element."""
    end: int
    """Padding after the last one, as declared."""
    places: int
    """How many places the window has; -1 where it is longer than the axis with its padding."""


@dataclasses.dataclass(frozen=True)
class Window:
    """The attributes of a window, with defaults filled in; one number for each spatial axis."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]
    """Padding before each axis, then after each."""
    auto_pad: str
    ceil_mode: bool = False

    @property
    def is_padded(self) -> bool:
        """Whether a window may lie partly outside of the input, for some sizes."""
        if self.auto_pad == "VALID":
            return self.ceil_mode
        if self.auto_pad != "NOTSET":
            return any(extent > 1 for extent in self.extents)
        return any(self.pads) or self.ceil_mode

    @property
    def extents(self) -> tuple[int, ...]:
        """From the first tap to behind the last one on each axis."""
        return tuple((taps - 1) * dilation + 1 for taps, dilation in zip(self.kernel, self.dilations, strict=True))

    @property
    def is_point(self) -> bool:
        """Whether the window is one element that meets every element in turn."""
        return not self.is_padded and set(self.kernel) <= {1} and set(self.strides) <= {1}

    def place(self, sizes: Sequence[int], expected: Sequence[int]) -> list[Place]:
        """Where the window lies on axes of these sizes.

        Raises:
            InvalidArgument: the window does not fit, or has other than the expected numbers of places.
        """
        found = [self._place(axis, size) for axis, size in enumerate(sizes)]
        if [place.places for place in found] != list(expected) or any(place.places < 0 for place in found):
            raise InvalidArgument(
                f"a window of {list(self.kernel)} taps, dilations {list(self.dilations)} and strides {list(self.strides)} on "
                f"axes of {list(sizes)} elements has {[max(place.places, 0) for place in found]} places, expected at least 1 and "
                f"{list(expected)}: give an input that the window fits on"
            )
        return found

    def _place(self, axis: int, size: int) -> Place:
        stride, extent = self.strides[axis], self.extents[axis]
        begin, end = self.padding(axis, size)
        room = size + begin + end - extent
        if size == 0:
            return Place(begin, end, 0)
        if room < 0:
            return Place(begin, end, -1)
        places = room // stride + 1
        if self.ceil_mode and not self.auto_pad.startswith("SAME"):
            places = -(-room // stride) + 1
            places -= (places - 1) * stride >= size + begin
        return Place(begin, end, places)

    def padding(self, axis: int, size: int) -> tuple[int, int]:
        """The padding before and after an axis of this size."""
        if self.auto_pad == "VALID":
            return 0, 0
        if self.auto_pad == "NOTSET":
            return self.pads[axis], self.pads[axis + len(self.kernel)]
        stride = self.strides[axis]
        total = max(0, (-(-size // stride) - 1) * stride + self.extents[axis] - size)
        small = total // 2
        return (small, total - small) if self.auto_pad == "SAME_UPPER" else (total - small, small)


_AUTO_PADS = ("", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")


@dataclasses.dataclass(frozen=True, slots=True)
class Filters:
    """What a convolution, plain or transposed, does with its filters."""

    window: Window
    """Where they meet the input."""
    groups: int
    """Groups of channels."""


def claim_filters(node: Node, channels: Callable[[int, int, int], tuple[int, int]]) -> Filters | str:
    """Return what a convolution does with its filters, in either layout, or why it cannot be compiled.

    Args:
        node: the convolution.
        channels: how many channels go in and come out, from the first two sizes of the filters and the number of groups.
    """
    data, filters, result = given(node.inputs[0]), given(node.inputs[1]), node.outputs[0]
    if {data.dtype, filters.dtype, result.dtype} != {DataType.FLOAT}:
        return f"a convolution of {data.dtype} with {filters.dtype}"
    if filters.constant is None:
        return "its filters are computed when the model runs"
    first, second, *kernel = (*filters.constant.shape, 0, 0)[: max(len(filters.constant.shape), 2)]
    groups, rank = node.get("group", 1), len(kernel)
    if rank not in (1, 2, 3) or len(shape_of(data)) != rank + 2 or len(shape_of(result)) != rank + 2:
        return f"filters of {rank + 2} dimensions for an input of {len(shape_of(data))}"
    if node.get("kernel_shape") and tuple(node.get("kernel_shape")) != tuple(kernel):
        return f"kernel_shape {list(node.get('kernel_shape'))} beside filters of {filters.constant.shape}"
    before, after = channels(first, second, groups)
    fits = channels_of(node, data) == (before,) and channels_of(node, result) == (after,)
    if groups < 1 or first % groups or not before or not after or not fits:
        return f"{channels_of(node, data)[0]} channels in {groups} groups for filters of {filters.constant.shape}"
    bias = node.input(2)
    if bias is not None and (bias.dtype is not DataType.FLOAT or bias.shape != (after,)):
        return f"the bias of shape {bias.shape} is not one number for each of {after} output channels"
    window = claim_window(node, kernel)
    return window if isinstance(window, str) else Filters(window, groups)


def claim_window(node: Node, kernel: Sequence[int]) -> Window | str:
    """Return the window of a node, with defaults filled in, or why it cannot slide over as many axes as `kernel` has."""
    rank, auto_pad = len(kernel), node.get("auto_pad", "NOTSET")
    for name, count, least in (("strides", rank, 1), ("dilations", rank, 1), ("pads", 2 * rank, 0)):
        numbers = node.get(name) or ()
        if len(numbers) not in (0, count) or any(not least <= number < _LARGEST for number in numbers):
            return f"{name} {list(numbers)} for {rank} spatial axes"
    if any(not 1 <= taps < _LARGEST for taps in kernel):
        return f"a kernel of {list(kernel)}"
    if auto_pad not in _AUTO_PADS:
        return f"auto_pad {auto_pad!r}"
    return Window(
        tuple(kernel),
        tuple(node.get("strides") or (1,) * rank),
        tuple(node.get("dilations") or (1,) * rank),
        tuple(node.get("pads") or (0,) * (2 * rank)),
        auto_pad or "NOTSET",
        bool(node.get("ceil_mode", 0)),
    )


def conv_axes(
    window: Window, sizes: Sequence[int], placed: Sequence[Place], C: int, M: int, *, bordered: bool = False
) -> list[WindowAxis]:
    """The axes as the kernel wants them, for an input of `sizes` that holds its border already or not."""
    axes: list[WindowAxis] = []
    in_step, out_step = C, M
    for axis in reversed(range(len(sizes))):
        place = placed[axis]
        begin = 0 if bordered else place.begin
        axes.insert(
            0,
            WindowAxis(
                sizes[axis],
                place.places,
                window.strides[axis],
                window.dilations[axis],
                begin,
                window.kernel[axis],
                in_step,
                out_step,
            ),
        )
        in_step, out_step = in_step * sizes[axis], out_step * place.places
    return axes
