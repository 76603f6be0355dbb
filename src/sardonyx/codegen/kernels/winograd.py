"""3 x 3 convolution with stride 1 over NHWC data by Winograd's minimal filtering F(2 x 2, 3 x 3): 16 products for 36.

Source: A. Lavin, S. Gray, Fast Algorithms for Convolutional Neural Networks, section 4.1. The output is cut into tiles of 2 x 2
places, each of which sees 4 x 4 elements d of a channel; with a filter g of 3 x 3 taps

    places = Aᵀ [ (G g Gᵀ) * (Bᵀ d B) ] A          * element by element, summed over the input's channels

The sum over channels makes 16 products of matrices, one for each of the 4 x 4 positions:

    block of tiles:   transform    16 x (tiles, C)     kept in the second-level cache
    for each panel of output channels, for each CHAIN of input channels:
        for each few tiles:   16 products in registers, one after the other ─► 16 sums ─► transform ─► 2 x 2 places

Error: transforms only add and subtract, and sums go over the channels alone, in chains of CHAIN: measured, it is that of direct
summation in chains of some 150 products, or less. A place depends on the elements of its own window only, so that NaN reaches those
places that see it and no others; an infinity becomes NaN there, as the difference of two infinities.

Where less precision is asked for, transformed elements and filters are rounded to bfloat16, in pairs of channels, and a step of a
product is a dot product of pairs. Their errors are added up twice as high as those of the operands of a direct sum: a transformed
element is the sum of four.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sardonyx.codegen.emit.bfloat_dots import to_factor
from sardonyx.codegen.emit.module import Address, Kernel, Module
from sardonyx.codegen.emit.types import BF16, F32, I64, U64
from sardonyx.codegen.emit.values import Pointer, Register, Span
from sardonyx.codegen.emit.window import blocks, least
from sardonyx.codegen.kernels.conv import ConvEpilogue, ConvTiling, conv_tiling, cover_rows, share_ahead
from sardonyx.codegen.kernels.gemm_params import TASK_PRODUCTS
from sardonyx.codegen.kernels.pack import aligned_zeros
from sardonyx.codegen.kernels.tiles import Ahead, multiply
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array, DataType
from sardonyx.lazy_dataclasses import dataclass

__all__ = ["WinogradParams", "pack_winograd", "scratch_elements", "steps_of", "write_winograd"]

INPUT, FILTERS, OUTPUT, ZEROS, SCRATCH = range(5)
"""The first buffers of the kernel; those after them belong to the epilogue. ZEROS holds as many as there are input channels."""

CHAIN = 48
"""Most input channels, or pairs of them, that are summed in one chain."""

BLOCK_BYTES, MOST_BLOCK_BYTES = 1 << 19, 1 << 20
"""Transformed input of one block of tiles: in a large second-level cache more of it stays where the filters do not stay anyway."""

MOST_TILES = 96
"""Most tiles of one block."""

_SLACK = 16
"""Elements between the transformed tiles, which would else fall into the same sets of the first-level cache."""


@dataclass(frozen=True, slots=True)
class WinogradParams:
    """The integer parameters of the kernel, in their order; those of an epilogue follow."""

    images: int
    height: int
    """Of the input, as `width`."""
    width: int
    channels: int
    steps: int
    """Of a product: channels, or pairs of them."""
    places_high: int
    """Of the output, as `places_wide`."""
    places_wide: int
    columns: int
    """Output channels."""
    out_step: int
    """From one place of the output to the next."""
    begin_high: int
    """Padding above, as `begin_wide` on the left."""
    begin_wide: int
    block_tiles: int
    """Tiles of one block."""
    task_tiles: int
    """Tiles of one task."""
    task_columns: int
    """Output channels of one task: whole panels."""
    chain: int
    """Steps of one chain."""
    scratch: int
    """Elements of scratch memory of one task."""
    together: int
    """The most tasks that run at a time, so many as there is scratch memory for; their numbers follow one another."""

    @staticmethod
    def blocked(
        target: Target,
        images: int,
        size: tuple[int, int],
        channels: int,
        places: tuple[int, int],
        columns: int,
        begins: tuple[int, int],
        together: int,
        out_step: int = 0,
        *,
        pairs: bool = False,
    ) -> WinogradParams:
        """Return the parameters, for scratch memory of `together` tasks; there may be more tasks than that.

        Places lie densely but for an `out_step`. With `pairs` there is an even number of channels.
        """
        steps = steps_of(channels, pairs=pairs)
        height = conv_tiling(target).heights[conv_tiling(target).vectors][0]
        tiles = images * -(-places[0] // 2) * -(-places[1] // 2)
        most = _block_tiles(target, steps, columns)
        pieces_columns = 1 if target.keeps(16 * 4 * steps * columns) else max(together // 2, 1)
        task_columns = _round_up(-(-columns // pieces_columns), conv_tiling(target).panel)
        pieces_tiles = together // max(-(-columns // task_columns), 1)
        rounds = -(-tiles * 16 * steps * columns // (together * TASK_PRODUCTS)) or 1
        share = -(-tiles // (rounds * pieces_tiles))
        share = _round_up(share, height) if share > 4 * height else max(share, 1)
        pieces = -(-share // most)
        return WinogradParams(
            images,
            *size,
            channels,
            steps,
            *places,
            columns,
            out_step or columns,
            *begins,
            block_tiles=min(_round_up(-(-share // pieces), height), most),
            task_tiles=share,
            task_columns=task_columns,
            chain=_chain(steps),
            scratch=scratch_elements(target, steps, columns),
            together=together,
        )

    def words(self) -> list[int]:
        """Return the parameters as the kernel reads them."""
        return [getattr(self, name) for name in _PARAMS]

    def tasks(self) -> int:
        """Return how many tasks the convolution is; none if it has no element."""
        tiles = self.images * -(-self.places_high // 2) * -(-self.places_wide // 2)
        return -(-tiles // self.task_tiles) * -(-self.columns // self.task_columns)


_PARAMS = tuple(WinogradParams.__dataclass_fields__)


def _round_up(number: int, unit: int) -> int:
    return max(-(-number // unit), 1) * unit


def steps_of(channels: int, *, pairs: bool) -> int:
    """Return how many steps a product over so many channels has."""
    return channels // 2 if pairs else channels


def _block_tiles(target: Target, steps: int, columns: int) -> int:
    height = conv_tiling(target).heights[conv_tiling(target).vectors][0]
    stays = BLOCK_BYTES + 16 * 4 * steps * columns <= target.cache_bytes
    block_bytes = BLOCK_BYTES if stays else min(max(target.cache_bytes // 2, BLOCK_BYTES), MOST_BLOCK_BYTES)
    return max(min(block_bytes // (16 * 4 * max(steps, 1)), MOST_TILES) // height, 2) * height


def _chain(steps: int) -> int:
    return -(-steps // max(-(-steps // CHAIN), 1)) or 1


def _tile_step(steps: int) -> int:
    return 16 * steps + _SLACK


def scratch_elements(target: Target, steps: int, columns: int) -> int:
    """Return how many elements of scratch memory for one task: a block's transformed input, and its places for one panel."""
    return _block_tiles(target, steps, columns) * (_tile_step(steps) + 4 * conv_tiling(target).panel)


