"""Operators that give elements a new shape or order: views where no bytes need to move, else copies of regions."""

from __future__ import annotations

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import DataType
from sardonyx.ir import Dim, Expr, Node, Shape
from sardonyx.ir.shape import product
from sardonyx.ops.schema import NHWC_DOMAIN
from sardonyx.ops.views.reshape import Blocks, Tile, Transpose
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.kernels.elementwise import can_broadcast
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import given, moved_as, open_or_wrong, shape_of
from sardonyx.providers.cpu.strided import StridedDim, copy_region, dense_strides, moved_type

__all__ = ["OrderSpec", "ViewSpec"]


@dataclasses.dataclass(frozen=True, slots=True)
class ViewSpec:
    """A result that lies where the input is."""


def claim_view(node: Node) -> ViewSpec | str:
    """Return that a node moves nothing, or why it cannot be compiled."""
    source, shape, wide = given(node.inputs[0]), shape_of(node.inputs[0]), shape_of(node.outputs[0])
    if source.constant is not None and node.op_type != "Identity":
        return "its input is a constant, which folding takes care of"
    kind = moved_as(node)
    if isinstance(kind, str):
        return kind
    if product(shape) != product(wide):
        return f"that {shape} and {wide} have as many elements {open_or_wrong(shape, wide)}"
    return ViewSpec()


@lowers("Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze", claim=claim_view)
def view(low: Lowering, group: Group, spec: ViewSpec) -> None:
    """Let the result lie where the input is."""
    low.view(group.node.outputs[0], low.of(group.node.inputs[0]))


def claim_bit_cast(node: Node) -> ViewSpec | str:
    """Return that the bits of a BitCast stay where they are, or why it cannot be compiled."""
    source, target = given(node.inputs[0]), node.output.dtype
    kinds = moved_type(source.dtype), moved_type(target)
    if source.constant is not None:
        return "its input is a constant, which folding takes care of"
    if None in kinds or kinds[0] != kinds[1] or DataType.BOOL in (source.dtype, target):
        return f"elements of type {source.dtype} read as {target}"
    return ViewSpec()


@lowers("BitCast", claim=claim_bit_cast)
def bit_cast(low: Lowering, group: Group, spec: ViewSpec) -> None:
    """Let the result lie where the input is, under another type."""
    low.view(group.node.output, low.of(group.node.inputs[0]))


@dataclasses.dataclass(frozen=True, slots=True)
class OrderSpec:
    """The input's elements in another order."""

    shape: Shape
    """The dimensions that the input is seen with."""
    order: tuple[int, ...]
    """For each dimension of the result which of them it is."""


def claim_transpose(node: Node) -> OrderSpec | str:
    """Return the order that a Transpose makes, or why it cannot be compiled."""
    shape, view, kind = shape_of(node.inputs[0]), Transpose.of(node), moved_as(node)
    return kind if isinstance(kind, str) else OrderSpec(shape, view.order(len(shape)))


