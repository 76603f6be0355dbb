"""Convolution over channels-last data as a product of matrices whose left side is never built (implicit GEMM).

The rows of the product are places of the output (batch and spatial axes, flattened), its columns the output's channels, and its
inner dimension runs over the taps of the kernel and the channels of each. A row of the left side is not copied together: the
tile's rows are pointers into the input, moved from tap to tap.

    for each run (a tap, or taps that lie side by side):       weights, packed: [group][panel][run][depth][panel width]
        pointers of the tile's rows at this run                a row that falls into the padding reads zeros instead
        sums[i, j] += row[i][k] * panel[k, j]                  `depth` steps, the inner loop of the plain product

A *run* is what lies in order in memory for every row: the channels of one tap; or, where no row falls into the padding along the
last axis, those of all taps along it, so that kernels over few channels (3 x 7 of them) have long inner loops too.

The same kernel computes one phase of a transposed convolution: places of the output lie as far apart as `out_step` says.
A sum is made of chains of at most CHAIN multiply-adds, in the order of runs and channels, added up one after the other: rounding
errors grow with the length of a chain. Chains depend on the sizes of the kernel only; blocks, tiles and threads do not change bits.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from sardonyx.codegen.emit.module import Address, Kernel, Module
from sardonyx.codegen.emit.types import F32, I64, Type
from sardonyx.codegen.emit.values import Pointer, Register, Span
from sardonyx.codegen.emit.window import AxisValues, WindowAxis, axis_words, blocks, least, read_axes
from sardonyx.codegen.kernels.conv_rows import BLOCK_ROWS, Rows, Steps, fill_table, result_of, row_table
from sardonyx.codegen.kernels.cuts import cut_for, piece
from sardonyx.codegen.kernels.gemm_params import BLOCK_K, CHAIN, TASK_PRODUCTS
from sardonyx.codegen.kernels.tiles import Ahead, Cell, Range, TileEnds, finish_in_a_loop, multiply, waits_in_memory
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array
from sardonyx.lazy_dataclasses import dataclass

__all__ = [
    "FILTERS",
    "INPUT",
    "OUTPUT",
    "ZEROS",
    "ConvEpilogue",
    "ConvParams",
    "ConvTile",
    "ConvTiling",
    "TilePlaces",
    "axes_of",
    "conv_tiling",
    "cover_rows",
    "pack_filters",
    "read_params",
    "share_ahead",
    "steps_of",
    "task_of",
    "widths_for",
    "write_conv",
]

ConvEpilogue = Callable[[Kernel, Register, Register, Register, Span], Register]
"""`epilogue(b, sums, place, column, span)`: what to store at element `place` of the output, which is of channel `column` …."""

INPUT, FILTERS, OUTPUT, ZEROS = range(4)
"""The first buffers of the kernel; those after them belong to the epilogue. ZEROS holds `depth` zeros, read in the padding."""


_SHORTEST_PIECE = 4
"""Tiles of rows that a task has at least where more columns can be shared instead."""


@dataclass(frozen=True, slots=True)
class ConvParams:
    """The integer parameters of the kernel, in their order; then those of each axis, in the order of WindowAxis."""

    rows: int
    """Places of the output: batch times spatial sizes."""
    columns: int
    """Output channels of one group."""
    groups: int
    depth: int
    """Elements of one run."""
    runs: int
    """Runs of one place: the product of the axes' taps."""
    image: int
    """From one image of the input to the next."""
    group_step: int
    """From one group's input channels to the next group's."""
    out_image: int
    """From one image of the output to the next."""
    out_begin: int
    """Where the first place lies in the output."""
    pieces_rows: int
    """Pieces of the rows: a task has one of them."""
    unit_rows: int
    """What begins a piece is a multiple of: the height of a tile."""
    pieces_columns: int
    """Pieces of the columns, each of whole panels."""
    block_runs: int
    """Runs that are gone through before the next panel."""
    block_depth: int
    """Elements of each run that are: all, unless `block_runs` is 1."""
    chain_runs: int
    """Runs of one chain; divides `block_runs`, but for the last block."""
    chain_depth: int
    """Elements of each run in one chain: all, unless `chain_runs` is 1; divides `block_depth`, but for the last block."""
    axes: tuple[WindowAxis, ...]
    """Outermost first."""

    @staticmethod
    def blocked(
        target: Target,
        batch: int,
        columns: int,
        depth: int,
        axes: Sequence[WindowAxis],
        *,
        groups: int = 1,
        image: int,
        group_step: int = 0,
        out_image: int,
        out_begin: int = 0,
        threads: int = 1,
        kind: Type = F32,
        chains: int = 1,
    ) -> ConvParams:
        """Return the parameters with blocks that suit the caches and `threads`, for elements of `kind`; with `chains` at least."""
        shape = conv_tiling(target, kind)
        rows, runs = batch, 1
        for axis in axes:
            rows, runs = rows * axis.places, runs * axis.taps
        vectors = min(-(-columns // shape.lanes), shape.vectors)
        height = shape.heights[max(vectors, 1)][0]
        units, panels = -(-rows // height), -(-columns // shape.panel)
        size_bytes = kind.size_bytes * runs * depth * columns
        least = max(1, -(-units // (BLOCK_ROWS // height)))
        most = max(-(-units // _SHORTEST_PIECE), least)
        pieces_rows, pieces_columns = cut_for(target, (least, most), panels, size_bytes, threads, groups=groups)
        pieces_rows = min(pieces_rows, units)
        block_rows = -(-units // (pieces_rows or 1)) * height
        pieces_columns = max(pieces_columns, block_rows * runs * depth * columns // TASK_PRODUCTS)
        chain_runs = max(min(CHAIN // max(depth, 1), -(-runs // chains)), 1)
        chain_depth = -(-depth // max(-(-depth // CHAIN), -(-chains // max(runs, 1)), 1)) or 1
        return ConvParams(
            rows=rows,
            columns=columns,
            groups=groups,
            depth=depth,
            runs=runs,
            image=image,
            group_step=group_step,
            out_image=out_image,
            out_begin=out_begin,
            pieces_rows=pieces_rows,
            unit_rows=height,
            pieces_columns=min(pieces_columns, panels),
            block_runs=max(BLOCK_K // (chain_runs * max(depth, 1)), 1) * chain_runs,
            block_depth=BLOCK_K // chain_depth * chain_depth if depth > BLOCK_K else max(depth, 1),
            chain_runs=chain_runs,
            chain_depth=chain_depth,
            axes=tuple(axes),
        )

    def words(self) -> list[int]:
        """Return the parameters as the kernel reads them; those of an epilogue follow."""
        own = [getattr(self, name) for name in _PARAMS]
        return own + axis_words(self.axes)

    def tasks(self) -> int:
        """Return how many tasks a convolution is."""
        return self.groups * self.pieces_rows * self.pieces_columns


_PARAMS = tuple(ConvParams.__dataclass_fields__)[:-1]


@dataclass(frozen=True, slots=True)
class ConvTiling:
    """How a target covers the output: vectors of a panel, and for each number of vectors the heights of its tiles."""

    lanes: int
    """Elements of one vector."""
    heights: Mapping[int, tuple[int, ...]]
    """Vectors -> rows of its tiles, tallest first; ends with 1."""

    @property
    def vectors(self) -> int:
        """Vectors of one row of a panel."""
        return max(self.heights)

    @property
    def panel(self) -> int:
        """Columns of one panel."""
        return self.vectors * self.lanes

    @property
    def most(self) -> int:
        """Accumulators of the largest tile."""
        return max(vectors * heights[0] for vectors, heights in self.heights.items())

    @property
    def name(self) -> str:
        """Rows and columns of the largest tile, as in 6x64."""
        return f"{self.heights[self.vectors][0]}x{self.panel}"


@functools.cache
def conv_tiling(target: Target, kind: Type = F32) -> ConvTiling:
    """Return the tiles of `kind` that fit the registers of `target`: accumulators, one row of the panel and one broadcast."""
    lanes = target.lanes(kind.bits)
    if target.registers >= 32:
        return ConvTiling(lanes, {4: (6, 4, 2, 1), 3: (8, 4, 1), 2: (8, 4, 1), 1: (8, 4, 1)})
    if target.has_fma:
        return ConvTiling(lanes, {2: (6, 4, 2, 1), 1: (6, 3, 1)})
    return ConvTiling(lanes, {2: (4, 2, 1), 1: (4, 1)})


def widths_for(target: Target, columns: int, kind: Type = F32) -> tuple[int, ...]:
    """Return the widths, in vectors, of the tiles that cover so many columns: those of whole panels, and of what is left."""
    shape = conv_tiling(target, kind)
    rest = -(-(columns % shape.panel) // shape.lanes)
    return tuple(width for width in shape.heights if width == rest or (width == shape.vectors and columns >= shape.panel))


def pack_filters(filters: Array, groups: int, width: int) -> Array:
    """Return the filters (M, C / groups, kernel…) as [group][panel][kernel…][C / groups][width], in float32 or float64.

    Output channels side by side, zeros after.
    """
    dtype = np.float64 if filters.dtype == np.float64 else np.float32
    M, K = len(filters) // groups, int(np.prod(filters.shape[1:]))
    taps_first = np.moveaxis(filters, 1, -1)
    packed = np.zeros((groups, -(-M // width), K, width), dtype)
    for group, panels in enumerate(packed):
        for number, panel in enumerate(panels):
            first = group * M + number * width
            block = taps_first[first : min(first + width, (group + 1) * M)]
            apart = np.empty((len(block), K + _APART), dtype)
            apart[:, :K] = block.reshape(len(block), K)
            panel[:, : len(block)] = apart[:, :K].T
    return packed


_APART = 16
"""Elements between rows that are read side by side, which would else meet in the same sets of the cache."""


def write_conv(
    module: Module,
    symbol: str,
    rank: int,
    *,
    padded: bool,
    epilogue: ConvEpilogue | None = None,
    widths: Sequence[int] = (),
    pairs: bool = False,
    kind: Type = F32,
) -> None:
    """Write the kernel `symbol`: buffers input, packed filters, output, zeros and those of the epilogue; params as in ConvParams.

    Args:
        module: where to write.
        symbol: the name of the kernel.
        rank: the number of spatial axes.
        padded: whether rows may fall into padding; where none does, addresses take fewer instructions.
        epilogue: what to store instead of the sums.
        widths: those of `widths_for` the columns that it will be given; all, where they are not known.
        pairs: whether elements of input and filters are two bfloat16 each, and parameters count these.
        kind: the type of elements and sums, F32 or F64.
    """
    shape = conv_tiling(module.target, kind)
    tiles = {
        (vectors, height): _write_tile(
            module, f"{symbol}_{height}x{vectors}", (vectors, height), rank, epilogue, padded=padded, pairs=pairs, kind=kind
        )
        for vectors in widths or shape.heights
        for height in shape.heights[vectors]
    }
    with module.kernel(symbol) as b:
        p, axes = read_params(b), axes_of(b, rank)
        table = row_table(b, rank)
        with b.loop(b.begin, b.end) as task:
            group, (top, bottom), (left, right) = task_of(b, task, shape.panel)
            fill_table(b, table, steps_of(p), axes, top, bottom, group)
            with b.loop(0, b.max(p["runs"], 1), p["block_runs"]) as run, b.loop(0, b.max(p["depth"], 1), p["block_depth"]) as k:
                _write_block(b, shape, tiles, table, _Block(group, bottom - top, left, right, run, k), kind)


@dataclass(frozen=True, slots=True)
class _Block:
    """What one pass over rows and panels covers."""

    group: Register
    rows: Register
    left: Register
    right: Register
    run: Register
    k: Register


def task_of(b: Kernel, task: Register, panel: int) -> tuple[Register, Range, Range]:
    """Return the group of a task, its rows and its columns, which begin at a multiple of `panel`."""
    p = read_params(b)
    pieces = p["pieces_rows"] * p["pieces_columns"]
    group, part = task // pieces, task % pieces
    rows = piece(b, part // p["pieces_columns"], p["pieces_rows"], p["rows"], p["unit_rows"])
    return group, rows, piece(b, part % p["pieces_columns"], p["pieces_columns"], p["columns"], panel)


def _write_block(
    b: Kernel, shape: ConvTiling, tiles: Mapping[tuple[int, int], Kernel], table: Pointer, block: _Block, kind: Type
) -> None:
    p = read_params(b)
    depth = p["runs"] * p["depth"]
    panels = blocks(p["columns"], b.const(I64, shape.panel))
    first = b.buffer(FILTERS, kind).at((block.group * panels * depth + block.run * p["depth"] + block.k) * shape.panel)
    with b.loop(block.left, block.right, shape.panel) as n:
        panel = first.at(n * depth)
        vectors = least(b, blocks(block.right - n, b.const(I64, shape.lanes)), b.const(I64, shape.vectors))
        with b.switch(vectors) as switch:
            for width in dict.fromkeys(width for width, _ in tiles):
                with switch.case(width):
                    for height, (top, bottom) in cover_rows(shape.heights[width], block.rows):
                        stride = share_ahead(b, shape.panel, height, bottom - top)
                        share = stride * p["block_runs"] * p["block_depth"]
                        with b.loop(top, bottom, height) as m:
                            ahead = panel.at(depth * shape.panel + (m - top) // height * share)
                            b.call_part(tiles[width, height], table.at(m), panel, ahead, block.group, n, block.run, block.k, stride)


def share_ahead(b: Kernel, width: int, height: int, rows: Register) -> Register:
    """Return how many elements of the next panel a tile fetches at each step, so that all tiles together fetch it."""
    tiles = b.max((rows + (height - 1)) // height, 1)
    return (tiles + (width - 1)) // tiles


def cover_rows(heights: Sequence[int], rows: Register) -> Iterator[tuple[int, tuple[Register, Register]]]:
    """Yield ranges of rows for tiles of falling height."""
    first = rows.like(0)
    for height in heights:
        last = first + (rows - first) // height * height
        yield height, (first, last)
        first = last


def _write_tile(
    module: Module,
    symbol: str,
    size: tuple[int, int],
    rank: int,
    epilogue: ConvEpilogue | None,
    *,
    padded: bool,
    pairs: bool,
    kind: Type,
) -> Kernel:
    """Write one tile of the output and one block of runs: chain after chain, each added to what the output holds so far."""
    vectors, height = size
    shape = conv_tiling(module.target, kind)
    with module.part(symbol, Address(I64), Address(kind), Address(kind), I64, I64, I64, I64, I64) as b:
        table, panel, ahead = b.addresses
        group, n, first_run, first_k, stride = b.arguments
        p = read_params(b)
        last_run = least(b, first_run + p["block_runs"], p["runs"])
        last_k = least(b, first_k + p["block_depth"], p["depth"])
        places = TilePlaces(height, lambda row: result_of(table, row) + n)
        tile = ConvTile(b, OUTPUT, places, vectors, group * p["columns"] + n, p["columns"] - n, kind)
        rows = Rows(b, table, height, axes_of(b, rank), b.buffer(INPUT, kind), b.buffer(ZEROS, kind) if padded else None)
        fetched = stride if (vectors, height) == (shape.vectors, shape.heights[shape.vectors][0]) else None
        end = b.max(last_run, first_run + 1)
        with b.loop(first_run, end, p["chain_runs"]) as start, b.loop(first_k, last_k, p["chain_depth"]) as k:
            stop, stop_k = least(b, start + p["chain_runs"], last_run), least(b, k + p["chain_depth"], last_k)
            tile.clear()
            with b.loop(start, stop) as run:
                done = (run - first_run) * p["depth"] + k - first_k
                near = Ahead(ahead.at(done * fetched), fetched) if fetched is not None else None
                starts = rows.at(run, k)
                multiply(b, starts, panel.at(done * shape.panel), shape.panel, stop_k - k, tile.sums, near, pairs=pairs)
            with b.when((start + k) > 0):
                tile.add_what_is_there()
            if epilogue is None:
                tile.put_down()
            else:
                b.branch((stop >= p["runs"]) & (stop_k >= p["depth"]), lambda: tile.finish(epilogue), tile.put_down)
    return b


@dataclass(frozen=True, slots=True)
class TilePlaces:
    """The places of one tile."""

    height: int
    """How many."""
    start_of: Callable[[Register | int], Register]
    """Returns where in the output the first element of the tile at a place lies."""


class ConvTile:
    """The accumulators of one tile, and its elements in the output."""

    def __init__(
        self,
        b: Kernel,
        output: int,
        places: TilePlaces,
        vectors: int,
        column: Register,
        remaining: Register,
        kind: Type = F32,
    ) -> None:
        """Make the accumulators.

        Args:
            b: the kernel to write into.
            output: the number of the output's buffer.
            places: the places.
            vectors: vectors of channels at each.
            column: the first output channel.
            remaining: output channels from there on, of which the last vector may have fewer than lanes.
            kind: the type of elements.
        """
        lanes = b.target.lanes(kind.bits)
        self._b, self._lanes, self._start_of = b, lanes, places.start_of
        self._vectors, self.height, self._column = vectors, places.height, column
        starts = [places.start_of(i) for i in range(places.height)]
        self._places = [(start + j * lanes, column + j * lanes) for start in starts for j in range(vectors)]
        self._output = b.buffer(output, kind)
        self._ends = TileEnds(b, lanes, vectors, remaining)
        self.sums = [b.variable(b.const(kind.vector(lanes), 0.0)) for _ in self._places]

    def clear(self) -> None:
        """Begin a chain."""
        for total in self.sums:
            total.set(self._b.const(total.type, 0.0))

    def add_what_is_there(self) -> None:
        """Add the chains before this one."""
        self._ends.each_way(self._add)

    def put_down(self) -> None:
        """Leave the sums in the output."""
        self._ends.each_way(self._store)

    def finish(self, epilogue: ConvEpilogue) -> None:
        """Store what the epilogue makes of the sums."""
        waits = waits_in_memory(self._b.target, epilogue, self._output.element)
        self._ends.each_way(functools.partial(self._put_down_and_finish if waits else self._finish, epilogue))

    def _add(self, spans: list[Span]) -> None:
        for total, (place, _), span in zip(self.sums, self._places, spans * self.height, strict=True):
            total.set(self._output.load(place, span) + total.value)

    def _store(self, spans: list[Span]) -> None:
        cells = zip(self.sums, self._places, strict=True)
        self._ends.store(((self._output.at(place), total.value) for total, (place, _) in cells), spans)

    def _finish(self, epilogue: ConvEpilogue, spans: list[Span]) -> None:
        cells = zip(self.sums, self._places, spans * self.height, strict=True)
        self._ends.store(
            (
                (self._output.at(place), epilogue(self._b, total.value, place, channel, span))
                for total, (place, channel), span in cells
            ),
            spans,
        )

    def _put_down_and_finish(self, epilogue: ConvEpilogue, spans: list[Span]) -> None:
        b, output = self._b, self._output

        def cell(place: Register, channel: Register, span: Span) -> Cell:
            return lambda: epilogue(b, output.load(place, span), place, channel, span), lambda value: self._ends.store(
                [(output.at(place), value)], [span]
            )

        def row(i: Register) -> list[Cell]:
            steps = [j * self._lanes for j in range(self._vectors)]
            start = self._start_of(i)
            return [cell(start + step, self._column + step, span) for step, span in zip(steps, spans, strict=True)]

        self._store(spans)
        finish_in_a_loop(b, self.height, self._vectors, row)


def steps_of(p: dict[str, Register]) -> Steps:
    """Return how far images and groups lie apart."""
    return Steps(p["image"], p["group_step"], p["out_image"], p["columns"], p["out_begin"])


def read_params(b: Kernel) -> dict[str, Register]:
    """Return the fields of ConvParams but the axes, as values of a kernel."""
    return {name: b.param(place) for place, name in enumerate(_PARAMS)}


def axes_of(b: Kernel, rank: int) -> list[AxisValues]:
    """Return the axes of ConvParams as values of a kernel."""
    return read_axes(b, len(_PARAMS), rank)
