"""Windows that slide over spatial axes: the geometry that convolution and pooling share.

On axis i, tap k of output o reads element o * strides[i] + k * dilations[i] - begins[i] of the input.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

from sardonyx.errors import InvalidArgument
from sardonyx.ops.views.window import Window

__all__ = ["PlacedWindow", "place_window", "resolve_axes_values", "split_padding"]

_LARGEST_AXIS = 1 << 40
"""Larger numbers in attributes are mistakes or attacks."""
_LARGEST_PADDED_AXIS = 1 << 31
"""The longest axis, padding included, that a window slides on."""


@dataclasses.dataclass(frozen=True, slots=True)
class PlacedWindow:
    """A placed window: one value per spatial axis in every field."""

    kernel: tuple[int, ...]
    """Taps."""
    strides: tuple[int, ...]
    """Steps between outputs, in input elements."""
    dilations: tuple[int, ...]
    """Steps between taps, in input elements."""
    begins: tuple[int, ...]
    """Padding before the first element."""
    ends: tuple[int, ...]
    """Padding after the last element, as declared; ceil_mode may look beyond it."""
    output: tuple[int, ...]
    """Lengths of the output."""


def resolve_axes_values(name: str, values: Sequence[int], rank: int, default: int, minimum: int) -> tuple[int, ...]:
    """Return `values` of attribute `name`, or `default` for each of `rank` axes where the attribute is left out.

    Raises:
        InvalidArgument: another number of values than axes, or one out of [minimum, 2^40].
    """
    if not len(values):
        return (default,) * rank
    if len(values) != rank:
        raise InvalidArgument(f"{name} = {list(values)} has {len(values)} values, expected {rank}: one per spatial axis")
    if any(not minimum <= value <= _LARGEST_AXIS for value in values):
        raise InvalidArgument(f"{name} = {list(values)}: each value must be at least {minimum} and at most 2^40")
    return tuple(int(value) for value in values)


def split_padding(total: int, auto_pad: str) -> tuple[int, int]:
    """Divide `total` padding over both sides; the odd element goes to the end for SAME_UPPER, else to the beginning."""
    small = total // 2
    return (small, total - small) if auto_pad == "SAME_UPPER" else (total - small, small)


@functools.lru_cache(maxsize=1024)
def place_window(spatial: tuple[int, ...], window: Window[int]) -> PlacedWindow:
    """Place a window over an input of `spatial` lengths (ONNX Conv-22, MaxPool-22, AveragePool-22).

    With `ceil_mode` a last window that starts beyond the input and its beginning padding is dropped. An axis without elements
    has the windows that lie in its padding.

    Raises:
        InvalidArgument: a window of another rank, or larger than the padded input.
    """
    if len(spatial) != len(window.kernel):
        raise InvalidArgument(f"a window of {list(window.kernel)} taps for an input of spatial shape {list(spatial)}")
    kernel, strides, dilations, ceil_mode = window.kernel, window.strides, window.dilations, window.ceil_mode
    extents = window.extents
    begins, ends = _padding(spatial, window)
    output = []
    for size, extent, stride, begin, end in zip(spatial, extents, strides, begins, ends, strict=True):
        room = size + begin + end - extent
        if size + begin + end > _LARGEST_PADDED_AXIS:
            raise InvalidArgument(f"padding {[*begins, *ends]} makes an axis longer than 2^31 elements; correct pads")
        steps = -(-room // stride) if ceil_mode and not window.is_same else room // stride
        length = steps + 1
        if ceil_mode and (length - 1) * stride >= size + begin:
            length -= 1
        if room < 0 and length < (1 if size else 0):
            raise InvalidArgument(
                f"a window of {list(kernel)} taps with dilations {list(dilations)} does not fit an input of spatial "
                f"shape {list(spatial)} with padding {[*begins, *ends]}: {extent} > {size + begin + end}"
            )
        output.append(length)
    return PlacedWindow(kernel, strides, dilations, begins, ends, tuple(output))


def _padding(spatial: Sequence[int], window: Window[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    rank = len(spatial)
    if window.auto_pad == "VALID":
        return (0,) * rank, (0,) * rank
    if window.auto_pad == "NOTSET":
        return window.pads[:rank], window.pads[rank:]
    sides = []
    for size, extent, stride in zip(spatial, window.extents, window.strides, strict=True):
        total = max(0, (-(-size // stride) - 1) * stride + extent - size)
        sides.append(split_padding(total, window.auto_pad))
    return tuple(side[0] for side in sides), tuple(side[1] for side in sides)
