"""Windows that slide over the spatial axes of channels-last data: where they lie, and what convolutions and pools claim of them.

On axis i, tap k of place p reads element p * strides[i] + k * dilations[i] - begin[i] of the input; begins depend on sizes where
`auto_pad` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.window import WindowAxis
from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Node, Shape, Value
from sardonyx.ops.schema import NHWC_DOMAIN
from sardonyx.ops.views.conv import Conv, ConvTranspose
from sardonyx.ops.views.window import Window
from sardonyx.providers.cpu.operands import given, shape_of

__all__ = [
    "AxisWindow",
    "Filters",
    "channels_of",
    "claim_filters",
    "claim_sliding",
    "conv_axes",
    "is_padded",
    "is_point",
    "padding_of",
    "place_window",
    "problem_of",
]

_LARGEST = 1 << 31
"""Larger numbers are beyond the words that kernels count in."""


def channels_of(node: Node, value: Value) -> Shape:
    """Return the channels of a data tensor of `node`, as a shape of one dimension."""
    shape = value.shape or ()
    is_last = node.domain == NHWC_DOMAIN or node.flag("channels_last") or node.op_type == "NhwcMaxPool"
    return shape[-1:] if is_last else shape[1:2]


@dataclasses.dataclass(frozen=True, slots=True)
class AxisWindow:
    """A window on one axis of a known size."""

    begin: int
    """Padding before the first element."""
    end: int
    """Padding after the last one, as declared."""
    places: int
    """How many places the window has; -1 where it is longer than the axis with its padding."""


def is_padded(window: Window[int]) -> bool:
    """Return whether a window may lie partly outside of the input, for some sizes."""
    if window.auto_pad == "VALID":
        return window.ceil_mode
    if window.auto_pad != "NOTSET":
        return any(extent > 1 for extent in window.extents)
    return any(window.pads) or window.ceil_mode


def is_point(window: Window[int]) -> bool:
    """Return whether a window is one element that meets every element in turn."""
    return not is_padded(window) and set(window.kernel) <= {1} and set(window.strides) <= {1}


def place_window(window: Window[int], sizes: Sequence[int], expected: Sequence[int]) -> list[AxisWindow]:
    """Return where a window lies on axes of these sizes.

    Raises:
        InvalidArgument: the window does not fit, or has other than the expected numbers of places.
    """
    found = [_place(window, axis, size) for axis, size in enumerate(sizes)]
    if [place.places for place in found] != list(expected) or any(place.places < 0 for place in found):
        raise InvalidArgument(
            f"a window of {list(window.kernel)} taps, dilations {list(window.dilations)} and strides {list(window.strides)} on "
            f"axes of {list(sizes)} elements has {[max(place.places, 0) for place in found]} places, expected at least 1 and "
            f"{list(expected)}: give an input that the window fits on"
        )
    return found


def _place(window: Window[int], axis: int, size: int) -> AxisWindow:
    stride, extent = window.strides[axis], window.extents[axis]
    begin, end = padding_of(window, axis, size)
    rest = size + begin + end - extent
    places = rest // stride + 1
    if window.ceil_mode and not window.is_same:
        places = -(-rest // stride) + 1
        places -= (places - 1) * stride >= size + begin
    if rest < 0 < size and places < 1:
        return AxisWindow(begin, end, -1)
    return AxisWindow(begin, end, places)


def padding_of(window: Window[int], axis: int, size: int) -> tuple[int, int]:
    """Return the padding before and after an axis of this size."""
    if window.auto_pad == "VALID":
        return 0, 0
    if window.auto_pad == "NOTSET":
        return window.pads[axis], window.pads[axis + len(window.kernel)]
    stride = window.strides[axis]
    total = max(0, (-(-size // stride) - 1) * stride + window.extents[axis] - size)
    small = total // 2
    return (small, total - small) if window.auto_pad == "SAME_UPPER" else (total - small, small)


@dataclasses.dataclass(frozen=True, slots=True)
class Filters:
    """What a convolution, plain or transposed, does with its filters."""

    window: Window[int]
    """Where they meet the input."""
    groups: int
    """Groups of channels."""


def claim_filters(node: Node, view: Conv | ConvTranspose, channels: Callable[[int, int, int], tuple[int, int]]) -> Filters | str:
    """Return what a convolution does with its filters, in either layout, or why it cannot be compiled.

    Args:
        node: the convolution.
        view: what it says.
        channels: how many channels go in and come out, from the first two sizes of the filters and the number of groups.
    """
    data, filters, result = given(node.inputs[0]), given(node.inputs[1]), node.outputs[0]
    if {data.dtype, filters.dtype, result.dtype} not in ({DataType.FLOAT}, {DataType.DOUBLE}):
        return f"a convolution of {data.dtype} with {filters.dtype}"
    bias = node.input(2)
    if bias is not None and bias.dtype is not data.dtype:
        return f"a bias of {bias.dtype}"
    return claim_sliding(node, view, (data, filters, bias), channels, may_be_computed=True)


def claim_sliding(
    node: Node,
    view: Conv | ConvTranspose,
    operands: tuple[Value, Value, Value | None],
    channels: Callable[[int, int, int], tuple[int, int]],
    *,
    may_be_computed: bool = False,
) -> Filters | str:
    """Return what `claim_filters` does, of data, filters and bias whatever their types and places among the inputs."""
    data, filters, bias = operands
    result = node.outputs[0]
    if filters.constant is None and not may_be_computed:
        return "its filters are computed when the model runs"
    sizes = [size for size in shape_of(filters) if isinstance(size, int)]
    if len(sizes) < len(shape_of(filters)):
        return f"filters of shape {shape_of(filters)}, which is not known before the model runs"
    first, second, *kernel = (*sizes, 0, 0)[: max(len(sizes), 2)]
    groups, rank = view.group, len(kernel)
    if rank not in (1, 2, 3) or len(shape_of(data)) != rank + 2 or len(shape_of(result)) != rank + 2:
        return f"filters of {rank + 2} dimensions for an input of {len(shape_of(data))}"
    before, after = channels(first, second, groups)
    fits = channels_of(node, data) == (before,) and channels_of(node, result) == (after,)
    if first % groups or not before or not after or not fits:
        return f"{channels_of(node, data)[0]} channels in {groups} groups for filters of {tuple(sizes)}"
    if bias is not None and bias.shape != (after,):
        return f"the bias of shape {bias.shape} is not one number for each of {after} output channels"
    window = view.window(kernel)
    return problem_of(window) or Filters(window, groups)


def problem_of(window: Window[int]) -> str | None:
    """Return why kernels cannot count over a window; None where they can."""
    fields = (("kernel", window.kernel), ("strides", window.strides), ("dilations", window.dilations), ("pads", window.pads))
    wrong = next(((name, numbers) for name, numbers in fields if any(number >= _LARGEST for number in numbers)), None)
    if wrong is not None:
        return f"{wrong[0]} {list(wrong[1])} beyond 2^31"
    return None if all(window.kernel) else f"a kernel of {list(window.kernel)}"


def conv_axes(
    window: Window[int], sizes: Sequence[int], placed: Sequence[AxisWindow], C: int, M: int, *, bordered: bool = False
) -> list[WindowAxis]:
    """Return the axes as the kernel wants them, for an input of `sizes` that holds its border already or not."""
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
