"""Operators that take parts of tensors and put tensors together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidGraph
from sardonyx.ir import Dim, Shape
from sardonyx.ir.shape import anonymous, at_least_zero, ceil_div, maximum, minimum
from sardonyx.ops.fact import Fact, ShapeCall, dims_text, known, shape_function, tensor
from sardonyx.ops.shapes.axes import merge_dims, replace_dim, unknown_shape
from sardonyx.ops.shapes.elements import dims_of
from sardonyx.ops.views.axes import distinct_axes
from sardonyx.ops.views.inputs import COMPUTED, Integers, elements
from sardonyx.ops.views.slice import Concat, Pad, Slice, Split

__all__: list[str] = []

_TO_THE_END = (2**31 - 1, 2**63 - 1)
_FAR = 2**31 - 1
"""An index from which on a slice is taken to reach the end of any symbolic dimension."""


@shape_function("Slice")
def slice_(
    call: ShapeCall,
    x: Fact,
    starts: Fact | None = None,
    ends: Fact | None = None,
    axes: Fact | None = None,
    steps: Fact | None = None,
) -> Fact:
    """Return ranges along axes; bounds are clamped to the dimension."""
    if x.shape is None:
        return tensor(x.dtype)
    view = Slice.of(call, elements(x, starts, ends, axes, steps))
    first, last, strides = (_dims(given, fact) for given, fact in ((view.starts, starts), (view.ends, ends), (view.steps, steps)))
    count = _count(first, last, starts, ends, axes)
    places = None if count is None or view.axes is COMPUTED else range(count) if view.axes is None else view.axes
    if places is None or count is None:
        return tensor(x.dtype, unknown_shape(len(x.shape)))
    strides = [1] * count if view.steps is None else strides or [None] * count
    if view.opens_backwards:
        last = [_opened(end, step) for end, step in zip(last, strides, strict=False)] if last is not None else None
    return _slice(x, first or [None] * count, last or [None] * count, places, strides)


def _dims(given: Integers, fact: Fact | None) -> list[Dim | None] | None:
    """Return the numbers of an attribute or an input, of which some may be symbolic or unknown."""
    return list[Dim | None](given) if isinstance(given, tuple) else dims_of(fact)


def _opened(end: Dim | None, step: Dim | None) -> Dim | None:
    """Return an end of Slice-10, where the greatest integers mean "as far as the axis goes" backwards too."""
    return -_TO_THE_END[1] if end in _TO_THE_END and isinstance(step, int) and step < 0 else end


def _count(
    first: list[Any] | None, last: list[Any] | None, starts: Fact | None, ends: Fact | None, axes: Fact | None
) -> int | None:
    """Return how many axes are sliced, where any input says so."""
    for given in (first, last):
        if given is not None:
            return len(given)
    for fact in (starts, ends, axes):
        if fact is not None and fact.shape and isinstance(fact.shape[0], int):
            return fact.shape[0]
    return None


def _slice(
    x: Fact, starts: Sequence[Dim | None], ends: Sequence[Dim | None], axes: Sequence[int], steps: Sequence[Dim | None]
) -> Fact:
    shape = x.shape or ()
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise InvalidGraph(f"starts, ends, axes and steps have {len(starts)}, {len(ends)}, {len(axes)} and {len(steps)} elements")
    places = distinct_axes(axes, len(shape))
    dims = list(shape)
    for place, start, end, step in zip(places, starts, ends, steps, strict=True):
        if step == 0:
            raise InvalidGraph("a step is 0; expected a positive or negative one")
        dims[place] = _sliced(dims[place], start, end, step)
    if x.value is None:
        return tensor(x.dtype, tuple(dims))
    value = _sliced_value(x.value, places, starts, ends, steps)
    return tensor(x.dtype, tuple(dims)) if value is None else known(x.dtype, value)


def _sliced(dim: Dim, start: Dim | None, end: Dim | None, step: Dim | None) -> Dim:
    """Return how many elements of `dim` the range from `start` to `end` has."""
    if start is None or end is None or not isinstance(step, int):
        return anonymous()
    if isinstance(dim, int) and isinstance(start, int) and isinstance(end, int):
        return len(range(dim)[_part(start, end, step, dim)])
    if step < 0:
        return _reversed(dim, start, end, step)
    first, last = _clamped(start, dim), _clamped(end, dim)
    if first is None or last is None:
        return anonymous()
    if last == dim:
        extent = maximum(dim - start, 0) if at_least_zero(start) else minimum(dim, -start)
    elif at_least_zero(start) and at_least_zero(end) and at_least_zero(end - start):
        extent = minimum(end - start, maximum(dim - start, 0))
    else:
        extent = maximum(last - first, 0)
    return ceil_div(extent, step)


def _part(start: int, end: int, step: int, size: int) -> slice:
    """Return what a range along an axis of `size` means, as Python's slice: a start before the axis is its first element."""
    return slice(max(start, -size) if step < 0 else start, end, step)


