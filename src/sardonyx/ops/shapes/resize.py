"""Resampling of images."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sardonyx.errors import InvalidGraph
from sardonyx.ir import Dim, Expr, Shape
from sardonyx.ir.shape import anonymous
from sardonyx.ops.fact import Fact, ShapeCall, dims_text, shape_function, tensor
from sardonyx.ops.shapes.axes import require_rank, unknown_shape
from sardonyx.ops.shapes.elements import dims_of
from sardonyx.ops.views.inputs import COMPUTED, elements
from sardonyx.ops.views.resize import Resize

__all__: list[str] = []


@shape_function("Resize", since=11)
def resize(call: ShapeCall, x: Fact, roi: Fact | None = None, scales: Fact | None = None, sizes: Fact | None = None) -> Fact:
    """Give each named axis its size, or floor(size * scale)."""
    view = Resize.of(call, elements(x, roi, scales, sizes))
    if x.shape is None:
        return tensor(x.dtype)
    if sizes is not None and sizes.shape != (0,):
        return tensor(x.dtype, _sized(x.shape, view.places(len(x.shape)), dims_of(sizes), view.policy))
    return tensor(x.dtype, _scaled(x.shape, view))


@shape_function("Resize", since=10)
@shape_function("Upsample")
def resize_before_11(call: ShapeCall, x: Fact, scales: Fact | None = None) -> Fact:
    """Return the same, with scales alone."""
    view = Resize.of(call, elements(x, scales))
    return tensor(x.dtype, None if x.shape is None else _scaled(x.shape, view))


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
    """Return all named axes scaled by one factor: the least ("not_larger") or greatest that one of the sizes asks for."""
    before = [dim for axis in axes if isinstance(dim := shape[axis], int)]
    after = [dim for axis in axes if isinstance(dim := dims[axis], int)]
    if len(before) < len(axes) or len(after) < len(axes) or 0 in before:
        return tuple([anonymous() if axis in axes else dim for axis, dim in enumerate(shape)])
    choose = min if policy == "not_larger" else max
    scale = choose(new / old for new, old in zip(after, before, strict=True))
    for axis, old in zip(axes, before, strict=True):
        dims[axis] = math.floor(old * scale + 0.5)
    return tuple(dims)


def _scaled(shape: Shape, view: Resize) -> Shape:
    axes, scales = view.places(len(shape)), view.scales
    if scales is None:
        return unknown_shape(len(shape))
    if scales is COMPUTED:
        return tuple([anonymous() if axis in axes else dim for axis, dim in enumerate(shape)])
    if len(scales) != len(axes):
        raise InvalidGraph(f"scales has {len(scales)} elements for {len(axes)} axes of an input of shape {dims_text(shape)}")
    factors = dict(zip(axes, scales, strict=True))
    return tuple([_time(dim, factors.get(axis, 1.0)) for axis, dim in enumerate(shape)])


def _time(dim: Dim, factor: float) -> Dim:
    """Return floor(dim * factor), in the float32 that scales come in where the factor is no integer."""
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
    """Infer (N, C, spatial…) at a grid (N, places…, spatial axes) -> (N, C, places…)."""
    shape, places = require_rank(x, "X", 3), require_rank(grid, "grid", 3)
    if shape is None or places is None:
        found = places if shape is None else shape
        return tensor(x.dtype, None if found is None else unknown_shape(len(found)))
    return tensor(x.dtype, (*shape[:2], *places[1:-1]))


@shape_function("AffineGrid")
def affine_grid(call: ShapeCall, theta: Fact, size: Fact) -> Fact:
    """Infer sizes (N, C, spatial…) -> (N, spatial…, spatial axes)."""
    sizes = dims_of(size)
    if sizes is None:
        length = size.shape[0] if size.shape else None
        return tensor(theta.dtype, (*unknown_shape(length - 1), length - 2) if isinstance(length, int) and length > 2 else None)
    dims = [anonymous() if dim is None else dim for dim in sizes]
    return tensor(theta.dtype, (dims[0], *dims[2:], len(dims) - 2))
