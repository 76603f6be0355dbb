"""Operators that give elements a new shape or order: views where no bytes need to move, else copies of regions."""

from __future__ import annotations

from sardonyx.ir import Dim, Expr, Node, Shape
from sardonyx.ir.shape import product
from sardonyx.partition.layout import NHWC_DOMAIN
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.kernels.elementwise import can_broadcast
from sardonyx.providers.cpu.lowering import Lowering, lowers
from sardonyx.providers.cpu.operands import check_moved, shape_of
from sardonyx.providers.cpu.strided import Region, copy_region, dense_strides, moved_type


def _check_view(node: Node) -> str | None:
    source, result = node.inputs[0], node.outputs[0]
    if source is None or source.shape is None or result.shape is None:
        return "its shape is not known"
    if source.constant is not None:
        return "its input is a constant, which folding takes care of"
    if moved_type(source.dtype) is None:
        return f"elements of type {source.dtype}"
    if product(source.shape) != product(result.shape):
        return f"that {source.shape} and {result.shape} have as many elements depends on sizes"
    return None


@lowers("Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze", check=_check_view)
def view(low: Lowering, group: Group) -> None:
    """Let the result lie where the input is."""
    low.view(group.anchor.outputs[0], low.of(group.anchor.inputs[0]))


@lowers("Transpose", check=check_moved)
def transpose(low: Lowering, group: Group) -> None:
    """Copy in the order of the result; a permutation that moves only dimensions of size 1 is a view."""
    node = group.anchor
    rank = len(shape_of(node.inputs[0]))
    _reorder(low, node, shape_of(node.inputs[0]), node.get("perm") or tuple(reversed(range(rank))))


def _reorder(low: Lowering, node: Node, shape: Shape, order: tuple[int, ...]) -> None:
    """Let the output hold the elements of the first input, seen as of `shape`, with its axes in `order`."""
    source = low.of(node.inputs[0])
    moving = [axis for axis in order if shape[axis] != 1]
    if moving == sorted(moving):
        low.view(node.output, source)
        return
    result = low.result(node.output)
    strides, targets = dense_strides(shape), dense_strides(tuple(shape[axis] for axis in order))
    region = [Region(shape[axis], strides[axis], target) for axis, target in zip(order, targets, strict=True)]
    copy_region(low, node.op_type, source, result, region, node)


