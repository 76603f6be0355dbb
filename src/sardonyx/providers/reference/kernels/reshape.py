"""Operators that give the same elements another shape: views wherever the strides allow it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.ops.views.inputs import COMPUTED
from sardonyx.ops.views.reshape import Blocks, Flatten, Squeeze, Transpose
from sardonyx.providers.reference.algorithms.dimensions import (
    as_int,
    as_ints,
    check_output_size,
    normalize_axes,
    normalize_axis,
)
from sardonyx.providers.reference.registry import Call, kernel

__all__: list[str] = []


def _target_shape(shape: Sequence[int], data: Array, *, copies_zero: bool) -> tuple[int, ...]:
    """Return `shape` with its zeros copied from `data` (if asked) and its -1 worked out.

    Where there are no elements, the -1 takes what the lengths that are not copied leave over, so that (0, 4) to [0, -1] is (0, 4).
    """
    target = list(shape)
    for axis, length in enumerate(target):
        if length < -1:
            raise InvalidArgument(f"shape {list(shape)} has {length} at {axis}; expected lengths >= 0 and at most one -1")
        if length == 0 and copies_zero:
            if axis >= data.ndim:
                raise InvalidArgument(f"shape {list(shape)} has 0 (keep the length) at {axis}, but the data has shape {data.shape}")
            target[axis] = data.shape[axis]
    if target.count(-1) > 1:
        raise InvalidArgument(f"shape {list(shape)} has more than one -1; at most one length can be inferred")
    if -1 in target:
        known = -math.prod(target)
        if not copies_zero and known == 0:
            raise InvalidArgument(f"shape {list(shape)} has both 0 and -1 with allowzero=1; give the length in place of -1")
        left = data.size
        if known == 0 == left:
            kept = {axis for axis, length in enumerate(shape) if length == 0 and data.shape[axis] == 0}
            known, left = (math.prod(n for axis, n in enumerate(sizes) if axis not in kept) for sizes in (target, data.shape))
            known = -known
        if known and left % known == 0:
            target[target.index(-1)] = left // known
    if -1 in target or math.prod(target) != data.size:
        raise InvalidArgument(
            f"data of shape {data.shape} ({data.size} elements) cannot take shape {list(shape)}; the numbers of elements must agree"
        )
    return tuple(target)


@kernel("Reshape")
def reshape_1(_node: Call, data: Array, *, shape: Sequence[int] = ()) -> Array:
    """Give `data` the shape of the attribute; 0 keeps a length, -1 is inferred. A view if it can be. ONNX Reshape-1."""
    return data.reshape(_target_shape(shape, data, copies_zero=True))


@kernel("Reshape", since=5)
def reshape(_node: Call, data: Array, shape: Array, *, allowzero: int = 0) -> Array:
    """Give `data` the shape of the second input; 0 keeps a length unless `allowzero`, -1 is inferred.

    A view if it can be. ONNX Reshape-5, -14.
    """
    return data.reshape(_target_shape(as_ints(shape, "shape"), data, copies_zero=not allowzero))


@kernel("Flatten", view=Flatten)
def flatten(_node: Call, data: Array, *, view: Flatten) -> Array:
    """Fold the axes before `axis` into one and the others into another. A view if it can be. ONNX Flatten-1 to -11."""
    split = view.place(data.ndim)
    return data.reshape(math.prod(data.shape[:split]), math.prod(data.shape[split:]))


@kernel("Squeeze", view=Squeeze)
@kernel("Squeeze", since=13, view=Squeeze)
def squeeze(_node: Call, data: Array, axes: Array | None = None, *, view: Squeeze) -> Array:
    """Drop the axes of length 1 named by the attribute or the second input, or all of them. A view. ONNX Squeeze-1 to -13.

    An empty `axes` counts as none given, as in ONNX Runtime.
    """
    if view.axes is COMPUTED:
        named = () if axes is None else as_ints(axes, "axes")
        view = Squeeze(tuple(normalize_axis(axis, data.ndim, "axes") for axis in named) or None)
    dropped = view.places(data.ndim)
    if not isinstance(dropped, tuple):
        return data.reshape(tuple(length for length in data.shape if length != 1))
    for axis in dropped:
        if data.shape[axis] != 1:
            raise InvalidArgument(
                f"axis {axis} has length {data.shape[axis]} in data of shape {data.shape}; only an axis of length 1 can go"
            )
    return data.squeeze(dropped)


def _unsqueezed(data: Array, axes: Sequence[int]) -> Array:
    return np.expand_dims(data, normalize_axes(axes, data.ndim + len(axes)))


@kernel("Unsqueeze")
def unsqueeze_1(_node: Call, data: Array, *, axes: Sequence[int]) -> Array:
    """Insert axes of length 1 at places of the output named by the attribute. A view. ONNX Unsqueeze-1, -11."""
    return _unsqueezed(data, axes)


@kernel("Unsqueeze", since=13)
def unsqueeze(_node: Call, data: Array, axes: Array) -> Array:
    """Insert axes of length 1 at places of the output named by the second input. A view. ONNX Unsqueeze-13."""
    return _unsqueezed(data, as_ints(axes, "axes"))


@kernel("Transpose", view=Transpose)
def transpose(_node: Call, data: Array, *, view: Transpose) -> Array:
    """Permute the axes; without `perm`, reverse them. A view. ONNX Transpose-1."""
    return data.transpose(view.order(data.ndim))


@kernel("Expand")
def expand(_node: Call, data: Array, shape: Array) -> Array:
    """Broadcast `data` against `shape`, both ways. A view with zero strides. ONNX Expand-8."""
    asked = as_ints(shape, "shape")
    rank = max(len(asked), data.ndim)
    here = (1,) * (rank - data.ndim) + data.shape
    there = (1,) * (rank - len(asked)) + asked
    if any(length < 0 or (length != old and 1 not in (length, old)) for length, old in zip(there, here, strict=True)):
        raise InvalidArgument(
            f"data of shape {data.shape} cannot be expanded to {list(asked)}; aligned at the right, lengths must be equal or 1"
        )
    target = tuple(old if length == 1 else length for length, old in zip(there, here, strict=True))
    check_output_size(target, data.itemsize)
    return np.broadcast_to(data, target)


@kernel("Tile")
def tile_1(_node: Call, data: Array, tiles: Array, axis: Array) -> Array:
    """Repeat `data` `tiles` times along `axis`, both of one element. ONNX Tile-1."""
    repeats = [1] * data.ndim
    repeats[normalize_axis(as_int(axis, "axis"), data.ndim)] = as_int(tiles, "tiles")
    return _tiled(data, repeats)


@kernel("Tile", since=6)
def tile(_node: Call, data: Array, repeats: Array) -> Array:
    """Repeat `data` along each axis as often as `repeats`, of shape (rank,), says. ONNX Tile-6."""
    return _tiled(data, as_ints(repeats, "repeats"))


def _tiled(data: Array, repeats: Sequence[int]) -> Array:
    if len(repeats) != data.ndim or any(count < 0 for count in repeats):
        raise InvalidArgument(f"repeats={list(repeats)} for data of shape {data.shape}; expected one count >= 0 for each axis")
    if all(count == 1 for count in repeats):
        return data
    target = tuple(length * count for length, count in zip(data.shape, repeats, strict=True))
    check_output_size(target, data.itemsize)
    interleaved = tuple(length for pair in zip(repeats, data.shape, strict=True) for length in pair)
    spread = data.reshape(tuple(length for old in data.shape for length in (1, old)))
    return np.broadcast_to(spread, interleaved).reshape(target)


def _check_image(data: Array) -> None:
    if data.ndim != 4:
        raise InvalidArgument(f"data has shape {data.shape}; expected (N, C, H, W)")


@kernel("DepthToSpace", view=Blocks)
def depth_to_space(_node: Call, data: Array, *, view: Blocks) -> Array:
    """Move blocks of (N, C, H, W) from depth to space: (N, C/b/b, H*b, W*b). ONNX DepthToSpace-1, -11 (`mode`)."""
    _check_image(data)
    (N, C, H, W), size = data.shape, view.size
    if C % (size * size):
        raise InvalidArgument(f"{C} channels do not divide by blocksize squared, {size * size}")
    depth = C // (size * size)
    if view.is_depth_first:
        blocks = data.reshape(N, size, size, depth, H, W).transpose(0, 3, 4, 1, 5, 2)
    else:
        blocks = data.reshape(N, depth, size, size, H, W).transpose(0, 1, 4, 2, 5, 3)
    return blocks.reshape(N, depth, H * size, W * size)


@kernel("SpaceToDepth", view=Blocks)
def space_to_depth(_node: Call, data: Array, *, view: Blocks) -> Array:
    """Move blocks of (N, C, H, W) from space to depth: (N, C*b*b, H/b, W/b). ONNX SpaceToDepth-1, -28 (`mode`)."""
    _check_image(data)
    (N, C, H, W), size = data.shape, view.size
    if H % size or W % size:
        raise InvalidArgument(f"height {H} and width {W} must be multiples of blocksize={size}")
    blocks = data.reshape(N, C, H // size, size, W // size, size)
    order = (0, 3, 5, 1, 2, 4) if view.is_depth_first else (0, 1, 3, 5, 2, 4)
    return blocks.transpose(order).reshape(N, C * size * size, H // size, W // size)