def _clamped(index: Dim, dim: Dim) -> Dim | None:
    """Return `index` counted from the front and clamped to [0, dim]; None where its sign is unknown."""
    if isinstance(index, int) and index >= _FAR:
        return dim
    if at_least_zero(index):
        return minimum(index, dim)
    return maximum(dim + index, 0) if at_least_zero(-index) else None


def _reversed(dim: Dim, start: Dim, end: Dim, step: int) -> Dim:
    """Return the whole dimension backwards, which is all that is known of a symbolic one."""
    is_whole = isinstance(start, int) and (start == -1 or start >= _FAR) and isinstance(end, int) and end <= -_FAR
    return ceil_div(dim, -step) if is_whole else anonymous()


def _sliced_value(
    value: Array, places: Sequence[int], starts: Sequence[Dim | None], ends: Sequence[Dim | None], steps: Sequence[Dim | None]
) -> Array | None:
    index = [slice(None)] * value.ndim
    for place, start, end, step in zip(places, starts, ends, steps, strict=True):
        if not (isinstance(start, int) and isinstance(end, int) and isinstance(step, int)):
            return None
        index[place] = _part(start, end, step, value.shape[place])
    return value[tuple(index)]


@shape_function("Concat")
def concat(call: ShapeCall, first: Fact, *others: Fact | None) -> Fact:
    """Concatenate the inputs one after the other along the axis."""
    return _concat((first, *[fact for fact in others if fact is not None]), Concat.of(call))


def _concat(inputs: Sequence[Fact], view: Concat) -> Fact:
    dtype = next((fact.dtype for fact in inputs if fact.dtype is not None), None)
    if any(fact.shape is None for fact in inputs):
        ranks = [len(fact.shape) for fact in inputs if fact.shape is not None]
        for rank in ranks:
            view.place(rank)
        return tensor(dtype, unknown_shape(ranks[0]) if ranks else None)
    shapes = [fact.shape for fact in inputs if fact.shape is not None]
    place = view.place(len(shapes[0]))
    shape = _concatenated(shapes, place)
    if len(shape) == 1 and any(fact.value is not None for fact in inputs):
        value = _joined(inputs)
        return tensor(dtype, shape) if value is None else known(dtype, value)
    if any(fact.value is None for fact in inputs):
        return tensor(dtype, shape)
    return known(dtype, np.concatenate([fact.value for fact in inputs if fact.value is not None], place))


def _concatenated(shapes: Sequence[Shape], axis: int) -> Shape:
    result = shapes[0]
    for shape in shapes[1:]:
        if len(shape) != len(result):
            raise InvalidGraph(
                f"inputs of ranks {len(result)} and {len(shape)} cannot be put together: {dims_text(result)} and {dims_text(shape)}"
            )
        result = tuple(
            a + b if place == axis else merge_dims(a, b, f"dimension {place} of the inputs")
            for place, (a, b) in enumerate(zip(result, shape, strict=True))
        )
    return result


def _joined(inputs: Sequence[Fact]) -> Array | None:
    """Return the elements of vectors one after the other, unknown where a vector of known length is."""
    elements: list[object] = []
    for fact in inputs:
        length = fact.shape[0] if fact.shape else None
        if fact.value is not None:
            elements += fact.value.tolist()
        elif isinstance(length, int) and length <= 64:
            elements += [None] * length
        else:
            return None
    if all(fact.value is not None and fact.value.dtype != object for fact in inputs):
        return np.concatenate([fact.value for fact in inputs if fact.value is not None])
    joined = np.empty(len(elements), object)
    joined[:] = elements
    return joined


@shape_function("Split")
def split(call: ShapeCall, x: Fact, sizes: Fact | None = None) -> tuple[Fact, ...]:
    """Return parts along the axis: of the given lengths, or equal ones of which the last may be shorter."""
    view, stated = Split.of(call, elements(x, sizes)), call.integer("num_outputs")
    if stated is not None and stated != call.output_count:
        raise InvalidGraph(f"num_outputs={stated}, but the node has {call.output_count} outputs; the two must agree")
    if view.sizes is None:
        return _split_evenly(x, view, call.output_count)
    lengths = dims_of(sizes) if view.sizes is COMPUTED else list[Dim | None](view.sizes)
    return _split(x, view, [None] * call.output_count if lengths is None else lengths)


