"""Convolution of a few planes, as images come, into channels-last data: the first layer of most networks.

The input is read where it lies, plane by plane, with no copy into channels-last order before. A *run* is one row of taps of one
plane. Along a row of the output, places go by several at a time; since the stride is baked into the code, their elements lie at
fixed distances from one address:

    plane c, row y + ky     x0 x1 x2 x3 x4          address of the run, at the first place
    place 0                 w0 w1 w2                sums[0, j] += x0 w0[j] + x1 w1[j] + x2 w2[j]
    place 1, stride 2             w0 w1 w2          sums[1, j] += x2 w0[j] + …

Places whose windows reach into the padding read a copy of what they see, on the stack, with zeros around it. A sum is made of
chains of at most CHAIN multiply-adds, in the order of planes, rows and taps; where a place lies does not change bits.
"""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.codegen.emit.module import Address, Kernel, Module
from sardonyx.codegen.emit.types import F32, I32, I64, U32
from sardonyx.codegen.emit.values import Pointer, Register, Span
from sardonyx.codegen.emit.window import AxisValues, WindowAxis, axis_words, blocks, least, read_axes
from sardonyx.codegen.kernels.conv import ConvEpilogue, ConvTile, TilePlaces, conv_tiling, cover_rows
from sardonyx.codegen.kernels.cuts import TASKS_PER_THREAD
from sardonyx.codegen.kernels.gemm_params import CHAIN, TASK_PRODUCTS, chains_over_channels
from sardonyx.codegen.kernels.pack import pack_columns
from sardonyx.codegen.kernels.tiles import multiply
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array
from sardonyx.lazy_dataclasses import dataclass

__all__ = ["MOST_RUNS", "MOST_STRIDE", "MOST_TAPS", "PlanesParams", "pack_planes", "write_planes_conv"]

INPUT, FILTERS, OUTPUT = range(3)
"""The first buffers of the kernel; those after them belong to the epilogue."""

MOST_RUNS = 48
"""Most rows of taps of all planes: the stack has room for what they see."""

MOST_TAPS, MOST_STRIDE = 11, 8
"""Along a row of the output, for the same reason."""

_FEW_VECTORS, _FEW_TAPS = 2, 4
"""Tiles of so many vectors have registers for the elements that places share, where all taps of a run are code."""

_PIECE = 48
"""Places of a piece of a row are a multiple of this, whole tiles of any height."""
_ROWS_PER_TASK = 4
"""Tasks of a thread are at least so many times as many as it needs, as rows at the border take longer."""