def pack_winograd(filters: Array, width: int, *, pairs: bool = False) -> Array:
    """Return the filters (M, C, 3, 3), transformed, as [panel][chain][position][step of the chain][width].

    A step is a channel in float32, or two of them in bfloat16, as uint32. Zeros fill the last panel.
    """
    M, C = filters.shape[:2]
    steps, each = steps_of(C, pairs=pairs), 2 if pairs else 1
    chain, element = _chain(steps), DataType.BFLOAT16.numpy if pairs else np.dtype(np.float32)
    packed = aligned_zeros((-(-M // width), 16 * steps * width), np.uint32 if pairs else np.float32)
    for number, panel in enumerate(packed.view(element).reshape(len(packed), 16 * steps * width * each)):
        block = filters[number * width : (number + 1) * width]
        taps = np.ascontiguousarray(block.transpose(2, 3, 1, 0), np.float64)
        rows = _transform(taps)
        for first in range(0, steps, chain):
            depth = min(chain, steps - first)
            size, channels = 16 * width * each, slice(first * each, (first + depth) * each)
            piece = panel[first * size :][: depth * size].reshape(4, 4, depth, width, each)
            for i, row in enumerate(rows):
                for j, position in enumerate(_transform(row[:, channels])):
                    piece[i, j, :, : len(block)] = position.reshape(depth, each, len(block)).swapaxes(1, 2)
    return packed


def _transform(g: Array) -> list[Array]:
    """Compute G g of three arrays."""
    outer, middle = (g[0] + g[2]) / 2, g[1] / 2
    return [g[0], outer + middle, outer - middle, g[2]]


def write_winograd(
    module: Module, symbol: str, epilogue: ConvEpilogue | None = None, widths: Sequence[int] = (), *, pairs: bool = False
) -> None:
    """Write the kernel `symbol`: buffers input, packed filters, output, zeros, scratch and those of the epilogue.

    Args:
        module: where to write.
        symbol: the name of the kernel.
        epilogue: what to store instead of the sums.
        widths: those of `widths_for` the columns that it will be given; all, where they are not known.
        pairs: whether products are of pairs of bfloat16.
    """
    shape = conv_tiling(module.target)
    transform = _write_transform(module, f"{symbol}_transform", pairs=pairs)
    finish = _write_finish(module, f"{symbol}_finish", shape, epilogue)
    products = {
        (vectors, height): _write_products(module, f"{symbol}_{height}x{vectors}", shape, vectors, height, pairs=pairs)
        for vectors in widths or shape.heights
        for height in shape.heights[vectors]
    }
    with module.kernel(symbol) as b:
        p = _params(b)
        high, wide = (p["places_high"] + 1) // 2, (p["places_wide"] + 1) // 2
        tiles = p["images"] * high * wide
        sums = b.stack(F32, 16 * shape.most * shape.lanes, align=64)
        table = b.stack(I64, 4 * (MOST_TILES + shape.heights[1][0]), align=64)
        pieces = blocks(p["columns"], p["task_columns"])
        with b.loop(b.begin, b.end) as task:
            scratch = b.buffer(SCRATCH, F32).at(task % p["together"] * p["scratch"])
            begin, left = task // pieces * p["task_tiles"], task % pieces * p["task_columns"]
            end, right = least(b, begin + p["task_tiles"], tiles), least(b, left + p["task_columns"], p["columns"])
            with b.loop(begin, end, p["block_tiles"]) as first:
                count = least(b, p["block_tiles"], end - first)
                b.call_part(transform, scratch, table, first, count, high, wide)
                _write_block(b, shape, products, finish, _Block(scratch, table, sums, count, left, right))


@dataclass(frozen=True, slots=True)
class _Block:
    """The memory of one block of tiles, and its output channels from `left` to `right`."""

    scratch: Pointer
    table: Pointer
    sums: Pointer
    count: Register
    left: Register
    right: Register


def _write_block(b: Kernel, shape: ConvTiling, products: Mapping[tuple[int, int], Kernel], finish: Kernel, block: _Block) -> None:
    p = _params(b)
    step = p["steps"] * 16 + _SLACK
    kept = block.scratch.at(p["block_tiles"] * step)
    filters = b.buffer(FILTERS, F32)
    with b.loop(block.left, block.right, shape.panel) as n, b.loop(0, p["steps"], p["chain"]) as k:
        panel = filters.at((n * p["steps"] + k * shape.panel) * 16)
        depth = least(b, p["chain"], p["steps"] - k)
        vectors = least(b, blocks(p["columns"] - n, b.const(I64, shape.lanes)), b.const(I64, shape.vectors))
        with b.switch(vectors) as switch:
            for width in dict.fromkeys(width for width, _ in products):
                with switch.case(width):
                    for height, (top, bottom) in cover_rows(shape.heights[width], block.count):
                        stride = share_ahead(b, shape.panel, height, bottom - top)
                        with b.loop(top, bottom, height) as m:
                            source = block.scratch.at(m * step + k)
                            ahead = panel.at((shape.panel + (m - top) // height * stride) * (depth * 16))
                            b.call_part(products[width, height], source, panel, block.sums, ahead, depth, stride)
                            places = kept.at(m * (4 * shape.panel))
                            b.call_part(finish, block.sums, block.table.at(m * 4), places, b.const(I64, height), vectors, n, k)


def _write_transform(module: Module, symbol: str, *, pairs: bool) -> Kernel:
    """Write Bᵀ d B of every channel of some tiles, and where their places lie in the output: -1 where they do not exist."""
    with module.part(symbol, Address(F32), Address(I64), I64, I64, I64, I64) as b:
        result, table = b.addresses
        first, count, high, wide = b.arguments
        p = _params(b)
        pointers = b.stack(I64, 16)
        with b.loop(0, count) as number:
            tile = first + number
            row, column, image = tile // wide % high, tile % wide, tile // (high * wide)
            _put_places(b, table.at(number * 4), image, row * 2, column * 2)
            _put_sources(b, pointers, image, row * 2 - p["begin_high"], column * 2 - p["begin_wide"])
            target = result.at(number * (p["steps"] * 16 + _SLACK)).of(BF16 if pairs else F32)
            for c, span in b.vectors(0, p["channels"], F32):
                elements = [pointers.load_pointer(position, F32).load(c, span) for position in range(16)]
                rows = [_combine(elements[column::4]) for column in range(4)]
                for i in range(4):
                    for j, value in enumerate(_combine([rows[column][i] for column in range(4)])):
                        target.at(p["channels"] * (4 * i + j)).store(to_factor(b, value) if pairs else value, c, span)
    return b


def _combine(d: Sequence[Register]) -> list[Register]:
    """Compute Bᵀ d of four values."""
    return [d[0] - d[2], d[1] + d[2], d[2] - d[1], d[1] - d[3]]


def _put_sources(b: Kernel, pointers: Pointer, image: Register, top: Register, left: Register) -> None:
    """Put the addresses of the 4 x 4 elements from (top, left) on; those in the padding are the zeros."""
    p = _params(b)
    source, zeros = b.buffer(INPUT, F32), b.buffer(ZEROS, F32)
    for i in range(4):
        row = top + i
        in_rows = row.to(U64) < p["height"].to(U64)
        for j in range(4):
            column = left + j
            inside = in_rows & (column.to(U64) < p["width"].to(U64))
            element = source.at(((image * p["height"] + row) * p["width"] + column) * p["channels"])
            pointers.store(b.select(inside, element.to(I64), zeros.to(I64)), 4 * i + j)


def _put_places(b: Kernel, table: Pointer, image: Register, top: Register, left: Register) -> None:
    p = _params(b)
    for i in range(2):
        for j in range(2):
            exists = (top + i < p["places_high"]) & (left + j < p["places_wide"])
            place = (image * p["places_high"] + (top + i)) * p["places_wide"] + (left + j)
            table.store(b.select(exists, place * p["out_step"], -1), 2 * i + j)


def _write_products(module: Module, symbol: str, shape: ConvTiling, vectors: int, height: int, *, pairs: bool) -> Kernel:
    """Write the 16 products of some tiles with one panel, over one chain of steps; the sums are put down one after the other.

    Filters of the next chain are fetched in the meantime, by all tiles of the largest height together.
    """
    is_largest = (vectors, height) == (shape.vectors, shape.heights[shape.vectors][0])
    with module.part(symbol, Address(F32), Address(F32), Address(F32), Address(F32), I64, I64) as b:
        source, panel, result, ahead = b.addresses
        depth, stride = b.arguments
        steps = _params(b)["steps"]
        sums = [b.variable(b.const(F32.vector(shape.lanes), 0.0)) for _ in range(height * vectors)]
        with b.loop(0, 16) as position:
            for total in sums:
                total.set(b.const(total.type, 0.0))
            rows = [source.at(position * steps + (steps * 16 + _SLACK) * row) for row in range(height)]
            near = Ahead(ahead.at(position * depth * stride), stride) if is_largest else None
            multiply(b, rows, panel.at(position * depth * shape.panel), shape.panel, depth, sums, near, pairs=pairs)
            for number, total in enumerate(sums):
                result.store(total.value, (position * shape.most + number) * shape.lanes, shape.lanes)
    return b


def _write_finish(module: Module, symbol: str, shape: ConvTiling, epilogue: ConvEpilogue | None) -> Kernel:
    """Write Aᵀ m A of the sums of some tiles: kept until the last chain, then stored through the epilogue."""
    lanes = shape.lanes
    with module.part(symbol, Address(F32), Address(I64), Address(F32), I64, I64, I64, I64) as b:
        sums, table, kept = b.addresses
        rows, vectors, n, k = b.arguments
        p = _params(b)
        is_last = k + p["chain"] >= p["steps"]
        four = b.stack(F32, 4 * lanes, align=64)
        with b.loop(0, rows) as row, b.loop(0, vectors) as vector:
            here = sums.at((row * vectors + vector) * lanes)
            elements = [here.load(position * shape.most * lanes, lanes) for position in range(16)]
            halves = [_gather_up(elements[column::4]) for column in range(4)]
            values = [value for i in range(2) for value in _gather_up([halves[column][i] for column in range(4)])]
            mine = kept.at((row * shape.vectors + vector) * (4 * lanes))
            places = [b.variable(value) for value in values]
            with b.when(k > 0):
                for number, place in enumerate(places):
                    place.set(mine.load(number * lanes, lanes) + place.value)

            def keep(target: Pointer, places: Sequence[Register]) -> None:
                for number, value in enumerate(places):
                    target.store(value, number * lanes, lanes)

            def store(row: Register, column: Register, places: Sequence[Register]) -> None:
                keep(four, places)
                span = Span(lanes, b.tail_mask(least(b, p["columns"] - column, b.const(I64, lanes)), lanes))
                with b.loop(0, 4) as number:
                    start = table.load(row * 4 + number)
                    with b.when(start >= 0):
                        value, place = four.load(number * lanes, lanes), start + column
                        b.buffer(OUTPUT, F32).store(epilogue(b, value, place, column, span) if epilogue else value, place, span)

            given, column = [place.value for place in places], n + vector * lanes
            b.branch(is_last, lambda: store(row, column, given), lambda: keep(mine, given))
    return b


def _gather_up(m: Sequence[Register]) -> list[Register]:
    """Compute Aᵀ m of four values."""
    return [m[0] + m[1] + m[2], m[1] - m[2] - m[3]]


def _params(b: Kernel) -> dict[str, Register]:
    return {name: b.param(place) for place, name in enumerate(_PARAMS)}