def _check_blocks(node: Node) -> str | None:
    """Blocks must fill the axes: a quotient that is rounded down would lose elements."""
    data, result = node.inputs[0], node.output
    if data is None or data.shape is None or result.shape is None or len(data.shape) != 4 or len(result.shape) != 4:
        return "its input does not have four dimensions"
    block = node.get("blocksize", 1)
    if block < 1 or node.get("mode", "DCR") not in ("DCR", "CRD"):
        return "its blocksize or mode is not valid"
    wide = data.shape if node.op_type == "SpaceToDepth" else result.shape
    if any((dim // block) * block != dim for dim in _spatial(node, wide)) or product(data.shape) != product(result.shape):
        return "that blocks fill its axes depends on sizes"
    return check_moved(node)


def _spatial(node: Node, shape: Shape) -> Shape:
    return shape[1:3] if node.domain == NHWC_DOMAIN else shape[2:]


@lowers("DepthToSpace", check=_check_blocks)
@lowers("DepthToSpace", check=_check_blocks, domain=NHWC_DOMAIN)
def depth_to_space(low: Lowering, group: Group) -> None:
    """(N, C * b * b, H, W) -> (N, C, H * b, W * b); channels-last (N, H, W, C * b * b) -> (N, H * b, W * b, C)."""
    node = group.anchor
    b, first = node.get("blocksize"), node.get("mode", "DCR") == "DCR"
    if node.domain == NHWC_DOMAIN:
        N, H, W, depth = shape_of(node.inputs[0])
        C = depth // (b * b)
        shape, order = ((N, H, W, b, b, C), (0, 1, 3, 2, 4, 5)) if first else ((N, H, W, C, b, b), (0, 1, 4, 2, 5, 3))
    else:
        N, depth, H, W = shape_of(node.inputs[0])
        C = depth // (b * b)
        shape, order = ((N, b, b, C, H, W), (0, 3, 4, 1, 5, 2)) if first else ((N, C, b, b, H, W), (0, 1, 4, 2, 5, 3))
    _reorder(low, node, shape, order)


@lowers("SpaceToDepth", check=_check_blocks)
@lowers("SpaceToDepth", check=_check_blocks, domain=NHWC_DOMAIN)
def space_to_depth(low: Lowering, group: Group) -> None:
    """(N, C, H * b, W * b) -> (N, C * b * b, H, W); channels-last (N, H * b, W * b, C) -> (N, H, W, C * b * b)."""
    node = group.anchor
    b, first = node.get("blocksize"), node.get("mode", "DCR") == "DCR"
    if node.domain == NHWC_DOMAIN:
        N, H, W, C = shape_of(node.inputs[0])
        _reorder(low, node, (N, H // b, b, W // b, b, C), (0, 1, 3, 2, 4, 5) if first else (0, 1, 3, 5, 2, 4))
        return
    N, C, H, W = shape_of(node.inputs[0])
    _reorder(low, node, (N, C, H // b, b, W // b, b), (0, 3, 5, 1, 2, 4) if first else (0, 1, 3, 5, 2, 4))


def _check_expand(node: Node) -> str | None:
    reason = check_moved(node)
    if reason is not None:
        return reason
    shape, wide = shape_of(node.inputs[0]), shape_of(node.output)
    pairs = list(zip(reversed(shape), reversed(wide), strict=False))
    if not can_broadcast(wide, shape) or any(isinstance(dim, Expr) and dim != size for dim, size in pairs):
        return "how it is broadcast depends on sizes"
    return None


@lowers("Expand", check=_check_expand)
def expand(low: Lowering, group: Group) -> None:
    """Repeat along the dimensions that are 1; without any it is a view."""
    node = group.anchor
    source, shape = low.of(node.inputs[0]), shape_of(node.output)
    if product(source.shape) == product(shape):
        low.view(node.output, source)
        return
    padded = (1,) * (len(shape) - len(source.shape)) + tuple(source.shape)
    strides, targets = dense_strides(padded), dense_strides(shape)
    region = [
        Region(size, 0 if own == 1 else stride, target)
        for size, own, stride, target in zip(shape, padded, strides, targets, strict=True)
    ]
    copy_region(low, "Expand", source, low.result(node.output), region, node)


def _repeats_of(node: Node) -> list[Dim] | None:
    """How often each axis is repeated, where shapes or constants say so."""
    data, result = node.inputs[0], node.output
    if data is None or data.shape is None or result.shape is None or len(data.shape) != len(result.shape):
        return None
    if node.version < 6:
        return None
    repeats: list[Dim] = []
    for dim, wide in zip(data.shape, result.shape, strict=True):
        times = 0 if dim == 0 else wide // dim
        if times * dim != wide:
            return None
        repeats.append(times)
    return repeats


def _check_tile(node: Node) -> str | None:
    return "how often it is repeated depends on sizes" if _repeats_of(node) is None else check_moved(node)


@lowers("Tile", check=_check_tile)
def tile(low: Lowering, group: Group) -> None:
    """Read each axis as often as it is repeated."""
    node = group.anchor
    source, repeats = low.of(node.inputs[0]), _repeats_of(node)
    if repeats is None:
        raise TypeError("the check lets only known repeats through")
    if product(source.shape) == product(shape_of(node.output)):
        low.view(node.output, source)
        return
    region: list[Region] = []
    strides, targets = dense_strides(source.shape), dense_strides(shape_of(node.output))
    for size, times, stride, target in zip(source.shape, repeats, strides, targets, strict=True):
        region += [Region(times, 0, size * target), Region(size, stride, target)]
    copy_region(low, "Tile", source, low.result(node.output), region, node)