@dataclass(frozen=True, slots=True)
class PlanesParams:
    """The integer parameters of the kernel, in their order; then those of the two axes, in the order of WindowAxis."""

    images: int
    columns: int
    """Output channels."""
    planes: int
    image: int
    """From one image of the input to the next."""
    plane: int
    """From one plane to the next."""
    first_inside: int
    """The first place of a row whose window lies inside of the input."""
    last_inside: int
    """The place after the last of those."""
    block_rows: int
    """Rows of places in one task."""
    block_places: int
    """Places of a row in one task."""
    chain: int
    """Runs of one chain."""
    axes: tuple[WindowAxis, WindowAxis]
    """Elements of a row lie side by side."""

    @staticmethod
    def blocked(
        images: int, columns: int, planes: int, axes: tuple[WindowAxis, WindowAxis], *, image: int, plane: int, threads: int = 1
    ) -> PlanesParams:
        """Return the parameters with blocks that suit `threads`."""
        outer, inner = axes
        first = min(max(-(-inner.begin // inner.stride), 0), inner.places)
        last = min(max((inner.size + inner.begin - inner.taps) // inner.stride + 1, first), inner.places)
        runs = planes * outer.taps
        rows = max(images * outer.places, 1)
        wanted = TASKS_PER_THREAD * threads if threads > 1 else 1
        pieces = max(-(-wanted // rows), inner.places * columns * runs * inner.taps // TASK_PRODUCTS)
        return PlanesParams(
            images=images,
            columns=columns,
            planes=planes,
            image=image,
            plane=plane,
            first_inside=first,
            last_inside=last,
            block_rows=max(images * outer.places // (_ROWS_PER_TASK * TASKS_PER_THREAD * threads), 1),
            block_places=max(-(-inner.places // max(pieces, 1) // _PIECE) * _PIECE, _PIECE),
            chain=max(-(-runs // max(-(-runs * inner.taps // CHAIN), chains_over_channels(planes, outer.taps * inner.taps))), 1),
            axes=axes,
        )

    def words(self) -> list[int]:
        """Return the parameters as the kernel reads them; those of an epilogue follow."""
        return [getattr(self, name) for name in _PARAMS] + axis_words(self.axes)

    def tasks(self) -> int:
        """Return how many tasks a convolution is: rows are counted through all images."""
        return -(-self.images * self.axes[0].places // self.block_rows) * -(-self.axes[1].places // self.block_places)


_PARAMS = tuple(PlanesParams.__dataclass_fields__)[:-1]


def pack_planes(filters: Array, width: int) -> Array:
    """Return the filters (M, C, KH, KW), or (M, C, KW), as [panel][C][KH][KW][width]: output channels side by side, zeros after."""
    return pack_columns(filters.reshape(len(filters), -1).T, width)


def write_planes_conv(
    module: Module, symbol: str, *, taps: int, stride: int, epilogue: ConvEpilogue | None = None, widths: Sequence[int] = ()
) -> None:
    """Write the kernel `symbol`: buffers input, packed filters, output and those of the epilogue; params as in PlanesParams.

    Args:
        module: where to write.
        symbol: the name of the kernel.
        taps: along the last axis, at most MOST_TAPS; there may be MOST_RUNS rows of them.
        stride: from place to place there, at most MOST_STRIDE.
        epilogue: what to store instead of the sums.
        widths: those of `widths_for` the columns that it will be given; all, where they are not known.
    """
    writer = _Writer(module, symbol, taps, stride, epilogue, widths or tuple(conv_tiling(module.target).heights))
    with module.kernel(symbol) as b:
        p, (outer, inner) = _params(b), _axes(b)
        window = b.stack(F32, MOST_RUNS * writer.step, align=64)
        rows, pieces = p["images"] * outer["places"], blocks(inner["places"], p["block_places"])
        with b.loop(b.begin, b.end) as task:
            first, left = task // pieces * p["block_rows"], task % pieces * p["block_places"]
            right = least(b, left + p["block_places"], inner["places"])
            with b.loop(first, least(b, first + p["block_rows"], rows)) as row:
                writer.write_row(b, row, left, right, window)


def _heights(target: Target, vectors: int) -> tuple[int, ...]:
    """Return the places of tiles of so many vectors; single ones take more, as each waits for the one before."""
    found = conv_tiling(target).heights[vectors]
    return (16, *found) if vectors == 1 and target.registers >= 32 else found


class _Writer:
    """The parts of one kernel, and the loops around them."""

    def __init__(
        self, module: Module, symbol: str, taps: int, stride: int, epilogue: ConvEpilogue | None, widths: Sequence[int]
    ) -> None:
        self._shape = conv_tiling(module.target)
        self._heights = {vectors: _heights(module.target, vectors) for vectors in widths}
        most = (max(heights[0] for heights in self._heights.values()) - 1) * stride + taps
        self.step = -(-most // self._shape.lanes) * self._shape.lanes
        """Elements of one run of a window that is copied."""
        self._copy = _write_copy(module, f"{symbol}_window", self.step)
        self._tiles = {
            (vectors, height): _write_tile(module, f"{symbol}_{height}x{vectors}", (vectors, height), taps, stride, epilogue)
            for vectors, heights in self._heights.items()
            for height in heights
        }

    def write_row(self, b: Kernel, row: Register, left: Register, right: Register, window: Pointer) -> None:
        """Write the places [left, right) of one row, for all channels."""
        p, (outer, inner) = _params(b), _axes(b)
        lanes, panel = self._shape.lanes, self._shape.panel
        place = _Row(
            image=b.buffer(INPUT, F32).at(row // outer["places"] * p["image"]),
            top=row % outer["places"] * outer["stride"] - outer["begin"],
            result=row * outer["out_step"],
            window=window,
        )
        depth = p["planes"] * outer["taps"] * inner["taps"]
        with b.loop(0, p["columns"], panel) as n:
            filters = b.buffer(FILTERS, F32).at(n * depth)
            vectors = least(b, blocks(p["columns"] - n, b.const(I64, lanes)), b.const(I64, self._shape.vectors))
            with b.switch(vectors) as switch:
                for width, heights in self._heights.items():
                    with switch.case(width):
                        for height, (begin, end) in cover_rows(heights, right - left):
                            with b.loop(left + begin, left + end, height) as x:
                                self._write_places(b, place, (width, height), filters, x, n)

    def _write_places(self, b: Kernel, row: _Row, size: tuple[int, int], filters: Pointer, x: Register, n: Register) -> None:
        """Write one tile, from the input or from a copy of what it sees."""
        p, (outer, inner) = _params(b), _axes(b)
        left = x * inner["stride"] - inner["begin"]
        is_high = (row.top >= 0) & (row.top + outer["taps"] <= outer["size"])
        is_inside = is_high & (x >= p["first_inside"]) & (x + size[1] <= p["last_inside"])
        tile, result = self._tiles[size], row.result + x * inner["out_step"] + n

        def direct() -> None:
            source = row.image.at(row.top * outer["in_step"] + left)
            b.call_part(tile, source, filters, p["plane"], outer["in_step"], result, n)

        def copied() -> None:
            b.call_part(self._copy, row.image, row.window, row.top, left)
            b.call_part(tile, row.window, filters, outer["taps"] * self.step, b.const(I64, self.step), result, n)

        b.branch(is_inside, direct, copied)


@dataclass(frozen=True, slots=True)
class _Row:
    """One row of places."""

    image: Pointer
    """Its image."""
    top: Register
    """The row of the input that its windows begin in; it may lie in the padding."""
    result: Register
    """Where it begins in the output."""
    window: Pointer
    """Memory for what a tile sees."""


def _write_copy(module: Module, symbol: str, step: int) -> Kernel:
    """Write the copy of `step` elements of each run from (top, left) on, zeros where the input has none."""
    lanes = module.target.lanes(32)
    with module.part(symbol, Address(F32), Address(F32), I64, I64) as b:
        image, window = b.addresses
        top, left = b.arguments
        p, (outer, inner) = _params(b), _axes(b)
        with b.loop(0, p["planes"]) as plane, b.loop(0, outer["taps"]) as tap:
            row = top + tap
            is_there = (row >= 0) & (row < outer["size"])
            size = b.select(is_there, inner["size"], 0).to(U32)
            source = image.at(plane * p["plane"] + row * outer["in_step"] + left)
            target = window.at((plane * outer["taps"] + tap) * step)
            for first in range(0, step, lanes):
                columns = b.iota(I32, lanes) + (left + first).to(I32)
                target.store(source.load(first, Span(lanes, columns.to(U32) < size)), first, lanes)
    return b


def _write_tile(
    module: Module, symbol: str, size: tuple[int, int], taps: int, stride: int, epilogue: ConvEpilogue | None
) -> Kernel:
    """Write some places side by side: chain after chain, each added to what the output holds so far."""
    vectors, height = size
    panel = conv_tiling(module.target).panel
    is_code = vectors <= _FEW_VECTORS and taps <= _FEW_TAPS and module.target.registers >= 32
    with module.part(symbol, Address(F32), Address(F32), I64, I64, I64, I64) as b:
        source, filters = b.addresses
        plane, line, result, n = b.arguments
        p, (outer, inner) = _params(b), _axes(b)
        tile = ConvTile(b, OUTPUT, TilePlaces(height, lambda i: result + inner["out_step"] * i), vectors, n, p["columns"] - n)
        runs = p["planes"] * outer["taps"]
        offset, tap = b.variable(b.const(I64, 0)), b.variable(b.const(I64, 0))
        with b.loop(0, runs, p["chain"]) as start:
            stop = least(b, start + p["chain"], runs)
            tile.clear()
            with b.loop(start, stop) as run:
                row, weights = source.at(offset.value), filters.at(run * (taps * panel))
                if is_code:
                    _multiply_run(b, tile, row, weights, taps, stride)
                else:
                    places = [row.at(i * stride) for i in range(height)]
                    multiply(b, places, weights, panel, inner["taps"], tile.sums)
                is_last = (tap.value + 1).eq(outer["taps"])
                offset.set(offset.value + b.select(is_last, plane - (outer["taps"] - 1) * line, line))
                tap.set(b.select(is_last, b.const(I64, 0), tap.value + 1))
            with b.when(start > 0):
                tile.add_what_is_there()
            if epilogue is None:
                tile.put_down()
            else:
                b.branch(stop >= runs, lambda: tile.finish(epilogue), tile.put_down)
    return b


def _multiply_run(b: Kernel, tile: ConvTile, row: Pointer, weights: Pointer, taps: int, stride: int) -> None:
    """Add the products of one run, with all its taps as code: elements that places share are read once."""
    lanes, panel = b.target.lanes(32), conv_tiling(b.target).panel
    vectors = len(tile.sums) // tile.height
    for k in range(taps):
        columns = [weights.load(k * panel + j * lanes, lanes) for j in range(vectors)]
        for i in range(tile.height):
            factor = row.load(i * stride + k).splat(lanes)
            for total, column in zip(tile.sums[i * vectors : (i + 1) * vectors], columns, strict=True):
                total.set(b.fma(factor, column, total.value))


def _params(b: Kernel) -> dict[str, Register]:
    return {name: b.param(place) for place, name in enumerate(_PARAMS)}


def _axes(b: Kernel) -> tuple[AxisValues, AxisValues]:
    outer, inner = read_axes(b, len(_PARAMS), 2)
    return outer, inner