def _split_evenly(x: Fact, view: Split, count: int) -> tuple[Fact, ...]:
    """Return parts of one length; where they need not be even the last ones are shorter, or empty."""
    if x.shape is None or count == 0:
        return (tensor(x.dtype),) * count
    dim = x.shape[view.place(len(x.shape))]
    part = ceil_div(dim, count)
    if count == 1 or (part * count == dim):
        return _split(x, view, [part] * count)
    if view.is_even and isinstance(dim, int):
        shape = dims_text(x.shape)
        raise InvalidGraph(f"axis {view.axis} of shape {shape} does not split into {count} equal parts; give 'split'")
    if view.is_even:
        return _split(x, view, [part] * (count - 1) + [dim - part * (count - 1)])
    return _split(x, view, [minimum(part, maximum(dim - part * place, 0)) for place in range(count)])


def _split(x: Fact, view: Split, lengths: Sequence[Dim | None]) -> tuple[Fact, ...]:
    if x.shape is None:
        return (tensor(x.dtype),) * len(lengths)
    place = view.place(len(x.shape))
    dim = x.shape[place]
    sizes = [length for length in lengths if isinstance(length, int)]
    if isinstance(dim, int) and len(sizes) == len(lengths) and sum(sizes) != dim:
        raise InvalidGraph(f"the parts {sizes} do not add up to {dim}, the size of axis {view.axis} of shape {dims_text(x.shape)}")
    shapes = [replace_dim(x.shape, place, anonymous() if length is None else length) for length in lengths]
    if x.value is None or len(sizes) < len(lengths):
        return tuple([tensor(x.dtype, shape) for shape in shapes])
    return tuple([known(x.dtype, part) for part in np.split(x.value, np.cumsum(sizes)[:-1].tolist(), place)])


@shape_function("Pad", domain="com.microsoft")
@shape_function("Pad")
def pad(call: ShapeCall, x: Fact, pads: Fact | None = None, value: Fact | None = None, axes: Fact | None = None) -> Fact:
    """Extend each axis by its pads at begin and end, which may be negative."""
    view = Pad.of(call, elements(x, pads, value, axes))
    if x.shape is None:
        return tensor(x.dtype)
    amounts, places = _dims(view.pads, pads), view.places(len(x.shape))
    if amounts is None or places is None:
        return tensor(x.dtype, unknown_shape(len(x.shape)))
    return _pad(x, amounts, places)


def _pad(x: Fact, amounts: Sequence[Dim | None], axes: Sequence[int]) -> Fact:
    shape = x.shape or ()
    count = len(axes)
    if len(amounts) != 2 * count:
        raise InvalidGraph(f"pads has {len(amounts)} elements for {count} axes; expected begin and end of each, {2 * count}")
    dims = list(shape)
    for place, begin, end in zip(axes, amounts[:count], amounts[count:], strict=True):
        dims[place] = anonymous() if begin is None or end is None else dims[place] + begin + end
        if isinstance(dims[place], int) and not at_least_zero(dims[place]):
            raise InvalidGraph(f"pads {begin} and {end} leave {dims[place]} of axis {place} of shape {dims_text(shape)}")
    return tensor(x.dtype, tuple(dims))


@shape_function("Trilu", "ReverseSequence")
def same_shape(call: ShapeCall, x: Fact, other: Fact | None = None) -> Fact:
    """Give the output the shape and type of the first input."""
    return tensor(x.dtype, x.shape)


@shape_function("CenterCropPad")
def center_crop_pad(call: ShapeCall, x: Fact, shape: Fact, *, axes: Sequence[int] | None = None) -> Fact:
    """Give the named axes the sizes that the second input holds."""
    if x.shape is None:
        return tensor(x.dtype)
    target = dims_of(shape)
    places = distinct_axes(range(len(x.shape)) if axes is None else axes, len(x.shape))
    sizes: Sequence[Dim | None] = [None] * len(places) if target is None else target
    if len(sizes) != len(places):
        raise InvalidGraph(f"the target shape has {len(sizes)} elements for {len(places)} axes of shape {dims_text(x.shape)}")
    dims = list(x.shape)
    for place, size in zip(places, sizes, strict=True):
        dims[place] = anonymous() if size is None else size
    return tensor(x.dtype, tuple(dims))
