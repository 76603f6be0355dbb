"""Reference kernels of sampling at given positions: AffineGrid, GridSample."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sardonyx.dtypes import Array, DataType, is_float, is_integer
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.dimensions import as_ints, check_output_size
from sardonyx.providers.reference.algorithms.precision import quiet, widen
from sardonyx.providers.reference.algorithms.requantize import integer_limits
from sardonyx.providers.reference.algorithms.sampling import Tap, sample
from sardonyx.providers.reference.registry import Call, kernel

__all__: list[str] = []

_FARTHEST = 1 << 40
"""Positions beyond this many elements are brought back to it: no axis is longer, and integers hold it."""
_CUBIC_COEFFICIENT = -0.75


@kernel("AffineGrid", since=20)
@quiet
def affine_grid(node: Call, theta: Array, size: Array, *, align_corners: int = 0) -> Array:
    """Map the evenly spaced positions of an output of `size` by theta (N, r, r + 1), r spatial axes; half types in float32.

    Returns (N, *spatial, r), positions listed innermost axis first. Source: ONNX AffineGrid-20.
    """
    shape = as_ints(size, "size")
    rank = len(shape) - 2
    if rank not in (2, 3) or theta.shape != (shape[0], rank, rank + 1) or min(shape) < 0:
        raise InvalidArgument(
            f"size = {list(shape)} and theta has shape {theta.shape}; expected (N, C, H, W) and (N, 2, 3), or "
            "(N, C, D, H, W) and (N, 3, 4)"
        )
    check_output_size((shape[0], *shape[2:], rank), theta.dtype.itemsize)
    wide = widen(theta)
    y = np.empty((shape[0], *shape[2:], rank), wide.dtype)
    plane = np.empty((shape[0], *shape[2:]), wide.dtype)
    for part in range(rank):
        row = wide[:, part].reshape(-1, rank + 1, *(1,) * rank)
        plane[...] = row[:, rank]
        for axis, length in enumerate(shape[2:]):
            positions = _evenly_spaced(length, bool(align_corners)).astype(wide.dtype)
            plane += positions.reshape(-1, *(1,) * (rank - 1 - axis)) * row[:, rank - 1 - axis]
        y[..., part] = plane
    return y.astype(theta.dtype, copy=False)


def _evenly_spaced(length: int, align_corners: bool) -> Array:
    """Return `length` positions from -1 to 1: the elements' centres, or where `align_corners` the first and last at the ends."""
    if align_corners:
        return np.linspace(-1.0, 1.0, length) if length != 1 else np.zeros(1)
    return (2 * np.arange(length) + 1) / max(1, length) - 1


@kernel("GridSample", since=16)
@quiet
def grid_sample(
    node: Call, x: Array, grid: Array, *, align_corners: int = 0, mode: str = "linear", padding_mode: str = "zeros"
) -> Array:
    """Sample x (N, C, *spatial) at the positions grid (N, *outputs, r), innermost axis first, into (N, C, *outputs).

    "nearest" takes any type, ties go to the even element; "linear" and "cubic" blend numbers in float32 or wider and truncate
    to integers. Source: ONNX GridSample-22; "bilinear" and "bicubic" are the names of version 16.
    """
    rank = x.ndim - 2
    if rank < 1 or grid.ndim != x.ndim or grid.shape[0] != x.shape[0] or grid.shape[-1] != rank:
        raise InvalidArgument(
            f"X has shape {x.shape} and grid has shape {grid.shape}; expected (N, C, *spatial) and (N, *outputs, r) with one "
            "r for the number of spatial axes"
        )
    neighbours = _NEIGHBOURS.get(mode)
    if neighbours is None:
        raise InvalidArgument(f"mode = {mode!r}, expected one of {sorted(_NEIGHBOURS)}")
    pad = _PADDINGS.get(padding_mode)
    if pad is None:
        raise InvalidArgument(f"padding_mode = {padding_mode!r}, expected one of {sorted(_PADDINGS)}")
    output = (*x.shape[:2], *grid.shape[1:-1])
    check_output_size(output, x.dtype.itemsize)
    if 0 in x.shape[2:] and 0 not in output:
        raise InvalidArgument(f"X has shape {x.shape}: nothing can be sampled from an empty axis")
    source = x if mode == "nearest" else _blendable(x, mode)
    y = np.empty((*output[:2], int(np.prod(output[2:]))), source.dtype)
    for image in range(x.shape[0] if y.size else 0):
        positions = widen(grid[image]).reshape(-1, rank)[:, ::-1].T
        taps = []
        for position, size in zip(positions, x.shape[2:], strict=True):
            at = _element_positions(position, size, bool(align_corners))
            taps.append([pad(index, weight, size, bool(align_corners)) for index, weight in neighbours(at)])
        y[image] = _pick(source[image], taps) if mode == "nearest" else sample(source[image], taps)
    return _rounded(y.reshape(output), x.dtype)


