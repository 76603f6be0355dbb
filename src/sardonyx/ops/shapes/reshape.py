"""Operators that change the shape and keep the elements, or repeat them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidGraph
from sardonyx.ir import Dim, Expr, Shape
from sardonyx.ir.shape import anonymous, is_anonymous
from sardonyx.ops.fact import MAX_VALUE_SIZE, Fact, ShapeCall, dims_text, known, shape_function, tensor
from sardonyx.ops.shapes.axes import require_rank, size_of, unknown_shape
from sardonyx.ops.shapes.broadcast import broadcast
from sardonyx.ops.shapes.elements import dims_of, ints_of
from sardonyx.ops.views.axes import normalize_axis
from sardonyx.ops.views.inputs import COMPUTED, elements
from sardonyx.ops.views.reshape import Blocks, Flatten, Reshape, Squeeze, Tile, Transpose, Unsqueeze
from sardonyx.ops.zero_sizes import may_be_zero

__all__: list[str] = []


@shape_function("Reshape")
def reshape(call: ShapeCall, x: Fact, shape: Fact | None = None) -> Fact:
    """Return elements in a new shape: 0 copies a dimension, -1 takes what is left."""
    view = Reshape.of(call, elements(x, shape))
    if view.shape is None:
        return tensor(x.dtype)
    target = dims_of(shape) if view.shape is COMPUTED else list[Dim | None](view.shape)
    if target is None:
        rank = shape.shape[0] if shape is not None and shape.shape else None
        return tensor(x.dtype, unknown_shape(rank) if isinstance(rank, int) else None)
    return _reshaped(x, _resolve(x.shape, target, view.keeps_zero))


def _resolve(shape: Shape | None, target: Sequence[Dim | None], allow_zero: bool) -> Shape:
    """Return the output's dimensions; the one that is -1 or unknown follows from the number of elements."""
    dims: list[Dim | None] = []
    for index, dim in enumerate(target):
        if isinstance(dim, int) and dim < -1:
            raise InvalidGraph(f"the target shape {_text(target)} has {dim}; expected sizes, 0 or one -1")
        if dim == 0 and not allow_zero:
            dims.append(_copied(shape, index, target))
        elif isinstance(dim, Expr) and not allow_zero and may_be_zero() and not _is_copy(shape, index, dim):
            dims.append(anonymous())
        else:
            dims.append(None if dim == -1 else dim)
    if sum(dim == -1 for dim in target) > 1:
        raise InvalidGraph(f"the target shape {_text(target)} has more than one -1; say all sizes but one")
    open_places = [index for index, dim in enumerate(dims) if dim is None]
    given = [dim for dim in dims if dim is not None]
    if len(open_places) == 1 and shape is not None:
        dims[open_places[0]] = _remaining(shape, given, target)
    elif not open_places and shape is not None and not any(isinstance(dim, Expr) and is_anonymous(dim) for dim in given):
        _check_count(shape, given, target)
    return tuple(anonymous() if dim is None else dim for dim in dims)


def _is_copy(shape: Shape | None, index: int, dim: Dim) -> bool:
    """Return whether a target size is that of the input at its place: then it does not matter whether it is 0."""
    return shape is not None and index < len(shape) and shape[index] == dim


def _copied(shape: Shape | None, index: int, target: Sequence[Dim | None]) -> Dim | None:
    if shape is None:
        return anonymous()
    if index >= len(shape):
        raise InvalidGraph(
            f"the target shape {_text(target)} copies dimension {index} (by 0) of an input of shape {dims_text(shape)}"
        )
    return shape[index]


def _remaining(shape: Shape, given: Sequence[Dim], target: Sequence[Dim | None]) -> Dim | None:
    left, right = list(shape), list(given)
    for dim in given:
        if dim in left and dim != 0:
            left.remove(dim)
            right.remove(dim)
    total, rest = size_of(left), size_of(right)
    if rest == 0:
        return None
    if isinstance(total, int) and isinstance(rest, int) and total % rest:
        raise InvalidGraph(
            f"{size_of(shape)} elements of shape {dims_text(shape)} do not fill the target shape {_text(target)}: "
            f"its known sizes make {size_of(given)}, which does not divide them"
        )
    return total // rest


