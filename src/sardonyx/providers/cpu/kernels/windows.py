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

__all__ = ["Place", "Window", "channels_of", "check_convolution", "check_window", "conv_axes", "spatial_of"]

_LARGEST = 1 << 31
"""Larger numbers in attributes are mistakes or attacks."""


def spatial_of(node: Node, value: Value) -> Shape:
    """The spatial sizes of a data tensor of `node`: where they stand depends on its layout."""
    shape = value.shape or ()
    return shape[1:-1] if node.domain == NHWC_DOMAIN else shape[2:]


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

    @staticmethod
    def of(node: Node, kernel: Sequence[int]) -> Window:
        """The window of a node that `check_window` lets through."""
        rank = len(kernel)
        return Window(
            tuple(kernel),
            tuple(node.get("strides") or (1,) * rank),
            tuple(node.get("dilations") or (1,) * rank),
            tuple(node.get("pads") or (0,) * (2 * rank)),
            node.get("auto_pad", "NOTSET") or "NOTSET",
            bool(node.get("ceil_mode", 0)),
        )

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


def check_convolution(node: Node, channels: Callable[[int, int, int], tuple[int, int]]) -> str | None:
    """Why a convolution, plain or transposed, in either layout, cannot be lowered.

    Args:
        node: the convolution.
        channels: how many channels go in and come out, from the first two sizes of the filters and the number of groups.
    """
    data, filters, result = node.inputs[0], node.inputs[1], node.outputs[0]
    if data is None or filters is None or data.shape is None or result.shape is None:
        return "an input is left out"
    if {data.dtype, filters.dtype, result.dtype} != {DataType.FLOAT}:
        return f"a convolution of {data.dtype} with {filters.dtype}"
    if filters.constant is None:
        return "the filters are no constant"
    first, second, *kernel = filters.constant.shape
    groups, rank = node.get("group", 1), len(kernel)
    if rank not in (1, 2, 3) or len(data.shape) != rank + 2 or len(result.shape) != rank + 2:
        return f"{rank} spatial axes"
    if node.get("kernel_shape") and tuple(node.get("kernel_shape")) != tuple(kernel):
        return f"kernel_shape {list(node.get('kernel_shape'))} beside filters of {filters.constant.shape}"
    before, after = channels(first, second, groups)
    fits = channels_of(node, data) == (before,) and channels_of(node, result) == (after,)
    if groups < 1 or first % groups or not before or not after or not fits:
        return f"{channels_of(node, data)} channels in {groups} groups for filters of {filters.constant.shape}"
    bias = node.input(2)
    if bias is not None and (bias.dtype is not DataType.FLOAT or bias.shape != (after,)):
        return "the bias is not one number for each output channel"
    return check_window(node, kernel)


def check_window(node: Node, kernel: Sequence[int]) -> str | None:
    """Why a window with the attributes of `node` cannot slide over as many axes as `kernel` has."""
    rank = len(kernel)
    for name, count, least in (("strides", rank, 1), ("dilations", rank, 1), ("pads", 2 * rank, 0)):
        numbers = node.get(name) or ()
        if len(numbers) not in (0, count) or any(not least <= number < _LARGEST for number in numbers):
            return f"{name} {list(numbers)} for {rank} spatial axes"
    if any(not 1 <= taps < _LARGEST for taps in kernel):
        return f"a kernel of {list(kernel)}"
    if node.get("auto_pad", "NOTSET") not in _AUTO_PADS:
        return f"auto_pad {node.get('auto_pad')!r}"
    return None


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
