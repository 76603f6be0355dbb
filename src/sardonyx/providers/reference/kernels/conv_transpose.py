"""Reference kernels that scatter windows: ConvTranspose, Col2Im."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from sardonyx.cancellation import check_cancelled
from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.ops.views.conv import ConvTranspose
from sardonyx.ops.views.window import Sliding, Window
from sardonyx.providers.reference.algorithms.dimensions import as_ints, check_output_size
from sardonyx.providers.reference.algorithms.precision import compute_type, quiet, widen
from sardonyx.providers.reference.algorithms.window import PlacedWindow, place_window, resolve_axes_values, split_padding
from sardonyx.providers.reference.registry import Call, kernel

__all__: list[str] = []

_BLOCK_ELEMENTS = 1 << 22
"""Products scattered at a time, in elements: 16 MiB of float32."""


@kernel("ConvTranspose", view=ConvTranspose)
@quiet
def conv_transpose(
    node: Call,
    x: Array,
    w: Array,
    b: Array | None = None,
    *,
    view: ConvTranspose,
) -> Array:
    """Compute transposed convolution of x (N, C, *spatial) with w (C, M / group, *kernel), plus b (M,); half types in float32.

    Source: ONNX ConvTranspose-22. The formulas of version 1 divide an odd padding the other way, against its own text;
    they were an error.
    """
    _check_operands(x, w, b, view.group)
    rank, group, sliding = x.ndim - 2, view.group, view.window(w.shape[2:])
    totals = [
        stride * (size - 1) + more + extent
        for stride, size, more, extent in zip(sliding.strides, x.shape[2:], view.padding(rank), sliding.extents, strict=True)
    ]
    output, begins = _output_and_begins(x.shape[2:], totals, sliding, view.output_shape)
    window = PlacedWindow(sliding.kernel, sliding.strides, sliding.dilations, begins, (0,) * rank, output)
    check_output_size((x.shape[0], w.shape[1] * group, *output), 4)
    wide = widen(x)
    y = np.zeros((x.shape[0], w.shape[1] * group, *output), wide.dtype)
    if b is not None:
        y += widen(b).reshape(-1, *(1,) * rank)
    _scatter_products(wide, widen(w), y, group, window)
    return y.astype(x.dtype, copy=False)


def _check_operands(x: Array, w: Array, b: Array | None, group: int) -> None:
    if x.ndim < 3 or w.ndim != x.ndim:
        raise InvalidArgument(
            f"X has shape {x.shape} and W has shape {w.shape}; expected (N, C, *spatial) and (C, M / group, *kernel) "
            "of one rank, at least 3"
        )
    if x.shape[1] != w.shape[0] or w.shape[0] % group:
        raise InvalidArgument(
            f"X has {x.shape[1]} channels, W has shape {w.shape} and group = {group}; expected X's channels to be W's "
            "first dimension and a multiple of group"
        )
    if b is not None and b.shape != (w.shape[1] * group,):
        raise InvalidArgument(f"B has shape {b.shape}, expected ({w.shape[1] * group},): one value per output channel")


def _output_and_begins(
    spatial: Sequence[int], totals: Sequence[int], window: Window[int], output_shape: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return lengths of the output, and how much of the scattered windows (`totals` long) is cut off before it."""
    rank = len(totals)
    if not len(output_shape) and not window.is_same:
        both = (0,) * (2 * rank) if window.auto_pad == "VALID" else window.pads
        output = tuple(total - sum(both[axis::rank]) for axis, total in enumerate(totals))
        if any(length < 0 for length in output):
            raise InvalidArgument(f"pads = {list(both)} leave an output of {list(output)}; the unpadded one is {list(totals)}")
        return output, both[:rank]
    wanted = output_shape[-rank:] if len(output_shape) == rank + 2 else output_shape
    same = tuple(size * stride for size, stride in zip(spatial, window.strides, strict=True))
    output = resolve_axes_values("output_shape", wanted, rank, 0, 0) if len(wanted) else same
    begins = tuple(split_padding(max(0, total - length), window.auto_pad)[0] for total, length in zip(totals, output, strict=True))
    return output, begins


