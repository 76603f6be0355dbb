"""Resampling of images."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sardonyx.errors import InvalidGraph
from sardonyx.ir import Dim, Expr, Shape
from sardonyx.ir.shape import anonymous
from sardonyx.ops.fact import Fact, ShapeCall, dims_text, shape_function, tensor
from sardonyx.ops.shapes.axes import normalize_axes, require_rank, unknown_shape
from sardonyx.ops.shapes.elements import dims_of

__all__: list[str] = []


@shape_function("Resize", since=11)
def resize(
    call: ShapeCall,
    x: Fact,
    roi: Fact | None = None,
    scales: Fact | None = None,
    sizes: Fact | None = None,
    *,
    axes: Sequence[int] | None = None,
    keep_aspect_ratio_policy: str = "stretch",
) -> Fact:
    """Each named axis gets its size, or floor(size * scale)."""
    if x.shape is None:
        return tensor(x.dtype)
    places = normalize_axes(range(len(x.shape)) if axes is None else axes, len(x.shape))
    if sizes is not None and sizes.shape != (0,):
        return tensor(x.dtype, _sized(x.shape, places, dims_of(sizes), keep_aspect_ratio_policy))
    if scales is None or scales.shape == (0,):
        return tensor(x.dtype, unknown_shape(len(x.shape)))
    return tensor(x.dtype, _scaled(x.shape, places, scales))


@shape_function("Upsample")
@shape_function("Upsample", since=9)
@shape_function("Resize", since=10)
def resize_before_11(
    call: ShapeCall, x: Fact, scales: Fact | None = None, *, height_scale: float | None = None, width_scale: float | None = None
) -> Fact:
    """The same, with scales alone."""
    if x.shape is None:
        return tensor(x.dtype)
    if height_scale is not None and width_scale is not None and len(x.shape) == 4:
        return tensor(x.dtype, _times(x.shape, (1.0, 1.0, height_scale, width_scale)))
    if scales is None:
        return tensor(x.dtype, unknown_shape(len(x.shape)))
    return tensor(x.dtype, _scaled(x.shape, range(len(x.shape)), scales))


@shape_function("Upsample", since=7)
def upsample_7(call: ShapeCall, x: Fact, *, scales: Sequence[float] = ()) -> Fact:
    """The same, with the scales as an attribute."""
    return tensor(x.dtype, None if x.shape is None else _times(x.shape, scales))


def _sized(shape: Shape, axes: Sequence[int], sizes: Sequence[Dim | None] | None, policy: str) -> Shape:
    if sizes is None:
        return tuple([anonymous() if axis in axes else dim for axis, dim in enumerate(shape)])
    if len(sizes) != len(axes):
        raise InvalidGraph(f"sizes has {len(sizes)} elements for {len(axes)} axes of an input of shape {dims_text(shape)}")
    dims = list(shape)
    for axis, size in zip(axes, sizes, strict=True):
        dims[axis] = anonymous() if size is None else size
    return tuple(dims) if policy == "stretch" else _kept_ratio(shape, axes, dims, policy)


def _kept_ratio(shape: Shape, axes: Sequence[int], dims: list[Dim], policy: str) -> Shape:
    """All named axes scaled by one factor: the least ("not_larger") or greatest that one of the sizes asks for."""
    before = [dim for axis in axes if isinstance(dim := shape[axis], int)]
    after = [dim for axis in axes if isinstance(dim := dims[axis], int)]
    if len(before) < len(axes) or len(after) < len(axes) or 0 in before:
        return tuple([anonymous() if axis in axes else dim for axis, dim in enumerate(shape)])
    choose = min if policy == "not_larger" else max
    scale = choose(new / old for new, old in zip(after, before, strict=True))
    for axis, old in zip(axes, before, strict=True):
        dims[axis] = math.floor(old * scale + 0.5)
    return tuple(dims)


def _scaled(shape: Shape, axes: Sequence[int], scales: Fact) -> Shape:
    factors = scales.constant
    if factors is None:
        return tuple([anonymous() if axis in axes else dim for axis, dim in enumerate(shape)])
    if factors.size != len(axes):
        raise InvalidGraph(f"scales has {factors.size} elements for {len(axes)} axes of an input of shape {dims_text(shape)}")
    every = np.ones(len(shape), np.float64)
    every[list(axes)] = factors.reshape(-1)
    return _times(shape, every.tolist())


def _times(shape: Shape, factors: Sequence[float]) -> Shape:
    if len(factors) != len(shape):
        raise InvalidGraph(f"scales has {len(factors)} elements for an input of shape {dims_text(shape)}")
    return tuple([_time(dim, factor) for dim, factor in zip(shape, factors, strict=True)])


def _time(dim: Dim, factor: float) -> Dim:
    """floor(dim * factor), in the float32 that scales come in where the factor is no integer."""
    if factor == 1.0:
        return dim
    if not isinstance(dim, Expr):
        return math.floor(float(np.float32(dim) * np.float32(factor)))
    if factor.is_integer():
        return dim * int(factor)
    if factor > 0 and (1 / factor).is_integer():
        return dim // int(1 / factor)
    return anonymous()


@shape_function("GridSample")
@shape_function("GridSample", domain="com.microsoft")
def grid_sample(call: ShapeCall, x: Fact, grid: Fact) -> Fact:
    """(N, C, spatial…) at a grid (N, places…, spatial axes) -> (N, C, places…)."""
    shape, places = require_rank(x, "X", 3), require_rank(grid, "grid", 3)
    if shape is None or places is None:
        found = places if shape is None else shape
        return tensor(x.dtype, None if found is None else unknown_shape(len(found)))
    return tensor(x.dtype, (*shape[:2], *places[1:-1]))


@shape_function("AffineGrid")
def affine_grid(call: ShapeCall, theta: Fact, size: Fact) -> Fact:
    """Sizes (N, C, spatial…) -> (N, spatial…, spatial axes)."""
    sizes = dims_of(size)
    if sizes is None:
        length = size.shape[0] if size.shape else None
        return tensor(theta.dtype, (*unknown_shape(length - 1), length - 2) if isinstance(length, int) and length > 2 else None)
    dims = [anonymous() if dim is None else dim for dim in sizes]
    return tensor(theta.dtype, (dims[0], *dims[2:], len(dims) - 2))
