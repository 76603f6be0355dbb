"""Operators that give the same elements another shape: views wherever the strides allow it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
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
    """`shape` with its zeros copied from `data` (if asked) and its -1 worked out."""
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
        if known and data.size % known == 0:
            target[target.index(-1)] = data.size // known
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


@kernel("Flatten")
def flatten(_node: Call, data: Array, *, axis: int = 1) -> Array:
    """Fold the axes before `axis` into one and the others into another. A view if it can be. ONNX Flatten-1 to -11."""
    if not -data.ndim <= axis <= data.ndim:
        raise InvalidArgument(f"axis={axis} is outside [{-data.ndim}, {data.ndim}] for data of shape {data.shape}")
    split = axis + data.ndim if axis < 0 else axis
    return data.reshape(math.prod(data.shape[:split]), math.prod(data.shape[split:]))


def _squeezed(data: Array, axes: Sequence[int] | None) -> Array:
    if axes is None:
        return data.reshape(tuple(length for length in data.shape if length != 1))
    dropped = normalize_axes(axes, data.ndim)
    for axis in dropped:
        if data.shape[axis] != 1:
            raise InvalidArgument(
                f"axis {axis} has length {data.shape[axis]} in data of shape {data.shape}; only an axis of length 1 can go"
            )
    return data.squeeze(dropped)


@kernel("Squeeze")
def squeeze_1(_node: Call, data: Array, *, axes: Sequence[int] | None = None) -> Array:
    """Drop the axes of length 1 named by the attribute, or all of them. A view. ONNX Squeeze-1, -11."""
    return _squeezed(data, axes)


@kernel("Squeeze", since=13)
def squeeze(_node: Call, data: Array, axes: Array | None = None) -> Array:
    """Drop the axes of length 1 named by the second input, or all of them. A view. ONNX Squeeze-13.

    An empty `axes` counts as none given, as in ONNX Runtime.
    """
    return _squeezed(data, None if axes is None or axes.size == 0 else as_ints(axes, "axes"))


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


@kernel("Transpose")
def transpose(_node: Call, data: Array, *, perm: Sequence[int] | None = None) -> Array:
    """Permute the axes; without `perm`, reverse them. A view. ONNX Transpose-1."""
    if perm is None:
        return data.T
    if len(perm) != data.ndim or sorted(perm) != list(range(data.ndim)):
        raise InvalidArgument(f"perm={list(perm)} does not name each axis of data of shape {data.shape} exactly once")
    return data.transpose(perm)


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


def _check_blocks(data: Array, blocksize: int) -> None:
    if data.ndim != 4:
        raise InvalidArgument(f"data has shape {data.shape}; expected (N, C, H, W)")
    if blocksize < 1:
        raise InvalidArgument(f"blocksize={blocksize}; expected at least 1")


def _depth_to_space(data: Array, blocksize: int, mode: str) -> Array:
    _check_blocks(data, blocksize)
    N, C, H, W = data.shape
    if C % (blocksize * blocksize):
        raise InvalidArgument(f"{C} channels do not divide by blocksize squared, {blocksize * blocksize}")
    depth = C // (blocksize * blocksize)
    if mode == "DCR":
        blocks = data.reshape(N, blocksize, blocksize, depth, H, W).transpose(0, 3, 4, 1, 5, 2)
    elif mode == "CRD":
        blocks = data.reshape(N, depth, blocksize, blocksize, H, W).transpose(0, 1, 4, 2, 5, 3)
    else:
        raise InvalidArgument(f"mode={mode!r}; expected 'DCR' or 'CRD'")
    return blocks.reshape(N, depth, H * blocksize, W * blocksize)


@kernel("DepthToSpace")
def depth_to_space(_node: Call, data: Array, *, blocksize: int, mode: str = "DCR") -> Array:
    """Move blocks of (N, C, H, W) from depth to space: (N, C/b/b, H*b, W*b). ONNX DepthToSpace-1, -11 (`mode`)."""
    return _depth_to_space(data, blocksize, mode)


@kernel("SpaceToDepth")
def space_to_depth(_node: Call, data: Array, *, blocksize: int, mode: str = "DCR") -> Array:
    """Move blocks of (N, C, H, W) from space to depth: (N, C*b*b, H/b, W/b). ONNX SpaceToDepth-1, -28 (`mode`)."""
    _check_blocks(data, blocksize)
    N, C, H, W = data.shape
    if H % blocksize or W % blocksize:
        raise InvalidArgument(f"height {H} and width {W} must be multiples of blocksize={blocksize}")
    blocks = data.reshape(N, C, H // blocksize, blocksize, W // blocksize, blocksize)
    if mode == "DCR":
        blocks = blocks.transpose(0, 3, 5, 1, 2, 4)
    elif mode == "CRD":
        blocks = blocks.transpose(0, 1, 3, 5, 2, 4)
    else:
        raise InvalidArgument(f"mode={mode!r}; expected 'DCR' or 'CRD'")
    return blocks.reshape(N, C * blocksize * blocksize, H // blocksize, W // blocksize)