def claim_blocks(node: Node) -> OrderSpec | str:
    """Return the order that moves blocks of an image to channels or back, or why it cannot be compiled.

    Blocks must fill the axes: a quotient that is rounded down would lose elements.
    """
    shape, wide = shape_of(node.inputs[0]), shape_of(node.output)
    block, is_depth_first = Blocks.of(node)
    if len(shape) != 4 or len(wide) != 4:
        return f"{len(shape)} dimensions, expected four"
    is_last = node.domain == NHWC_DOMAIN
    image = shape if node.op_type == "SpaceToDepth" else wide
    filled = all((dim // block) * block == dim for dim in (image[1:3] if is_last else image[2:]))
    if not filled or product(shape) != product(wide):
        return f"that blocks fill its axes {open_or_wrong(shape, wide)}"
    kind = moved_as(node)
    if isinstance(kind, str):
        return kind
    return _ORDERS[node.op_type, is_last](shape, block, is_depth_first)


def _depth_to_space(shape: Shape, b: int, blocks_first: bool) -> OrderSpec:
    """Return (N, C * b * b, H, W) -> (N, C, H * b, W * b)."""
    N, depth, H, W = shape
    C = depth // (b * b)
    return OrderSpec((N, b, b, C, H, W), (0, 3, 4, 1, 5, 2)) if blocks_first else OrderSpec((N, C, b, b, H, W), (0, 1, 4, 2, 5, 3))


def _depth_to_space_last(shape: Shape, b: int, blocks_first: bool) -> OrderSpec:
    """Return (N, H, W, C * b * b) -> (N, H * b, W * b, C)."""
    N, H, W, depth = shape
    C = depth // (b * b)
    return OrderSpec((N, H, W, b, b, C), (0, 1, 3, 2, 4, 5)) if blocks_first else OrderSpec((N, H, W, C, b, b), (0, 1, 4, 2, 5, 3))


def _space_to_depth(shape: Shape, b: int, blocks_first: bool) -> OrderSpec:
    """Return (N, C, H * b, W * b) -> (N, C * b * b, H, W)."""
    N, C, H, W = shape
    return OrderSpec((N, C, H // b, b, W // b, b), (0, 3, 5, 1, 2, 4) if blocks_first else (0, 1, 3, 5, 2, 4))


def _space_to_depth_last(shape: Shape, b: int, blocks_first: bool) -> OrderSpec:
    """Return (N, H * b, W * b, C) -> (N, H, W, C * b * b)."""
    N, H, W, C = shape
    return OrderSpec((N, H // b, b, W // b, b, C), (0, 1, 3, 2, 4, 5) if blocks_first else (0, 1, 3, 5, 2, 4))


_ORDERS = {
    ("DepthToSpace", False): _depth_to_space,
    ("DepthToSpace", True): _depth_to_space_last,
    ("SpaceToDepth", False): _space_to_depth,
    ("SpaceToDepth", True): _space_to_depth_last,
}
"""Operator, and whether channels are last -> the order that it makes."""


@lowers("DepthToSpace", "SpaceToDepth", claim=claim_blocks, domain=NHWC_DOMAIN)
@lowers("DepthToSpace", "SpaceToDepth", claim=claim_blocks)
@lowers("Transpose", claim=claim_transpose)
def reorder(low: Lowering, group: Group, spec: OrderSpec) -> None:
    """Copy in the order of the result; a permutation that moves only dimensions of size 1 is a view."""
    node, shape, order = group.node, spec.shape, spec.order
    source = low.of(node.inputs[0])
    moving = [axis for axis in order if shape[axis] != 1]
    if moving == sorted(moving):
        low.view(node.output, source)
        return
    result = low.result(node.output)
    strides, targets = dense_strides(shape), dense_strides(tuple(shape[axis] for axis in order))
    region = [StridedDim(shape[axis], strides[axis], target) for axis, target in zip(order, targets, strict=True)]
    copy_region(low, node.op_type, source, result, region, node)


@dataclasses.dataclass(frozen=True, slots=True)
class ExpandSpec:
    """The input, repeated along dimensions of 1."""

    shape: Shape
    """The input's dimensions, with those of 1 before them that the result has more."""


def claim_expand(node: Node) -> ExpandSpec | str:
    """Return what an Expand repeats, or why it cannot be compiled."""
    kind = moved_as(node)
    if isinstance(kind, str):
        return kind
    shape, wide = shape_of(node.inputs[0]), shape_of(node.output)
    pairs = list(zip(reversed(shape), reversed(wide), strict=False))
    if not can_broadcast(wide, shape) or any(isinstance(dim, Expr) and dim != size for dim, size in pairs):
        return f"that {shape} is broadcast to {wide} {open_or_wrong(shape, wide)}"
    return ExpandSpec((1,) * (len(wide) - len(shape)) + tuple(shape))


@lowers("Expand", claim=claim_expand)
def expand(low: Lowering, group: Group, spec: ExpandSpec) -> None:
    """Repeat along the dimensions that are 1; without any it is a view."""
    node = group.node
    source, shape = low.of(node.inputs[0]), shape_of(node.output)
    if product(source.shape) == product(shape):
        low.view(node.output, source)
        return
    strides, targets = dense_strides(spec.shape), dense_strides(shape)
    region = [
        StridedDim(size, 0 if own == 1 else stride, target)
        for size, own, stride, target in zip(shape, spec.shape, strides, targets, strict=True)
    ]
    copy_region(low, "Expand", source, low.result(node.output), region, node)


@dataclasses.dataclass(frozen=True, slots=True)
class TileSpec:
    """The input, several times."""

    repeats: tuple[Dim, ...]
    """How often each axis is repeated."""


def claim_tile(node: Node) -> TileSpec | str:
    """Return how often a Tile repeats each axis, or why it cannot be compiled."""
    shape, wide = shape_of(node.inputs[0]), shape_of(node.output)
    if Tile.of(node).is_by_axis:
        return "it repeats one axis, as before opset 6"
    if len(shape) != len(wide):
        return f"{len(shape)} dimensions become {len(wide)}"
    repeats = tuple(0 if dim == 0 else after // dim for dim, after in zip(shape, wide, strict=True))
    if any(times * dim != after for times, dim, after in zip(repeats, shape, wide, strict=True)):
        return f"that {shape} makes up {wide} several times {open_or_wrong(shape, wide)}"
    kind = moved_as(node)
    return kind if isinstance(kind, str) else TileSpec(repeats)


@lowers("Tile", claim=claim_tile)
def tile(low: Lowering, group: Group, spec: TileSpec) -> None:
    """Read each axis as often as it is repeated."""
    node = group.node
    source, wide = low.of(node.inputs[0]), shape_of(node.output)
    if product(source.shape) == product(wide):
        low.view(node.output, source)
        return
    region: list[StridedDim] = []
    strides, targets = dense_strides(source.shape), dense_strides(wide)
    for size, times, stride, target in zip(source.shape, spec.repeats, strides, targets, strict=True):
        region += [StridedDim(times, 0, size * target), StridedDim(size, stride, target)]
    copy_region(low, "Tile", source, low.result(node.output), region, node)