def _check_count(shape: Shape, dims: Sequence[Dim], target: Sequence[Dim | None]) -> None:
    before, after = size_of(shape), size_of(dims)
    if isinstance(before, int) and isinstance(after, int) and before != after:
        raise InvalidGraph(f"{before} elements of shape {dims_text(shape)} do not fill the target shape {_text(target)} of {after}")


def _text(target: Sequence[Dim | None]) -> str:
    return f"[{', '.join('?' if dim is None else str(dim) for dim in target)}]"


def _reshaped(x: Fact, shape: Shape) -> Fact:
    return tensor(x.dtype, shape) if x.value is None else _with_value(x, shape, x.value)


def _with_value(x: Fact, shape: Shape, value: Array) -> Fact:
    """Return the fact of the same elements in `shape`."""
    sizes = [dim for dim in shape if isinstance(dim, int)]
    return known(x.dtype, value.reshape(sizes)) if len(sizes) == len(shape) else tensor(x.dtype, shape)


@shape_function("Flatten")
def flatten(call: ShapeCall, x: Fact) -> Fact:
    """Return two dimensions: those before the axis and those from it on."""
    if x.shape is None:
        return tensor(x.dtype, unknown_shape(2))
    place = Flatten.of(call).place(len(x.shape))
    return _reshaped(x, (size_of(x.shape[:place]), size_of(x.shape[place:])))


@shape_function("Squeeze")
def squeeze(call: ShapeCall, x: Fact, axes: Fact | None = None) -> Fact:
    """Drop dimensions of size 1: those that the attribute or the second input names, or all."""
    view = Squeeze.of(call, elements(x, axes))
    if x.shape is None:
        return tensor(x.dtype)
    dropped = view.places(len(x.shape))
    if dropped is COMPUTED:
        return _squeeze_unknown(x.shape, x, axes)
    if dropped is None:
        if not all(isinstance(dim, int) for dim in x.shape):
            return tensor(x.dtype)
        return _reshaped(x, tuple(dim for dim in x.shape if dim != 1))
    for axis in dropped:
        dim = x.shape[axis]
        if isinstance(dim, int) and dim != 1:
            raise InvalidGraph(f"axis {axis} of shape {dims_text(x.shape)} has size {dim}; only an axis of size 1 can be squeezed")
    return _reshaped(x, tuple(dim for axis, dim in enumerate(x.shape) if axis not in dropped))


def _squeeze_unknown(shape: Shape, x: Fact, axes: Fact | None) -> Fact:
    """Return one dimension less for one axis; of several, two may be the same one."""
    is_one = axes is not None and axes.shape == (1,) and len(shape) > 0
    return tensor(x.dtype, unknown_shape(len(shape) - 1) if is_one else None)


@shape_function("Unsqueeze")
def unsqueeze(call: ShapeCall, x: Fact, axes: Fact | None = None) -> Fact:
    """Insert dimensions of size 1 at the places that the attribute or the second input names."""
    view = Unsqueeze.of(call, elements(x, axes))
    if x.shape is None:
        return tensor(x.dtype)
    if view.axes is COMPUTED:
        count = axes.shape[0] if axes is not None and axes.shape else None
        return tensor(x.dtype, unknown_shape(len(x.shape) + count) if isinstance(count, int) else None)
    rank = len(x.shape) + len(view.axes)
    added, rest = view.places(rank) or (), iter(x.shape)
    return _reshaped(x, tuple(1 if axis in added else next(rest) for axis in range(rank)))


