"""Reductions over axes, positions of extremes, and running sums and products.

The axes are an attribute before opset 18 (ReduceSum: 13) and an input since. No axes mean all of them, unless
`noop_with_empty_axes` says none; squares, logarithms and absolute values are taken in either case.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from sardonyx.cancellation import check_cancelled
from sardonyx.dtypes import Array, DataType, is_float, is_integer
from sardonyx.errors import InvalidArgument
from sardonyx.ops.views.inputs import COMPUTED
from sardonyx.ops.views.reduce import ArgExtreme, Cumulative, Reduce
from sardonyx.providers.reference.algorithms.dimensions import as_int, as_ints, normalize_axis
from sardonyx.providers.reference.algorithms.precision import compute_type, quiet, widen
from sardonyx.providers.reference.registry import Call, KernelFunction, kernel

__all__ = ["ReduceFunction", "arg_extreme", "cumulate"]

_LONG_SLICE = 64
"""From so many elements on, running results are made a slice at a time."""
_PART_ELEMENTS = 1 << 22
"""How many running results are made between two checks of whether the run is to end."""

ReduceFunction = Callable[[Array, tuple[int, ...]], Array]
"""Reduces an array in its compute type over axes, which it keeps with size 1; of an integer it may return float64."""


def _total(x: Array, axes: tuple[int, ...]) -> Array:
    if len(axes) == 1 and x.dtype.kind == "f" and axes[0] < x.ndim - 1 and x.shape[axes[0]] >= _LONG_AXIS:
        return _total_in_chunks(x, axes[0])
    return np.asarray(np.add.reduce(x, axis=axes, dtype=x.dtype, keepdims=True))


_LONG_AXIS = 128
"""From this length on, a sum along an axis that is not the last is taken in chunks."""


def _total_in_chunks(x: Array, axis: int) -> Array:
    """Return the sum along `axis` as a sum of about √n partial sums, whose rounding error grows with √n rather than n.

    NumPy sums pairwise along the last axis only.
    """
    length = x.shape[axis]
    chunk = math.isqrt(length)
    head, tail = np.split(x, [length - length % chunk], axis=axis)
    parts = np.add.reduce(head.reshape(*x.shape[:axis], -1, chunk, *x.shape[axis + 1 :]), axis=axis + 1)
    total = np.add.reduce(parts, axis=axis, keepdims=True)
    if tail.shape[axis]:
        np.add(total, np.add.reduce(tail, axis=axis, keepdims=True), out=total)
    return np.asarray(total)


def _mean(x: Array, axes: tuple[int, ...]) -> Array:
    total = _total(x, axes)
    count = math.prod(x.shape[axis] for axis in axes)
    if x.dtype.kind in "iu":
        whole = total.dtype.type(count)
        return np.asarray((total - np.fmod(total, whole)) // whole)
    return np.asarray(np.divide(total, x.dtype.type(count)))


def _product(x: Array, axes: tuple[int, ...]) -> Array:
    return np.asarray(np.multiply.reduce(x, axis=axes, dtype=x.dtype, keepdims=True))


def _sum_of_squares(x: Array, axes: tuple[int, ...]) -> Array:
    return _total(np.square(x), axes)


def _norm_1(x: Array, axes: tuple[int, ...]) -> Array:
    return _total(np.absolute(x), axes)


def _norm_2(x: Array, axes: tuple[int, ...]) -> Array:
    return np.asarray(np.sqrt(_sum_of_squares(_as_float(x), axes)))


def _log_sum(x: Array, axes: tuple[int, ...]) -> Array:
    return np.asarray(np.log(_total(_as_float(x), axes)))


def _log_sum_exp(x: Array, axes: tuple[int, ...]) -> Array:
    """Return log(sum(exp(x))) with the largest finite element taken out, so that nothing overflows."""
    exact = _as_float(x)
    largest = np.maximum.reduce(exact, axis=axes, keepdims=True, initial=-np.inf)
    largest = np.where(np.isfinite(largest), largest, exact.dtype.type(0))
    return np.asarray(np.log(_total(np.exp(exact - largest), axes)) + largest)


def _largest(x: Array, axes: tuple[int, ...]) -> Array:
    if x.size == 0:
        return np.asarray(np.maximum.reduce(x, axis=axes, keepdims=True, initial=_extremes(x.dtype)[0]))
    return np.asarray(np.maximum.reduce(x, axis=axes, keepdims=True))


def _smallest(x: Array, axes: tuple[int, ...]) -> Array:
    if x.size == 0:
        return np.asarray(np.minimum.reduce(x, axis=axes, keepdims=True, initial=_extremes(x.dtype)[1]))
    return np.asarray(np.minimum.reduce(x, axis=axes, keepdims=True))


def _extremes(dtype: np.dtype[Any]) -> tuple[object, object]:
    """Return what is no greater, and no less, than any value of `dtype`."""
    data_type = DataType.from_numpy(dtype)
    if is_float(data_type):
        return -np.inf, np.inf
    if is_integer(data_type):
        limits = np.iinfo(dtype)
        return limits.min, limits.max
    return False, True


def _as_float(x: Array) -> Array:
    return x.astype(np.float64) if x.dtype.kind in "iu" else x


_FUNCTIONS: dict[str, ReduceFunction] = {
    "ReduceL1": _norm_1,
    "ReduceL2": _norm_2,
    "ReduceLogSum": _log_sum,
    "ReduceLogSumExp": _log_sum_exp,
    "ReduceMax": _largest,
    "ReduceMean": _mean,
    "ReduceMin": _smallest,
    "ReduceProd": _product,
    "ReduceSum": _total,
    "ReduceSumSquare": _sum_of_squares,
}


def _finish(result: Array, x: Array, over: tuple[int, ...], keeps_axes: bool) -> Array:
    result = result.astype(x.dtype, copy=False)
    return result if keeps_axes else result.reshape([size for axis, size in enumerate(x.shape) if axis not in over])


def _kernel(function: ReduceFunction) -> KernelFunction:
    """Return the kernel that reduces x, of any shape, over the axes that an attribute or an input (1-D int64) names.

    Its type out.
    """

    @quiet
    def apply(_node: Call, x: Array, axes: Array | None = None, *, view: Reduce) -> Array:
        if view.axes is COMPUTED:
            named = () if axes is None else as_ints(axes, "axes")
            view = view._replace(axes=tuple(normalize_axis(axis, x.ndim, "axes") for axis in named))
        over = view.places(x.ndim) or ()
        return _finish(function(widen(x), over), x, over, view.keeps_axes)

    return apply


for _name, _function in _FUNCTIONS.items():
    kernel(_name, since=1, view=Reduce)(_kernel(_function))
    kernel(_name, since=13 if _name == "ReduceSum" else 18, view=Reduce)(_kernel(_function))


def arg_extreme(find: Callable[..., Any]) -> KernelFunction:
    """Return the kernel that finds the first (or last) extreme along `axis`: x not empty there; int64 out. ONNX ArgMax, ArgMin."""

    def apply(_node: Call, x: Array, *, view: ArgExtreme) -> Array:
        axis = view.place(max(x.ndim, 1))
        values = widen(x) if x.ndim else widen(x).reshape(1)
        if values.shape[axis] == 0:
            raise InvalidArgument(f"axis {axis} of shape {x.shape} has no element to choose from")
        if view.takes_last:
            found = values.shape[axis] - 1 - find(np.flip(values, axis), axis=axis, keepdims=True)
        else:
            found = find(values, axis=axis, keepdims=True)
        if x.ndim == 0:
            return np.asarray(found, np.int64).reshape(())
        return np.asarray(found if view.keeps_axis else found.squeeze(axis), np.int64)

    return apply


kernel("ArgMax", view=ArgExtreme)(arg_extreme(np.argmax))
kernel("ArgMin", view=ArgExtreme)(arg_extreme(np.argmin))


def cumulate(ufunc: np.ufunc, neutral: int) -> KernelFunction:
    """Return the kernel that accumulates along `axis` (a scalar input): same shape and type out. ONNX CumSum-11, -14, CumProd-26.

    `exclusive` leaves out the element itself, starting from `neutral`; `reverse` goes from the end.
    """

    @quiet
    def apply(_node: Call, x: Array, axis: Array, *, view: Cumulative) -> Array:
        along = normalize_axis(as_int(axis, "axis"), x.ndim)
        source = np.flip(x, along) if view.is_reversed else x
        wide = compute_type(x.dtype)
        if view.is_exclusive:
            result = np.full(x.shape, neutral, wide)
            later, earlier = _slices(x.ndim, along)
            _accumulate(ufunc, source[earlier].astype(wide, copy=False), along, result[later])
        else:
            result = np.empty(x.shape, wide)
            _accumulate(ufunc, source.astype(wide, copy=False), along, result)
        result = result.astype(x.dtype, copy=False)
        return np.flip(result, along) if view.is_reversed else result

    return apply


def _accumulate(ufunc: np.ufunc, source: Array, axis: int, out: Array) -> None:
    """Fill `out` with the running results along `axis`: a slice at a time where slices are long, which is vectorised."""
    if math.prod(source.shape[axis + 1 :]) < _LONG_SLICE:
        _accumulate_parts(ufunc, source, axis, out)
        return
    slices, results = np.moveaxis(source, axis, 0), np.moveaxis(out, axis, 0)
    results[:1] = slices[:1]
    for before, item, result in zip(results, slices[1:], results[1:], strict=False):
        check_cancelled()
        ufunc(before, item, out=result)


def _accumulate_parts(ufunc: np.ufunc, source: Array, axis: int, out: Array) -> None:
    """Fill `out` with the running results along `axis`, some of them at a time; each continues the one before."""
    length = source.shape[axis]
    step = max(1, _PART_ELEMENTS * length // max(1, source.size))
    for start in range(0, length, step):
        check_cancelled()
        places = (slice(None),) * axis + (slice(start, start + step),)
        part = source[places]
        if start:
            first = (slice(None),) * axis + (0,)
            part = part.copy()
            part[first] = ufunc(out[(*first[:-1], start - 1)], part[first])
        ufunc.accumulate(part, axis=axis, out=out[places])


def _slices(rank: int, axis: int) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """Return all but the first, and all but the last, along `axis`."""
    before = (slice(None),) * axis
    after = (slice(None),) * (rank - axis - 1)
    return (*before, slice(1, None), *after), (*before, slice(None, -1), *after)


kernel("CumProd", view=Cumulative)(cumulate(np.multiply, 1))
kernel("CumSum", view=Cumulative)(cumulate(np.add, 0))
