"""Operators that cut tensors apart, join them, and set them into larger ones."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.ops.views.slice import Slice
from sardonyx.providers.reference.algorithms.dimensions import (
    as_int,
    as_ints,
    check_output_size,
    normalize_axes,
    normalize_axis,
)
from sardonyx.providers.reference.registry import Call, kernel

__all__: list[str] = []


@kernel("Concat")
def concat(_node: Call, *inputs: Array, axis: int = 1) -> Array:
    """Join tensors of one rank and type along `axis`; all other lengths agree. ONNX Concat-1, -4, -11."""
    if not inputs:
        raise InvalidArgument("there is no input; expected at least one tensor")
    first = inputs[0]
    at = normalize_axis(axis, first.ndim)
    for index, other in enumerate(inputs):
        if other.ndim != first.ndim or any(
            length != want for k, (length, want) in enumerate(zip(other.shape, first.shape, strict=True)) if k != at
        ):
            raise InvalidArgument(
                f"input {index} has shape {other.shape}, input 0 has {first.shape}; except along axis {at} they must agree"
            )
    check_output_size((sum(item.size for item in inputs),), first.itemsize)
    return first if len(inputs) == 1 else np.concatenate(inputs, axis=at)


_TO_THE_END = (2**31 - 1, 2**63 - 1)
"""Ends that Slice-10 recommends for "as far as the axis goes", and ONNX Runtime reads so backwards too; from Slice-11 on the
standard recommends the least integers for that, and these are clamped as any others."""


def _clamped(start: int, end: int, step: int, length: int, *, is_open: bool) -> slice:
    """Return the part of an axis of `length` that ONNX Slice-13 means, as a slice that NumPy reads the same way.

    `is_open` reads the ends of Slice-10.
    """
    start = start + length if start < 0 else start
    end = end + length if end < 0 else end
    if step > 0:
        return slice(min(max(start, 0), length), min(max(end, 0), length), step)
    end = -1 if is_open and end in _TO_THE_END else min(max(end, -1), length - 1)
    return slice(min(max(start, 0), length - 1), None if end < 0 else end, step) if length else slice(0, 0)


def _sliced(
    data: Array,
    starts: Sequence[int],
    ends: Sequence[int],
    axes: Sequence[int] | None,
    steps: Sequence[int] | None,
    *,
    is_open: bool,
) -> Array:
    axes = range(len(starts)) if axes is None else axes
    steps = (1,) * len(starts) if steps is None else steps
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise InvalidArgument(
            f"starts, ends, axes and steps have {len(starts)}, {len(ends)}, {len(axes)} and {len(steps)} entries; "
            "expected as many of each"
        )
    if 0 in steps:
        raise InvalidArgument(f"steps={list(steps)} has a 0; a step goes forwards (> 0) or backwards (< 0)")
    parts = [slice(None)] * data.ndim
    for axis, start, end, step in zip(normalize_axes(axes, data.ndim), starts, ends, steps, strict=True):
        parts[axis] = _clamped(start, end, step, data.shape[axis], is_open=is_open)
    return data[tuple(parts)]


@kernel("Slice")
def slice_1(_node: Call, data: Array, *, starts: Sequence[int], ends: Sequence[int], axes: Sequence[int] | None = None) -> Array:
    """Take a box of `data`; bounds are attributes, clamped to each axis. A view. ONNX Slice-1."""
    return _sliced(data, starts, ends, axes, None, is_open=True)


@kernel("Slice", since=10, view=Slice)
def slice_10(
    _node: Call, data: Array, starts: Array, ends: Array, axes: Array | None = None, steps: Array | None = None, *, view: Slice
) -> Array:
    """Take a strided box of `data`; bounds are 1-D inputs, clamped to each axis. A view. ONNX Slice-10 to -13."""
    return _sliced(
        data,
        as_ints(starts, "starts"),
        as_ints(ends, "ends"),
        None if axes is None else as_ints(axes, "axes"),
        None if steps is None else as_ints(steps, "steps"),
        is_open=view.opens_backwards,
    )


def _parted(node: Call, data: Array, sizes: Sequence[int], axis: int) -> tuple[Array, ...]:
    if len(sizes) != len(node.present):
        raise InvalidArgument(f"split={list(sizes)} makes {len(sizes)} parts, but the node has {len(node.present)} outputs")
    if any(size < 0 for size in sizes) or sum(sizes) != data.shape[axis]:
        raise InvalidArgument(
            f"split={list(sizes)} for axis {axis} of data of shape {data.shape}; "
            f"expected lengths >= 0 that add up to {data.shape[axis]}"
        )
    before = (slice(None),) * axis
    ends = list(itertools.accumulate(sizes))
    return tuple(data[(*before, slice(end - size, end))] for size, end in zip(sizes, ends, strict=True))


def _even_sizes(length: int, count: int) -> list[int]:
    if length % count:
        raise InvalidArgument(f"an axis of length {length} does not split into {count} equal parts; give 'split'")
    return [length // count] * count


@kernel("Split")
def split_1(
    node: Call, data: Array, sizes: Array | None = None, *, axis: int = 0, split: Sequence[int] | None = None
) -> tuple[Array, ...]:
    """Cut `data` along `axis` into parts of the lengths in `split`, or into equal ones. Views. ONNX Split-1, -2, -11."""
    at = normalize_axis(axis, data.ndim)
    if sizes is not None:
        split = [int(size) for size in sizes.reshape(-1)]
    return _parted(node, data, split or _even_sizes(data.shape[at], len(node.present)), at)


@kernel("Split", since=13)
def split_13(node: Call, data: Array, split: Array | None = None, *, axis: int = 0) -> tuple[Array, ...]:
    """Cut `data` along `axis` into parts of the lengths in the second input, or equal ones. Views. ONNX Split-13."""
    at = normalize_axis(axis, data.ndim)
    sizes = _even_sizes(data.shape[at], len(node.present)) if split is None else as_ints(split, "split")
    return _parted(node, data, sizes, at)


@kernel("Split", since=18)
def split_18(
    node: Call, data: Array, split: Array | None = None, *, axis: int = 0, num_outputs: int | None = None
) -> tuple[Array, ...]:
    """Cut `data` along `axis` into `split` lengths, or `num_outputs` equal ones with a short tail. Views. ONNX Split-18."""
    at = normalize_axis(axis, data.ndim)
    if split is not None:
        return _parted(node, data, as_ints(split, "split"), at)
    count = len(node.present)
    if num_outputs is not None and num_outputs != count:
        raise InvalidArgument(f"num_outputs={num_outputs}, but the node has {count} outputs; the two must agree")
    length = data.shape[at]
    chunk = -(-length // count)
    return _parted(node, data, [min(chunk, max(0, length - k * chunk)) for k in range(count)], at)


def _edge(positions: Array, length: int) -> Array:
    return np.clip(positions, 0, length - 1)


def _reflect(positions: Array, length: int) -> Array:
    period = max(1, 2 * (length - 1))
    folded: Array = positions % period
    return np.minimum(folded, period - folded) if length > 1 else folded


def _wrap(positions: Array, length: int) -> Array:
    return np.remainder(positions, length)


_SOURCES: dict[str, Callable[[Array, int], Array]] = {"edge": _edge, "reflect": _reflect, "wrap": _wrap}
"""Pad mode -> which element of an axis of some length stands at each (possibly outer) position."""


def _zero(data: Array) -> object:
    return "" if data.dtype.kind == "O" else np.zeros((), data.dtype)


def _constant_padded(data: Array, before: Sequence[int], target: Sequence[int], value: object) -> Array:
    output = np.empty(target, data.dtype) if data.dtype.kind == "O" else np.zeros(target, data.dtype)
    if data.dtype.kind == "O" or value != np.zeros((), data.dtype):
        output[...] = value
    inner = tuple(slice(start, start + length) for start, length in zip(before, data.shape, strict=True))
    output[inner] = data
    return output


def _padded(data: Array, pads: Sequence[int], axes: Sequence[int] | None, mode: str, value: object) -> Array:
    """Pad (and, where negative, crop first) the axes by pads = (begin of each, end of each)."""
    places = range(data.ndim) if axes is None else normalize_axes(axes, data.ndim)
    if len(pads) != 2 * len(places):
        raise InvalidArgument(f"pads={list(pads)} for {len(places)} axes; expected a begin and an end for each")
    before, after = [0] * data.ndim, [0] * data.ndim
    for k, axis in enumerate(places):
        before[axis], after[axis] = pads[k], pads[k + len(places)]
    target = [length + low + high for length, low, high in zip(data.shape, before, after, strict=True)]
    if min(target, default=0) < 0:
        raise InvalidArgument(f"pads={list(pads)} remove more than data of shape {data.shape} has")
    check_output_size(target, data.itemsize)
    kept = tuple(
        slice(min(max(0, -low), length), max(0, length - max(0, -high)))
        for length, low, high in zip(data.shape, before, after, strict=True)
    )
    core = data[kept]
    before = [max(0, low) for low in before]
    if list(core.shape) == target:
        return core
    if mode == "constant":
        return _constant_padded(core, before, target, value)
    if mode not in _SOURCES:
        raise InvalidArgument(f"mode={mode!r}; expected 'constant', 'edge', 'reflect' or 'wrap'")
    empty = next((axis for axis, (length, want) in enumerate(zip(core.shape, target, strict=True)) if want > length == 0), None)
    if empty is not None:
        raise InvalidArgument(f"mode={mode!r} cannot pad axis {empty} of length 0; there is no element to repeat")
    if 0 in target:
        return np.empty(target, data.dtype)
    for axis, (length, want, low) in enumerate(zip(core.shape, target, before, strict=True)):
        if want == length:
            continue
        core = np.take(core, _SOURCES[mode](np.arange(-low, want - low), length), axis=axis)
    return core


@kernel("Pad")
def pad_1(_node: Call, data: Array, *, paddings: Sequence[int], mode: str = "constant", value: float = 0.0) -> Array:
    """Pad every axis by `paddings` (begins, then ends). ONNX Pad-1."""
    return _padded(data, paddings, None, mode, np.array(value).astype(data.dtype))


@kernel("Pad", since=2)
def pad_2(_node: Call, data: Array, *, pads: Sequence[int], mode: str = "constant", value: float = 0.0) -> Array:
    """Pad (or crop, where negative) every axis by `pads` (begins, then ends). ONNX Pad-2."""
    return _padded(data, pads, None, mode, np.array(value).astype(data.dtype))


@kernel("Pad", since=11)
def pad(
    _node: Call,
    data: Array,
    pads: Array,
    constant_value: Array | None = None,
    axes: Array | None = None,
    *,
    mode: str = "constant",
) -> Array:
    """Pad (or crop, where negative) `axes`, or all, by `pads` (begins, then ends). ONNX Pad-11, -18 (axes), -19 (wrap)."""
    value = _zero(data)
    if constant_value is not None and constant_value.size:
        if constant_value.size != 1:
            raise InvalidArgument(f"constant_value has shape {constant_value.shape}; expected one element")
        value = constant_value.reshape(-1)[0]
    return _padded(data, as_ints(pads, "pads"), None if axes is None else as_ints(axes, "axes"), mode, value)


@kernel("CenterCropPad")
def center_crop_pad(_node: Call, data: Array, shape: Array, *, axes: Sequence[int] | None = None) -> Array:
    """Crop or zero-pad `axes` (default: all) to the lengths in `shape`, about the centre. ONNX CenterCropPad-18."""
    wanted = as_ints(shape, "shape")
    places = tuple(range(data.ndim)) if axes is None else normalize_axes(axes, data.ndim)
    if len(wanted) != len(places) or any(length < 0 for length in wanted):
        raise InvalidArgument(f"shape={list(wanted)} for {len(places)} axes; expected one length >= 0 for each")
    begins, ends = [], []
    for axis, want in zip(places, wanted, strict=True):
        surplus = want - data.shape[axis]
        begin = surplus // 2 if surplus >= 0 else -(-surplus // 2)
        begins.append(begin)
        ends.append(surplus - begin)
    return _padded(data, [*begins, *ends], places, "constant", _zero(data))


@kernel("ReverseSequence", since=10)
def reverse_sequence(_node: Call, data: Array, sequence_lens: Array, *, batch_axis: int = 1, time_axis: int = 0) -> Array:
    """Reverse the first sequence_lens[b] steps along `time_axis` for each b of `batch_axis`. ONNX ReverseSequence-10."""
    if {batch_axis, time_axis} != {0, 1} or data.ndim < 2:
        raise InvalidArgument(
            f"batch_axis={batch_axis}, time_axis={time_axis} for data of shape {data.shape}; expected 0 and 1 in either order"
        )
    T, N = data.shape[time_axis], data.shape[batch_axis]
    if sequence_lens.shape != (N,) or (N and not 0 <= sequence_lens.min() <= sequence_lens.max() <= T):
        raise InvalidArgument(f"sequence_lens={sequence_lens.tolist()}; expected {N} lengths in [0, {T}]")
    steps = np.arange(T)[:, None]
    source = np.where(steps < sequence_lens, sequence_lens - 1 - steps, steps)
    batches = np.arange(N)
    return data[source, batches] if time_axis == 0 else data[batches[:, None], source.T]


@kernel("Trilu", since=14)
def trilu(_node: Call, data: Array, k: Array | None = None, *, upper: int = 1) -> Array:
    """Keep the upper (or lower) triangle of the last two axes from diagonal `k` on, zero the rest. ONNX Trilu-14."""
    if data.ndim < 2:
        raise InvalidArgument(f"data has shape {data.shape}; expected rank 2 or higher")
    rows, columns = data.shape[-2:]
    diagonal = 0 if k is None else min(max(as_int(k, "k"), -rows - 1), columns + 1)
    lower = np.tri(rows, columns, diagonal - 1 if upper else diagonal, dtype=bool)
    output = np.full(data.shape, _zero(data), data.dtype)
    np.copyto(output, data, where=~lower if upper else lower)
    return output
