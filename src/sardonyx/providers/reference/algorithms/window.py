"""Windows that slide over spatial axes: the geometry that convolution and pooling share.

On axis i, tap k of output o reads element o * strides[i] + k * dilations[i] - begins[i] of the input.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

from sardonyx.errors import InvalidArgument

__all__ = ["Window", "place_window", "resolve_axes_values", "split_padding"]

_LARGEST_AXIS = 1 << 40
"""Larger numbers in attributes are mistakes or attacks."""
_LARGEST_PADDED_AXIS = 1 << 31
"""The longest axis, padding included, that a window slides on."""


@dataclasses.dataclass(frozen=True, slots=True)
class Window:
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
    """`values` of attribute `name`, or `default` for each of `rank` axes where the attribute is left out.

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


def place_window(
    spatial: Sequence[int],
    kernel: Sequence[int],
    *,
    strides: Sequence[int] = (),
    dilations: Sequence[int] = (),
    pads: Sequence[int] = (),
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
) -> Window:
    """Place a window of `kernel` taps over an input of `spatial` lengths (ONNX Conv-22, MaxPool-22, AveragePool-22).

    With `ceil_mode` a last window that starts beyond the input and its beginning padding is dropped.

    Raises:
        InvalidArgument: attributes that fit neither the rank nor one another, or a window larger than the padded input.
    """
    return _place(tuple(spatial), tuple(kernel), tuple(strides), tuple(dilations), tuple(pads), auto_pad, bool(ceil_mode))


@functools.lru_cache(maxsize=1024)
def _place(
    spatial: tuple[int, ...],
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
    pads: tuple[int, ...],
    auto_pad: str,
    ceil_mode: bool,
) -> Window:
    rank = len(spatial)
    kernel = resolve_axes_values("kernel_shape", kernel, rank, 1, 1)
    strides = resolve_axes_values("strides", strides, rank, 1, 1)
    dilations = resolve_axes_values("dilations", dilations, rank, 1, 1)
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    begins, ends = _padding(spatial, extents, strides, pads, auto_pad)
    output = []
    for size, extent, stride, begin, end in zip(spatial, extents, strides, begins, ends, strict=True):
        room = size + begin + end - extent
        if size + begin + end > _LARGEST_PADDED_AXIS:
            raise InvalidArgument(f"padding {[*begins, *ends]} makes an axis longer than 2^31 elements; correct pads")
        if room < 0 and size > 0:
            raise InvalidArgument(
                f"a window of {list(kernel)} taps with dilations {list(dilations)} does not fit an input of spatial "
                f"shape {list(spatial)} with padding {[*begins, *ends]}: {extent} > {size + begin + end}"
            )
        steps = -(-room // stride) if ceil_mode and not auto_pad.startswith("SAME") else room // stride
        length = steps + 1
        if ceil_mode and (length - 1) * stride >= size + begin:
            length -= 1
        output.append(max(0, length) if size else 0)
    return Window(kernel, strides, dilations, begins, ends, tuple(output))


def _padding(
    spatial: Sequence[int], extents: Sequence[int], strides: Sequence[int], pads: Sequence[int], auto_pad: str
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    rank = len(spatial)
    if auto_pad == "VALID":
        return (0,) * rank, (0,) * rank
    if auto_pad in ("NOTSET", ""):
        both = resolve_axes_values("pads", pads, 2 * rank, 0, 0)
        return both[:rank], both[rank:]
    if auto_pad not in ("SAME_UPPER", "SAME_LOWER"):
        raise InvalidArgument(f"auto_pad = {auto_pad!r}, expected NOTSET, SAME_UPPER, SAME_LOWER or VALID")
    sides = []
    for size, extent, stride in zip(spatial, extents, strides, strict=True):
        total = max(0, (-(-size // stride) - 1) * stride + extent - size)
        sides.append(split_padding(total, auto_pad))
    return tuple(side[0] for side in sides), tuple(side[1] for side in sides)
