"""Conv over channels-last data, with the element-wise nodes that follow in the epilogue.

kernel of one element, stride 1                 the product of matrices that MatMul is, unless its sums are long; in matrix tiles of
                                                bfloat16 where less precision is asked for
each channel by itself, or small groups          depthwise
a few planes, as images come                    taps in order, read from the planes
few output channels                             implicit product, vectors along the input's channels
3 x 3 with stride 1, many channels              minimal filtering (Winograd)
no padding, or few channels                     implicit product, taps along the last axis in one run; few channels are copied
                                                into a border of zeros first
everything else, and float64                    implicit product, tap by tap, padding read from zeros
"""

from __future__ import annotations

from math import prod

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.matrix_tiles import TILE
from sardonyx.codegen.kernels.conv import pack_filters
from sardonyx.codegen.kernels.depthwise import PLACES, Line
from sardonyx.codegen.kernels.gemm import tiling
from sardonyx.codegen.kernels.gemm_params import PART_TASKS, GemmParams
from sardonyx.codegen.kernels.narrow.pairs import pack_pairs, pack_parts
from sardonyx.codegen.kernels.narrow.tile_gemm import tile_gemm_params
from sardonyx.codegen.kernels.panels import TilePanels
from sardonyx.codegen.kernels.tile_products import tile_words
from sardonyx.dtypes import Array, DataType
from sardonyx.ir import Node
from sardonyx.ir.shape import product
from sardonyx.ops.schema import NHWC_DOMAIN
from sardonyx.ops.views.conv import Conv
from sardonyx.ops.views.window import Window
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.kernels.conv_border import FEW_CHANNELS, add_border
from sardonyx.providers.cpu.kernels.conv_tail import Tail, joins_conv, tail_of
from sardonyx.providers.cpu.kernels.filters import ConstantFilters, FilterSource, filters_of
from sardonyx.providers.cpu.kernels.images.planes import lower_planes, planes_of
from sardonyx.providers.cpu.kernels.implicit_product import DepthwiseLine, WindowPlacement, add_depthwise, add_product, is_narrow
from sardonyx.providers.cpu.kernels.matmul import ProductKernel
from sardonyx.providers.cpu.kernels.windows import Filters, claim_filters, conv_axes, is_padded, is_point, place_window
from sardonyx.providers.cpu.kernels.winograd import lower_winograd, suits_winograd
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import given
from sardonyx.providers.cpu.pairs import (
    as_pair_rows,
    convolves_tiles,
    multiplies_pairs,
    multiplies_tiles,
    parts_of,
    tiles_precision,
)
from sardonyx.providers.cpu.precision import FLOAT32
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer

__all__: list[str] = []

_PRODUCT = 320
"""Up to so many channels a convolution of single places is faster as a plain product; and where images have one place each."""

_SMALL_GROUP = 16
"""Groups of more channels fill tiles of their own."""
_LONGEST_CHAIN = 256
"""Most elements that are added one after another where channels are in groups."""


def claim(node: Node) -> Filters | str:
    """Return what a Conv does with its filters, or why it cannot be compiled."""
    return claim_filters(node, Conv.of(node), lambda M, C, groups: (C * groups, M))


@lowers("Conv", claim=claim, joins=joins_conv, domain=NHWC_DOMAIN, inputs=2)
def lower(low: Lowering, group: Group, spec: Filters) -> None:
    """Choose how to compute it, pack the filters and add the step."""
    node, window, groups = group.node, spec.window, spec.groups
    filters = filters_of(low, node, given(node.inputs[1]))
    weights = filters.weights if isinstance(filters, ConstantFilters) else None
    tail = tail_of(low, group, node.input(2))
    data, (M, C) = low.of(node.inputs[0]), filters.shape[:2]
    is_product = is_point(window) and groups == 1 and not is_narrow(M, groups, C)
    is_single = group.result.shape is not None and {*group.result.shape[1:-1]} == {1}
    is_wide = data.dtype is DataType.DOUBLE
    in_pairs = multiplies_pairs(low, C) or convolves_tiles(low, C)
    planes = None if weights is None or is_wide or in_pairs else planes_of(low, group, window, groups, weights)
    if is_wide:
        _lower_windows(low, group, data, filters, groups, window, tail)
    elif weights is not None and is_product and multiplies_tiles(low):
        _lower_tiles(low, group, data, weights, tail)
    elif weights is not None and is_product and (C <= _PRODUCT or is_single) and not multiplies_pairs(low, C):
        _lower_product(low, group, data, weights, tail)
    elif planes is not None and weights is not None:
        lower_planes(low, group, planes, weights, window, tail)
    elif len(window.kernel) <= 2 and (M == groups * C == groups or (weights is not None and _has_small_groups(low, spec, filters))):
        _lower_depthwise(low, group, data, filters, groups, window, tail)
    elif (
        weights is not None
        and not convolves_tiles(low, C)
        and suits_winograd(window, groups, weights, group.result.shape[1:-1] if group.result.shape else ())
    ):
        lower_winograd(low, group, data, weights, window, tail)
    else:
        _lower_windows(low, group, data, filters, groups, window, tail)