def _blendable(x: Array, mode: str) -> Array:
    kind = DataType.from_numpy(x.dtype)
    if is_float(kind) or x.dtype.kind == "c":
        return widen(x)
    if not is_integer(kind):
        raise InvalidArgument(f"mode {mode} blends numbers, X is of type {kind}; use mode nearest")
    return x.astype(np.float32 if x.dtype.itemsize < 4 else np.float64)


def _rounded(y: Array, dtype: np.dtype[np.generic]) -> Array:
    if dtype == y.dtype or not is_integer(DataType.from_numpy(dtype)):
        return y.astype(dtype, copy=False)
    return np.asarray(np.clip(y, *integer_limits(dtype))).astype(dtype)


def _pick(x: Array, taps: Sequence[Sequence[Tap]]) -> Array:
    """Return the elements of x (C, *sizes) at single taps; zeros, or empty strings, where a weight is 0."""
    index = np.zeros((), np.int64)
    inside = np.ones((), np.bool_)
    for size, axis_taps in zip(x.shape[1:], taps, strict=True):
        index = index * size + axis_taps[0][0]
        inside = inside & (axis_taps[0][1] != 0)
    picked: Array = np.take(x.reshape(x.shape[0], -1), index, axis=1)
    picked[:, ~inside] = "" if x.dtype.kind == "O" else np.zeros((), x.dtype)
    return picked


def _element_positions(position: Array, size: int, align_corners: bool) -> Array:
    """Return positions -1 to 1 as element numbers.

    The ends are the outer elements' centres if `align_corners`, else their edges.
    """
    at = (position + 1) / 2 * (size - 1) if align_corners else ((position + 1) * size - 1) / 2
    return np.clip(np.nan_to_num(at), -_FARTHEST, _FARTHEST)


def _nearest(at: Array) -> list[Tap]:
    return [(np.rint(at).astype(np.int64), np.ones_like(at))]


def _linear(at: Array) -> list[Tap]:
    below = np.floor(at)
    fraction = at - below
    index = below.astype(np.int64)
    return [(index, 1 - fraction), (index + 1, fraction)]


def _cubic(at: Array) -> list[Tap]:
    """Return four neighbours, weighed by the cubic convolution kernel of R. Keys (1981), equation 4."""
    below = np.floor(at)
    t = at - below
    index = below.astype(np.int64)
    a = at.dtype.type(_CUBIC_COEFFICIENT)
    near = [((a + 2) * d - (a + 3)) * d * d + 1 for d in (t, 1 - t)]
    far = [((d - 5) * d + 8) * d * a - 4 * a for d in (1 + t, 2 - t)]
    return [(index - 1, far[0]), (index, near[0]), (index + 1, near[1]), (index + 2, far[1])]


_NEIGHBOURS: dict[str, Callable[[Array], list[Tap]]] = {
    "bicubic": _cubic,
    "bilinear": _linear,
    "cubic": _cubic,
    "linear": _linear,
    "nearest": _nearest,
}


def _pad_zeros(index: Array, weight: Array, size: int, align_corners: bool) -> Tap:
    inside = (index >= 0) & (index < size)
    return np.where(inside, index, 0), np.where(inside, weight, 0).astype(weight.dtype)


def _pad_border(index: Array, weight: Array, size: int, align_corners: bool) -> Tap:
    return np.clip(index, 0, size - 1), weight


def _pad_reflection(index: Array, weight: Array, size: int, align_corners: bool) -> Tap:
    """Reflect at the outer elements' centres if `align_corners`, else at their edges."""
    period = max(1, 2 * (size - 1) if align_corners else 2 * size)
    around = index % period
    return np.where(around < size, around, period - around - (0 if align_corners else 1)), weight


_PADDINGS: dict[str, Callable[[Array, Array, int, bool], Tap]] = {
    "border": _pad_border,
    "reflection": _pad_reflection,
    "zeros": _pad_zeros,
}