@shape_function("Transpose")
def transpose(call: ShapeCall, x: Fact) -> Fact:
    """Return dimensions in the order that `perm` gives, reversed by default."""
    view = Transpose.of(call)
    if x.shape is None:
        return tensor(x.dtype, None if view.permutation is None else unknown_shape(len(view.permutation)))
    order = view.order(len(x.shape))
    if x.value is not None:
        return known(x.dtype, x.value.transpose(order))
    return tensor(x.dtype, tuple([x.shape[axis] for axis in order]))


@shape_function("Expand")
def expand(call: ShapeCall, x: Fact, shape: Fact) -> Fact:
    """Return the input broadcast against the shape that the second input holds."""
    target = dims_of(shape)
    if target is None:
        count = shape.shape[0] if shape.shape else None
        if x.shape is None or not isinstance(count, int):
            return tensor(x.dtype)
        return tensor(x.dtype, unknown_shape(max(count, len(x.shape))))
    dims = broadcast((x.shape, tuple(anonymous() if dim is None else dim for dim in target)))
    sizes = None if dims is None else _small(dims)
    if x.value is None or sizes is None:
        return tensor(x.dtype, dims)
    return known(x.dtype, np.broadcast_to(x.value, sizes))


def _small(shape: Shape) -> tuple[int, ...] | None:
    """Return the sizes of a shape whose elements a fact may carry, else None."""
    sizes = tuple([dim for dim in shape if isinstance(dim, int)])
    return sizes if len(sizes) == len(shape) and math.prod(sizes) <= MAX_VALUE_SIZE else None


@shape_function("Tile")
def tile(call: ShapeCall, x: Fact, repeats: Fact, axis: Fact | None = None) -> Fact:
    """Return each dimension times its number of repeats."""
    if Tile.of(call).is_by_axis:
        return _tile_axis(x, repeats, axis)
    counts = dims_of(repeats)
    if x.shape is None or counts is None:
        return tensor(x.dtype, None if x.shape is None else unknown_shape(len(x.shape)))
    if len(counts) != len(x.shape):
        raise InvalidGraph(f"repeats has {len(counts)} elements for an input of shape {dims_text(x.shape)}; give one for each axis")
    shape = tuple(anonymous() if count is None else dim * count for dim, count in zip(x.shape, counts, strict=True))
    times = ints_of(repeats)
    if x.value is not None and times is not None and _small(shape) is not None:
        return known(x.dtype, np.tile(x.value, times))
    return tensor(x.dtype, shape)


def _tile_axis(x: Fact, tiles: Fact, axis: Fact | None) -> Fact:
    times, place = ints_of(tiles), ints_of(axis)
    if x.shape is None or times is None or place is None:
        return tensor(x.dtype, None if x.shape is None else unknown_shape(len(x.shape)))
    at = normalize_axis(place[0], len(x.shape))
    return tensor(x.dtype, tuple(dim * times[0] if index == at else dim for index, dim in enumerate(x.shape)))


@shape_function("DepthToSpace")
def depth_to_space(call: ShapeCall, x: Fact) -> Fact:
    """Infer (N, C, H, W) -> (N, C / b², H * b, W * b)."""
    shape, size = require_rank(x, "input", 4, 4), Blocks.of(call).size
    if shape is None:
        return tensor(x.dtype, unknown_shape(4))
    N, C, H, W = shape
    if isinstance(C, int) and C % (size * size):
        raise InvalidGraph(f"{C} channels do not divide by blocksize² = {size * size}")
    return tensor(x.dtype, (N, C // (size * size), H * size, W * size))


@shape_function("SpaceToDepth")
def space_to_depth(call: ShapeCall, x: Fact) -> Fact:
    """Infer (N, C, H, W) -> (N, C * b², H / b, W / b)."""
    shape, size = require_rank(x, "input", 4, 4), Blocks.of(call).size
    if shape is None:
        return tensor(x.dtype, unknown_shape(4))
    N, C, H, W = shape
    for name, dim in (("height", H), ("width", W)):
        if isinstance(dim, int) and dim % size:
            raise InvalidGraph(f"{name} {dim} does not divide by blocksize {size}")
    return tensor(x.dtype, (N, C * (size * size), H // size, W // size))