def _lower_product(low: Lowering, group: Group, data: Buffer, weights: Array, tail: Tail) -> None:
    M, K = weights.shape[:2]
    target, result = low.target, low.result(group.result)
    symbol = low.kernel(ProductKernel(tail.expr, tail.ways))
    packed = low.packed(pack_filters, weights, 1, tiling(target).panel, of=group.node.inputs[1])
    rows = product(data.shape[:-1])

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        params = GemmParams.blocked(target, sizes(rows), M, K, threads=low.threads, ldc=sizes(result.row)).in_parts(1)
        return [*params.words(), M], params.tasks()

    buffers = [data, packed, result, *map(low.of, tail.operands)]
    low.step(group, symbol, buffers, writes=[2], plan=plan, pitched=True, precision=FLOAT32, together=PART_TASKS)


def _lower_tiles(low: Lowering, group: Group, data: Buffer, weights: Array, tail: Tail) -> None:
    """Multiply the places by the filters in matrix tiles of bfloat16."""
    M, K = weights.shape[:2]
    target, result = low.target, low.result(group.result)
    symbol = low.kernel(ProductKernel(tail.expr, tail.ways, TilePanels()))
    packed = low.packed(_pack_points, weights, tiling(target).panel, parts_of(low), of=group.node.inputs[1])
    rows, words = product(data.shape[:-1]), parts_of(low) * tile_words(-(-K // 2))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        params = tile_gemm_params(target, sizes(rows), M, words, threads=low.threads, ldc=sizes(result.row))
        return [*params.words(), M], params.tasks()

    buffers = [as_pair_rows(low, group.node, data), packed, result, *map(low.of, tail.operands)]
    low.step(group, symbol, buffers, writes=[2], plan=plan, pitched=True, precision=tiles_precision(low))


def _pack_points(weights: Array, width: int, parts: int) -> Array:
    """Return filters (M, C, 1…) as panels of pairs, whole tiles of them."""
    return (pack_pairs if parts == 1 else pack_parts)(weights.reshape(weights.shape[:2]).T, width, TILE)


def _lower_depthwise(
    low: Lowering, group: Group, data: Buffer, filters: FilterSource, groups: int, window: Window[int], tail: Tail
) -> None:
    result, spatial, (M, members) = low.result(group.result), data.shape[1:-1], filters.shape[:2]
    C = groups * members

    def place(sizes: Sizes) -> WindowPlacement:
        images, *places, _ = sizes.shape(result.shape)
        held, row = sizes.shape(spatial), sizes(result.row)
        axes = conv_axes(window, held, place_window(window, held, places), C, row)
        return WindowPlacement(images, axes, C * prod(held), row * prod(places))

    line = DepthwiseLine(window.kernel[-1], window.strides[-1], window.dilations[-1], (members, M // groups))
    add_depthwise(low, group, (data, result), filters, line, tail, place)


def _has_small_groups(low: Lowering, spec: Filters, filters: FilterSource) -> bool:
    """Return whether groups that make no fewer channels than they read go side by side in a vector."""
    window, (M, C), lanes = spec.window, filters.shape[:2], low.target.lanes(32)
    makes = M // spec.groups
    if spec.groups == 1 or not C <= makes <= _SMALL_GROUP or lanes % makes or lanes % C:
        return False
    line = Line(window.kernel[-1], window.strides[-1], window.dilations[-1])
    return prod(window.kernel) * C <= _LONGEST_CHAIN and line.fits(PLACES)


def _lower_windows(
    low: Lowering, group: Group, data: Buffer, filters: FilterSource, groups: int, window: Window[int], tail: Tail
) -> None:
    channels = data.shape[-1]
    given = data.shape[1:-1]
    dense = groups == 1 and window.dilations[-1] == 1
    bordered = (
        data.dtype is DataType.FLOAT and is_padded(window) and dense and isinstance(channels, int) and channels <= FEW_CHANNELS
    )
    if bordered:
        data = add_border(low, data, window)
    padded = is_padded(window) and not bordered
    merged = dense and not padded
    result, inner = low.result(group.result), data.shape[1:-1]
    depth = filters.shape[1] * (window.kernel[-1] if merged else 1)

    def place(sizes: Sizes) -> WindowPlacement:
        batch, *places, _ = sizes.shape(result.shape)
        held, C, row = sizes.shape(inner), sizes(channels), sizes(result.row)
        axes = conv_axes(window, held, place_window(window, sizes.shape(given), places), C, row, bordered=bordered)
        if merged:
            axes[-1] = dataclasses.replace(axes[-1], taps=1)
        return WindowPlacement(batch, axes, image=C * prod(held), out_image=row * prod(places))

    add_product(low, group, data, result, filters, groups, depth, tail, place, padded=padded)