def _scatter_products(x: Array, w: Array, y: Array, group: int, window: PlacedWindow) -> None:
    """Add to y (N, M, *output) the transposed convolution of x (N, C, *spatial) with w (C, M / group, *kernel)."""
    if x.size == 0 or w.size == 0 or y.size == 0:
        return
    channels, filters = w.shape[0] // group, w.shape[1]
    if channels == filters == 1:
        _scatter_depthwise(x, w, y, window)
        return
    pixels = x.reshape(x.shape[0], group, channels, -1)
    weights = w.reshape(group, channels, filters, -1).transpose(0, 2, 3, 1)
    taps = weights.shape[2]
    step = max(1, _BLOCK_ELEMENTS // (taps * pixels.shape[3]))
    for image, g, first in itertools.product(range(x.shape[0]), range(group), range(0, filters, step)):
        block = weights[g, first : first + step]
        products = np.matmul(block.reshape(-1, channels), pixels[image, g])
        start = g * filters + first
        target = y[image, start : start + len(block)]
        _scatter_taps(products.reshape(len(block), taps, *x.shape[2:]), target, window)


def _scatter_taps(products: Array, y: Array, window: PlacedWindow) -> None:
    """Add products (M, taps, *spatial) to y (M, *output), each tap where the window puts it."""
    for tap, (sources, targets) in enumerate(_tap_places(products.shape[2:], y.shape[1:], window)):
        y[:, *targets] += products[:, tap][:, *sources]


def _scatter_depthwise(x: Array, w: Array, y: Array, window: PlacedWindow) -> None:
    """Add x (N, C, *spatial) times each tap of w (C, 1, *kernel) to y (N, C, *output), where the window puts it."""
    taps = w.reshape(len(w), -1, *(1,) * (x.ndim - 2))
    for tap, (sources, targets) in enumerate(_tap_places(x.shape[2:], y.shape[2:], window)):
        y[:, :, *targets] += x[:, :, *sources] * taps[:, tap]


def _tap_places(spatial: Sequence[int], output: Sequence[int], window: PlacedWindow) -> Iterator[tuple[list[slice], list[slice]]]:
    """Yield for each tap, row-major, the elements of the input that it reaches the output from, and those that it reaches.

    Raises as `check_cancelled` between them.
    """
    lengths = list(zip(spatial, output, window.strides, strict=True))
    for index in np.ndindex(window.kernel):
        check_cancelled()
        offsets = [k * dilation - begin for k, dilation, begin in zip(index, window.dilations, window.begins, strict=True)]
        pairs = [_overlap(*lengths[axis], offset) for axis, offset in enumerate(offsets)]
        yield [source for source, _ in pairs], [target for _, target in pairs]


def _overlap(size: int, output: int, stride: int, offset: int) -> tuple[slice, slice]:
    """Return the elements i of `size` for which element i * stride + offset of `output` exists, and those."""
    first = max(0, -(offset // stride))
    last = min(size - 1, (output - 1 - offset) // stride)
    if last < first:
        return slice(0, 0), slice(0, 0)
    return slice(first, last + 1), slice(first * stride + offset, last * stride + offset + 1, stride)


@kernel("Col2Im", since=18, view=Sliding)
@quiet
def col2im(
    node: Call,
    x: Array,
    image_shape: Array,
    block_shape: Array,
    *,
    view: Sliding,
) -> Array:
    """Add the columns of x (N, C * taps, L) up into images (N, C, *image_shape). Source: ONNX Col2Im-18.

    Half types are summed in float32; bool by "or". Taps are numbered row-major over block_shape, columns over its positions.
    """
    if x.dtype == object:
        raise InvalidArgument("input is a tensor of strings; expected numbers, which can be added up")
    image = resolve_axes_values("image_shape", as_ints(image_shape, "image_shape"), image_shape.size, 1, 1)
    kernel_shape = resolve_axes_values("block_shape", as_ints(block_shape, "block_shape"), block_shape.size, 1, 1)
    window = place_window(image, view.over(kernel_shape))
    taps, positions = math.prod(window.kernel), math.prod(window.output)
    if x.ndim != 3 or x.shape[1] % taps or x.shape[2] != positions:
        raise InvalidArgument(
            f"input has shape {x.shape}; expected (N, C * {taps}, {positions}) for an image of {list(image)} and "
            f"blocks of {list(kernel_shape)}"
        )
    channels = x.shape[1] // taps
    check_output_size((x.shape[0], channels, *image), x.dtype.itemsize)
    accumulator = compute_type(x.dtype)
    y = np.zeros((x.shape[0] * channels, *image), accumulator)
    columns = x.astype(accumulator, copy=False).reshape(-1, taps, *window.output)
    _scatter_taps(columns, y, window)
    return y.reshape(x.shape[0], channels, *image).astype(x.dtype, copy=False)
