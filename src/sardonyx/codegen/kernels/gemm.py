"""C[M, N] = A[M, K] @ B[K, N], at the speed of the multiply-add units; in float32 unless the panels are of other numbers.

B is packed into panels as wide as a tile (zeros fill the last one), so that the inner loop reads it in order; A is read in
place, one broadcast per row and step:

                     panel of B: K x 64                  tile: 6 rows of A times one panel,
                    ┌──┬──┬──┬──┐                        24 accumulators in registers
                    │b0│b1│b2│b3│  one row, one load each
    6 rows of A     └──┴──┴──┴──┘
     a0 · · ·       ┌──┬──┬──┬──┐
     a1 · · ·       │  │  │  │  │  sums[i][j] += a[i] * b[j]
     …              └──┴──┴──┴──┘

Around it: blocks of K, so that a panel's block stays in the second-level cache, then panels, then rows. One task is one block of
C, and all of K unless that is very long: others go on then with what C holds. A sum over K is made of chains of multiply-adds
(`chain_for`), added up in the order of K: rounding errors grow with the length of a chain. Chains are the same whatever the blocks,
the tile and the position of a row: equal rows give equal bits in a batch or alone and with any number of threads.

Tails: what is left of M and N after whole tiles is covered by smaller ones, the last columns under a mask; where masks are not
free, the last columns of C are stored by halves of vectors, and a tile as wide as a panel may end early. A few rows of A go through
several panels side by side, where one panel has few sums (`_SIDE_BY_SIDE`).

Panels may be stored in other types than float32 (`panels`): the chain of K that is needed next is then decoded to the stack, or for
few rows of A in registers. Where both sides are pairs of bfloat16, a step of K is a dot product of pairs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.module import Address, Kernel, Module
from sardonyx.codegen.emit.types import F32, I64
from sardonyx.codegen.emit.values import Operand, Pointer, Register, Span
from sardonyx.codegen.kernels.cuts import piece
from sardonyx.codegen.kernels.gemm_params import PART_TASKS, read_gemm_params
from sardonyx.codegen.kernels.panels import LONGEST_CHAIN, PanelColumns, Panels, WidePanels
from sardonyx.codegen.kernels.tiles import (
    Ahead,
    Cell,
    Range,
    TileEnds,
    Tiling,
    cover_columns,
    cover_rows,
    finish_in_a_loop,
    has_many_registers,
    multiply,
    tiling,
    waits_in_memory,
)
from sardonyx.codegen.target import Target
from sardonyx.lazy_dataclasses import dataclass, replace

__all__ = [
    "WIDE",
    "Epilogue",
    "Tiling",
    "gemm_symbol",
    "tiling",
    "write_gemm",
]

Epilogue = Callable[[Kernel, Register, Register, Register, Span], Register]
"""`epilogue(b, sums, row, column, span)`: what to store in C[row, column …] instead of the sums of one vector."""

WIDE = WidePanels()
"""Panels of float32."""

_FEW_AHEAD = 16
"""Rows of a panel that tiles of few rows of A fetch ahead: they go through panels at the speed of memory."""

_SIDE_BY_SIDE = {1: 4, 2: 2, 3: 2, 5: 1}
"""How many panels so few rows of A are multiplied with at a time: memory is read faster in several places than in one, and as few
sums as those of one panel wait for one another. Three rows and five are one tile: smaller ones would read a panel twice."""

_FEWEST_REPEATED = 3
"""From so many rows of A on, but fewer than the tallest tile has, that tile repeats the last one: the more multiply-adds there are
beside each load, the steadier memory is read, and a panel is read once."""

_LINE = 16
"""Elements of a cache line: a tile fetches one at each step, but where there are so few tiles that the first fetches the panel."""

_SHORT_ROW = 48
"""Elements of a row of A that are read at the speed of memory without asking for the next rows."""

_FAR_ELEMENTS = 1 << 17
"""Of B that are worth it: fewer stay in the second-level cache, and to ask for them takes as long as to read them."""

_FEW_ROWS = 4
"""Rows that panels are decoded for in registers: what is decoded to the stack costs more there than to decode it twice."""

A, B, C = range(3)
"""The first buffers of the kernel; those after them belong to the epilogue."""


def gemm_symbol(target: Target, name: str = "") -> str:
    """Return the symbol of the kernel: gemm_f32_6x64_avx512, with the name of its epilogue if it has one."""
    return "_".join(part for part in ("gemm", name, "f32", tiling(target).name, target.isa) if part)


def write_gemm(
    module: Module,
    symbol: str,
    epilogue: Epilogue | None = None,
    panels: Panels = WIDE,
    *,
    columns: int | None = None,
    is_grouped: bool = False,
) -> None:
    """Write the kernel `symbol`: buffers A, packed B, C and those of the epilogue; parameters as in GemmParams.

    Panels are as wide as `tiling` says for so many `columns`. Where rows are grouped, A and C are one matrix for all of the batch:
    the rows of matrix i of B are those from offset i to offset i + 1, which are int64 in the buffer after C; M is the most that
    one of them may have.

    C holds sums that are not finished: it may not be memory that the epilogue reads. Where `panels` are decoded, `block_k` is one
    chain at most.
    """
    shape = tiling(module.target, panels.computed, columns)
    tiles = {
        (vectors, height): _write_tile(module, f"{symbol}_{height}x{vectors}", shape, (vectors, height), epilogue, panels)
        for vectors, heights in shape.tiles
        for height in heights
    }
    widest = shape.tiles[0][0]
    few = {
        (vectors, height): _write_tile(
            module, f"{symbol}_few{height}x{vectors}", shape, (vectors, height), epilogue, panels, few=True
        )
        for vectors, heights in shape.tiles
        for height in heights
        if panels.is_decoded and height <= (_FEW_ROWS if vectors == widest else 1)
    }
    beside = {
        height: _write_tile(module, f"{symbol}_{height}x{widest}x{number}", shape, (widest, height), epilogue, panels, number)
        for height, number in _side_by_side(module.target, panels, columns).items()
    }
    repeating = None
    if _repeats(module.target, panels, columns) and not is_grouped:
        tallest = (widest, shape.tiles[0][1][0])
        repeating = _write_tile(module, f"{symbol}_repeating", shape, tallest, epilogue, panels, repeats=True)
    with module.kernel(symbol) as b:
        p = read_gemm_params(b)
        right = _RightSide(panels, b.stack(F32, LONGEST_CHAIN * shape.panel, align=64) if panels.is_decoded else None)
        pieces, height = p["pieces_m"] * p["pieces_n"], shape.tiles[0][1][0]
        with b.loop(b.begin, b.end) as task:
            part, number = _part(b, task)
            batch, block = number // pieces, number % pieces
            top, bottom = piece(b, block // p["pieces_n"], p["pieces_m"], p["M"], height)
            across = piece(b, block % p["pieces_n"], p["pieces_n"], p["N"], shape.panel)
            first, last = _group(b, batch) if is_grouped else (top.like(0), p["M"])
            rows = (first + top, b.min(first + bottom, last))

            def write_block(batch: Register = batch, rows: Range = rows, across: Range = across, part: Range = part) -> None:
                with b.loop(*part, p["block_k"]) as k:
                    rest = across
                    for height, tile in beside.items():
                        rest = _write_panels_beside(b, shape, tile, height, panels, batch, rows, rest, k)
                    if repeating is None:
                        _write_block(b, shape, tiles, right, batch, rows, rest, k)
                    else:
                        whole = _write_repeating(b, shape, repeating, panels, batch, rows, rest, k)
                        _write_block(b, shape, tiles, right, batch, rows, whole, k)

            with b.when((rows[0] < rows[1]) & (p["part_k"].eq(0) | (number < p["part_blocks"]))):
                if few:
                    write_few = functools.partial(_write_few_rows, b, shape, few, panels, batch, rows, across)
                    b.branch(rows[1] - rows[0] <= _FEW_ROWS, write_few, write_block)
                else:
                    write_block()


def _part(b: Kernel, task: Register) -> tuple[Range, Register]:
    """Return the rows of B that a task goes through, at least one, and its number among the tasks of the same rows."""
    p = read_gemm_params(b)
    is_cut, length = p["part_k"] > 0, b.max(p["K"], 1)
    first = b.select(is_cut, task // PART_TASKS * p["part_k"], task.like(0))
    return (first, b.select(is_cut, b.min(first + p["part_k"], length), length)), b.select(is_cut, task % PART_TASKS, task)


def _side_by_side(target: Target, panels: Panels, columns: int | None) -> Mapping[int, int]:
    """Return how many panels go side by side for so many rows of A: none where one is wide, decoded or all there is."""
    is_alone = has_many_registers(target) or panels.is_decoded or panels.is_paired or columns is not None
    return {} if is_alone else _SIDE_BY_SIDE


def _repeats(target: Target, panels: Panels, columns: int | None) -> bool:
    """Return whether the tallest tile takes fewer rows of A, too."""
    return has_many_registers(target) and not panels.is_decoded and not panels.is_paired and columns is None


def _group(b: Kernel, matrix: Register) -> Range:
    """Return which rows of A are multiplied with a matrix of B."""
    offsets = b.buffer(C + 1, I64)
    return offsets.load(matrix), offsets.load(matrix + 1)


@dataclass(frozen=True, slots=True)
class _RightSide:
    """Packed B."""

    panels: Panels
    """How it is stored."""
    room: Pointer | None
    """Where blocks of it are decoded."""


def _write_block(
    b: Kernel,
    shape: Tiling,
    tiles: Mapping[tuple[int, int], Kernel],
    right: _RightSide,
    batch: Register,
    rows: Range,
    columns: Range,
    k: Register,
) -> None:
    """Write one block of C and of K: panel by panel, the rows within."""
    p = read_gemm_params(b)
    panels, room = right.panels, right.room
    first_a = b.buffer(A, panels.computed).at(batch * p["stride_a"] + k)
    first_b = b.buffer(B, panels.element).at(batch * p["stride_b"])
    first_c = b.buffer(C, panels.computed).at(batch * p["stride_c"])
    for vectors, heights, (left, right_end) in cover_columns(b, shape, columns, panels_end_early=not b.target.has_masks):
        with b.loop(left, right_end, vectors * shape.lanes) as n:
            index, steps = n // shape.panel, _least(b, p["block_k"], p["K"] - k)
            stored = panels.place(first_b, index, k, p["K"], shape.panel)
            panel = panels.block(b, stored, k, shape.panel, steps, room).at(n % shape.panel)
            following = panels.place(first_b, index + 1, k, p["K"], shape.panel).of(panels.computed)
            for height, (top, bottom) in cover_rows(heights, rows):
                is_largest = (vectors, height) == (shape.tiles[0][0], shape.tiles[0][1][0])
                is_far, width = p["K"] * p["N"] > _FAR_ELEMENTS, panels.row_bytes(shape.panel) // panels.computed.size_bytes
                if is_largest:
                    share = _share(b, width, height, bottom - top)
                    is_whole = is_far & (share > _LINE)
                else:
                    stride = b.select((p["M"] < shape.tiles[0][1][0]) & is_far, shape.panel, p["M"].like(0))
                with b.loop(top, bottom, height) as m:
                    a, c = first_a.at(m * p["lda"]), first_c.at(m * p["ldc"] + n)
                    if is_largest:
                        stride = b.select(is_whole, b.select(m.eq(top), share.like(width), 0), share)
                        ahead = following.at((m - top) // height * share * p["block_k"])
                    else:
                        ahead = panel.at(stride * _FEW_AHEAD)
                    b.call_part(tiles[vectors, height], a, panel, c, ahead, m, n, k, stride)


def _write_panels_beside(
    b: Kernel,
    shape: Tiling,
    tile: Kernel,
    height: int,
    panels: Panels,
    batch: Register,
    rows: Range,
    columns: Range,
    k: Register,
) -> Range:
    """Write the columns of whole groups of panels, where there are `height` rows, and return the other columns."""
    p, width = read_gemm_params(b), _SIDE_BY_SIDE[height] * shape.panel
    left, right = columns
    last = b.select((rows[1] - rows[0]).eq(height), left + (right - left) // width * width, left)
    a = b.buffer(A, panels.computed).at(batch * p["stride_a"] + rows[0] * p["lda"] + k)
    c = b.buffer(C, panels.computed).at(batch * p["stride_c"] + rows[0] * p["ldc"])
    first_b = b.buffer(B, panels.element).at(batch * p["stride_b"])
    stride = b.select(p["K"] * p["N"] > _FAR_ELEMENTS, shape.panel, rows[0].like(0))
    with b.loop(left, last, width) as n:
        panel = panels.place(first_b, n // shape.panel, k, p["K"], shape.panel)
        b.call_part(tile, a, panel, c.at(n), panel.at(stride * _FEW_AHEAD), rows[0], n, k, stride)
    return last, right


def _write_repeating(
    b: Kernel, shape: Tiling, tile: Kernel, panels: Panels, batch: Register, rows: Range, columns: Range, k: Register
) -> Range:
    """Write the columns of whole panels, where A has fewer rows than the tallest tile; returns the other columns."""
    p, (left, right) = read_gemm_params(b), columns
    suits = (rows[1] - rows[0]).eq(p["M"]) & (p["M"] >= _FEWEST_REPEATED) & (p["M"] < shape.tiles[0][1][0])
    last = b.select(suits, left + (right - left) // shape.panel * shape.panel, left)
    a = b.buffer(A, panels.computed).at(batch * p["stride_a"] + k)
    c = b.buffer(C, panels.computed).at(batch * p["stride_c"])
    first_b = b.buffer(B, panels.element).at(batch * p["stride_b"])
    with b.loop(left, last, shape.panel) as n:
        panel, following = (panels.place(first_b, n // shape.panel + i, k, p["K"], shape.panel) for i in range(2))
        b.call_part(tile, a, panel, c.at(n), following, rows[0], n, k, rows[0].like(shape.panel))
    return last, right


def _write_few_rows(
    b: Kernel,
    shape: Tiling,
    tiles: Mapping[tuple[int, int], Kernel],
    panels: Panels,
    batch: Register,
    rows: Range,
    columns: Range,
) -> None:
    """Write few rows of C and all of K, decoding panels in registers."""
    p = read_gemm_params(b)
    a, c = b.buffer(A, F32).at(batch * p["stride_a"]), b.buffer(C, F32).at(batch * p["stride_c"])
    first, zero = b.buffer(B, panels.element).at(batch * p["stride_b"]), b.const(I64, 0)
    for vectors, _, (left, right) in cover_columns(b, shape, columns, panels_end_early=not b.target.has_masks):
        heights = [height for width, height in tiles if width == vectors]
        with b.loop(left, right, vectors * shape.lanes) as n:
            panel = panels.place(first, n // shape.panel, zero, p["K"], shape.panel).of(F32)
            for height, (top, bottom) in cover_rows(heights, rows):
                with b.loop(top, bottom, height) as m:
                    places = a.at(m * p["lda"]), panel, c.at(m * p["ldc"] + n), panel
                    b.call_part(tiles[vectors, height], *places, m, n, zero, zero)


def _share(b: Function, width: int, height: int, rows: Register) -> Register:
    """Return how many elements of the next panel a tile fetches at each step of K, so that all tiles together fetch it."""
    tiles = b.max((rows + (height - 1)) // height, 1)
    return (tiles + (width - 1)) // tiles


def _write_tile(
    module: Module,
    symbol: str,
    shape: Tiling,
    size: tuple[int, int],
    epilogue: Epilogue | None,
    panels: Panels,
    beside: int = 1,
    *,
    few: bool = False,
    repeats: bool = False,
) -> Kernel:
    """Write one tile of C and one block of K, of so many panels: chain after chain, each added to what C holds so far.

    Where rows are `few`, it is all of K, of a panel that is decoded in registers. Where it `repeats`, there are M rows, from the
    first on, and the last one fills up the tile: it is computed and stored again.
    """
    vectors, height = size
    largest, kind = size == (shape.tiles[0][0], shape.tiles[0][1][0]), panels.computed
    with module.part(symbol, *[Address(kind)] * 4, I64, I64, I64, I64) as b:
        a, panel, c, ahead = b.addresses
        m, n, k, stride = b.arguments
        p = read_gemm_params(b)
        numbers: Sequence[Operand] = [b.min(p["M"] - 1, i) for i in range(height)] if repeats else range(height)
        places = [(i, j * shape.lanes) for i in numbers for j in range(vectors * beside)]
        starts = [c.at(p["ldc"] * i + j) for i, j in places]
        sums = [b.variable(b.const(kind.vector(shape.lanes), 0.0)) for _ in places]
        depth = p["K"] if few else _least(b, p["block_k"], p["K"] - k)
        rows = [a.at(p["lda"] * i) for i in numbers]
        apart = [p["K"] * (number * shape.panel) for number in range(1, beside)]
        is_panel = vectors * shape.lanes == shape.panel and vectors > 1
        ends = TileEnds(b, shape.lanes, vectors, p["N"] - n if beside == 1 else None, is_panel=is_panel)

        def add_what_is_there(spans: list[Span]) -> None:
            for total, start, span in zip(sums, starts, spans * (height * beside), strict=True):
                total.set(start.load(0, span) + total.value)

        def put_down(spans: list[Span]) -> None:
            ends.store(((start, total.value) for start, total in zip(starts, sums, strict=True)), spans)

        def finish(epilogue: Epilogue, spans: list[Span]) -> None:
            cells = zip(sums, places, starts, spans * (height * beside), strict=True)
            ends.store(((start, epilogue(b, total.value, m + i, n + j, span)) for total, (i, j), start, span in cells), spans)

        def put_down_and_finish(epilogue: Epilogue, spans: list[Span]) -> None:
            def row(number: Register) -> list[Cell]:
                i, first = (number // beside, number % beside * shape.panel) if beside > 1 else (number, 0)
                columns = [(first + j * shape.lanes, span) for j, span in enumerate(spans)]
                return [cell(c.at(i * p["ldc"] + j), m + i, n + j, span) for j, span in columns]

            def cell(place: Pointer, i: Register, j: Register, span: Span) -> Cell:
                return lambda: epilogue(b, place.load(0, span), i, j, span), lambda value: ends.store([(place, value)], [span])

            put_down(spans)
            finish_in_a_loop(b, p["M"] if repeats else height * beside, vectors, row)

        with b.loop(0, b.max(depth, 1), p["chain"]) as done:
            for total in sums:
                total.set(b.const(total.type, 0.0))
            length = _least(b, depth - done, p["chain"])
            others = tuple(ahead.at(done * stride + step) for step in apart)
            near = Ahead(ahead.at(done * stride), stride, 1 if beside > 1 else vectors, others)
            add = functools.partial(
                multiply,
                b,
                [row.at(done) for row in rows],
                panel.at(done * shape.panel),
                shape.panel,
                length,
                sums,
                pairs=panels.is_paired,
                beside=[panel.at(done * shape.panel + step) for step in apart],
                rows_ahead=None if beside > 1 or few else _next_rows(b, a, done, height),
            )
            if few:
                columns = PanelColumns(panel.of(panels.element), done, n % shape.panel, shape.panel)
                panels.multiply(b, [row.at(done) for row in rows], columns, length, sums)
            elif largest:
                part = replace(near, lines=1)
                b.branch(stride > _LINE, functools.partial(add, near), functools.partial(add, part))
            elif height in shape.tiles[0][1]:
                b.branch(stride > 0, functools.partial(add, near), add)
            else:
                add(near)  # multiply-adds leave time for it also where it finds nothing to fetch
            with b.when((k + done) > 0):
                ends.each_way(add_what_is_there)
            if epilogue is None:
                ends.each_way(put_down)
            else:
                way = put_down_and_finish if waits_in_memory(module.target, epilogue, kind) else finish
                b.branch(
                    (k + done + length).eq(p["K"]),
                    lambda: ends.each_way(functools.partial(way, epilogue)),
                    lambda: ends.each_way(put_down),
                )
    return b


def _next_rows(b: Kernel, first: Pointer, done: Register, height: int) -> Ahead:
    """Return the rows of A behind a tile's, where these have `done` steps behind them: as many elements of them at each step.

    They are fetched where they follow one another without gaps and have several cache lines each: a processor sees by itself that
    it reads on where rows are short, and otherwise loses what it foresees between as many rows.
    """
    p = read_gemm_params(b)
    follow = p["lda"].eq(p["K"]) & (p["K"] > _SHORT_ROW) & (p["K"] <= p["block_k"])
    step = b.select(follow, done.like(height), 0)
    return Ahead(first.at((p["lda"] + done) * step), step)


def _least(b: Function, left: Register, right: Register) -> Register:
    return b.select(left < right, left, right)
