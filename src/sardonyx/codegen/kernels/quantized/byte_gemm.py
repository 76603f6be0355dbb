"""C[M, N] = f(A[M, K] @ B[K, N]) of 8-bit integers: sums in int32, at the speed of the dot products, and f in the store.

    write_prepare_rows      A -> rows whose bytes are of the sign that the instruction takes, each with the sum of its numbers
    write_byte_gemm         A or such rows, panels of B (`byte_panels`) -> C

Where the processor multiplies pairs of 16 bits (`pairs`), rows are widened to these.

A is read in place where its bytes are of that sign, rows are whole groups of four, and no sums of rows are needed. Tiles are as in
the fp32 product (`gemm`): a few rows of A times one panel, sums in registers; they are put down in a small block on the stack, from
which a loop over rows takes them, corrects them by the zero points, computes what is stored and stores it:

    sum - za x sum of B - zb x (sum of A - K za)

Blocks of K stay in the second-level cache; sums of long K are added up on the stack. Integers wrap, so that all orders give equal
bits.

Where the processor has matrix tiles, matrices of 16 rows and more are multiplied in these (`tile_products`); A is then read in
place whatever its sign, if its rows are whole tiles. Fewer rows are multiplied in vectors, which read B in the order of memory.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

from sardonyx.codegen.emit.dots import has_pairs, native_left
from sardonyx.codegen.emit.expr import ElementExpr
from sardonyx.codegen.emit.expr_llvm import write_expressions, write_invariants
from sardonyx.codegen.emit.matrix_tiles import TILE, configured_tiles, has_byte_tiles, tile_dot
from sardonyx.codegen.emit.module import Address, Kernel, Module
from sardonyx.codegen.emit.saturate import can_pack, pack_saturated
from sardonyx.codegen.emit.types import I8, I32, I64, U8, U32, Type
from sardonyx.codegen.emit.values import Pointer, Register, Span
from sardonyx.codegen.kernels.byte_panels import (
    HALF_RANGE,
    bytes_tiling,
    left_shift,
    multiply_bytes,
    write_groups,
)
from sardonyx.codegen.kernels.quantized.prepared_rows import HEAD_BYTES, group_bytes
from sardonyx.codegen.kernels.tile_products import (
    TILE_HEIGHT,
    TILE_ROWS,
    TileOperands,
    TileSums,
    sums_elements,
    write_tile_sums,
)
from sardonyx.codegen.kernels.tiles import Ahead, Range, Tiling, cover_columns, cover_rows, tile_spans
from sardonyx.codegen.target import Target
from sardonyx.lazy_dataclasses import dataclass

__all__ = [
    "COLUMN",
    "ROW",
    "SCALAR",
    "WHOLE",
    "ByteGemmParams",
    "ByteStore",
    "Zero",
    "write_byte_gemm",
]

SCALAR, COLUMN, ROW, WHOLE = "s", "c", "r", "w"
"""How an operand is read: one element for all of C, for each column, for each row, or for each element."""

_ROWS = 240
"""Rows that share a block of a panel, whose sums fit the stack: a multiple of the heights of tiles."""

_BLOCK_GROUPS, _BLOCK_WIDENED = 1024, 256
"""Groups of rows of a panel that stay in the second-level cache; in the first one, beside rows of A that are widened."""

_FEW_AHEAD = 16
"""Groups of a panel that tiles of few rows of A fetch ahead."""

_TASKS_PER_THREAD = 4
_TASK_PRODUCTS = 1 << 30
"""Multiplications of one task at most, some milliseconds: a run can only be ended between tasks."""

A, B, C = range(3)
"""The first buffers; then come the zero points of A and of B, as far as there are any, and the operands of the store."""


@dataclass(frozen=True, slots=True)
class Zero:
    """Zero points of one side."""

    kind: Type
    """U8 or I8, as the numbers of the side."""
    way: str
    """SCALAR, ROW (of A) or COLUMN (of B)."""


@dataclass(frozen=True, slots=True)
class ByteStore:
    """What a product stores, and what it reads for that."""

    left: Type
    """U8 or I8: the numbers of A, before they were prepared."""
    right: Type
    """U8 or I8: the numbers of B, before they were packed."""
    is_prepared: bool
    """Whether A is prepared rows; it must be where the target has pairs of 16 bits only (`emit.dots.has_pairs`)."""
    left_zero: Zero | None
    """Zero points of A; None where it has none, or 0."""
    right_zero: Zero | None
    """Zero points of B; None where it has none. A is then prepared."""
    expr: ElementExpr
    """What is stored, of argument 0, the corrected sum in int32, and the elements of operands."""
    kinds: tuple[Type, ...]
    """The types of the operands' elements."""
    ways: str
    """For each operand how it is read."""

    @property
    def needs_row_sums(self) -> bool:
        """Whether B' has zero points, by which the sums of the rows of A are multiplied."""
        return self.right_zero is not None or self.right == U8

    def multiplied(self, target: Target) -> Type:
        """Return the sign in which A is multiplied: its own in pairs of 16 bits, and in tiles, unless prepared for vectors."""
        keeps = has_pairs(target) or (has_byte_tiles(target) and not self.is_prepared)
        return self.left if keeps else native_left(target)

    def shift(self, target: Target) -> int:
        """Return what was added to the numbers of A that are multiplied."""
        return 0 if self.multiplied(target) == self.left else left_shift(target, self.left)

    @property
    def zeros(self) -> tuple[Zero, ...]:
        """The zero points that have a buffer."""
        return tuple(zero for zero in (self.left_zero, self.right_zero) if zero is not None)


def _block_groups(target: Target) -> int:
    return _BLOCK_WIDENED if has_pairs(target) else _BLOCK_GROUPS


@dataclass(frozen=True, slots=True)
class ByteGemmParams:
    """The integer parameters of the kernel, in their order. Rows of C lie one after the other."""

    M: int
    """Rows of A and C, of one matrix of a batch."""
    N: int
    """Columns of B and C."""
    K: int
    """Columns of A, rows of B."""
    row_bytes: int
    """From one row of A to the next."""
    block_m: int
    """Rows of C in one task."""
    block_n: int
    """Columns of C in one task: a multiple of the panel's width."""
    stride_a: int
    """Bytes from one matrix A of a batch to the next; 0 takes the same one."""

    @staticmethod
    def blocked(target: Target, M: int, N: int, K: int, *, row_bytes: int, stride_a: int = 0, threads: int = 1) -> ByteGemmParams:
        """Return the parameters of a product, with blocks that suit the caches and `threads`."""
        shape = bytes_tiling(target)
        height, most = (TILE_HEIGHT, TILE_ROWS) if has_byte_tiles(target) else (shape.tiles[0][1][0], _ROWS)
        pieces_m = -(-M // most) or 1
        block_m = min(_round_up(-(-max(M, 1) // pieces_m), height), most)
        pieces_m = -(-max(M, 1) // block_m)
        wanted = -(-_TASKS_PER_THREAD * threads // pieces_m) if threads > 1 else 1
        wanted = max(wanted, block_m * K * N // _TASK_PRODUCTS, 1)
        block_n = _round_up(-(-max(N, 1) // wanted), shape.panel)
        return ByteGemmParams(M, N, K, row_bytes, block_m, block_n, stride_a)

    def words(self) -> list[int]:
        """Return the parameters as the kernel reads them."""
        return [getattr(self, name) for name in _PARAMS]

    def tasks(self, batch: int = 1) -> int:
        """Return how many tasks a batch of `batch` products is."""
        return batch * -(-self.M // self.block_m) * -(-self.N // self.block_n)


_PARAMS = tuple(ByteGemmParams.__dataclass_fields__)


def _round_up(number: int, unit: int) -> int:
    return max(-(-number // unit), 1) * unit


def write_byte_gemm(module: Module, symbol: str, store: ByteStore) -> None:
    """Write the kernel `symbol`: buffers A, panels of B, C, zero points and operands of the store; parameters as ByteGemmParams.

    C may not be memory that the kernel reads, but for an operand that is read by WHOLE, in place.

    Raises:
        ValueError: A is not prepared, and the target multiplies pairs of 16 bits.
    """
    if has_pairs(module.target) and not store.is_prepared:
        raise ValueError(f"{symbol}: A is read in place on {module.target.isa}, which multiplies widened rows: prepare them")
    shape, kind = bytes_tiling(module.target), store.multiplied(module.target)
    flips = not store.is_prepared and kind != store.left
    tiles = {
        (vectors, height): _write_tile(module, f"{symbol}_{height}x{vectors}", shape, vectors, height, kind, flips=flips)
        for vectors, heights in shape.tiles
        for height in heights
    }
    finish = {vectors: _write_finish(module, f"{symbol}_store{vectors}", shape, vectors, store) for vectors, _ in shape.tiles}
    parts = _Parts(shape, tiles, finish)
    if not has_byte_tiles(module.target):
        with module.kernel(symbol) as b:
            _write_tasks(b, functools.partial(_write_block, b, parts, store, b.stack(I32, _ROWS * shape.panel, align=64)))
        return
    tile_sums = write_tile_sums(module, symbol, shape, tile_dot(kind, I8))
    with module.kernel(symbol) as b:
        sums = b.stack(I32, sums_elements(shape.panel), align=64)

        def by_tiles() -> None:
            with configured_tiles(module, b):
                _write_tasks(b, functools.partial(_write_tile_block, b, parts, tile_sums, store, sums))

        by_vectors = functools.partial(_write_tasks, b, functools.partial(_write_block, b, parts, store, sums))
        b.branch(_params(b)["M"] >= TILE, by_tiles, by_vectors)


def _write_tasks(b: Kernel, write_block: Callable[[Register, Range, Range], None]) -> None:
    """Write the loop over tasks: `write_block(batch, rows, columns)`."""
    p = _params(b)
    blocks_m, blocks_n = _blocks(p["M"], p["block_m"]), _blocks(p["N"], p["block_n"])
    with b.loop(b.begin, b.end) as task:
        batch, block = task // (blocks_m * blocks_n), task % (blocks_m * blocks_n)
        m = block // blocks_n * p["block_m"]
        n = block % blocks_n * p["block_n"]
        write_block(batch, (m, b.min(m + p["block_m"], p["M"])), (n, b.min(n + p["block_n"], p["N"])))


@dataclass(frozen=True, slots=True)
class _Parts:
    """The functions of a product."""

    shape: Tiling
    """How C is covered."""
    tiles: Mapping[tuple[int, int], Kernel]
    """(vectors, rows) -> what adds a block of K to the sums of a tile."""
    finish: Mapping[int, Kernel]
    """Vectors -> what stores sums."""


def _write_block(b: Kernel, parts: _Parts, store: ByteStore, sums: Pointer, batch: Register, rows: Range, columns: Range) -> None:
    """Write one block of C: panel by panel, block by block of K, the rows within."""
    p, shape, most = _params(b), parts.shape, _block_groups(b.target)
    groups, panel_length, matrix, panels = _sides(b, shape, batch)
    start = HEAD_BYTES if store.is_prepared else 0
    pitch = b.select(groups > most, b.const(I64, shape.panel), 0)
    for vectors, heights, (left, right) in cover_columns(b, shape, columns):
        with b.loop(left, right, vectors * shape.lanes) as n:
            head = panels.at(n // shape.panel * panel_length + n % shape.panel)
            with b.loop(0, b.max(groups, 1), most) as first:
                depth = b.min(groups - first, most)
                words, is_last = head.at((first + 1) * shape.panel), (first + most) >= groups
                for height, (top, bottom) in cover_rows(heights, rows):
                    is_largest = (vectors, height) == (shape.tiles[0][0], shape.tiles[0][1][0])
                    stride = _stride_ahead(b, shape, height, bottom - top, is_largest=is_largest)
                    following = head.at(panel_length + (first + 1) * shape.panel)
                    with b.loop(top, bottom, height) as m:
                        place = sums.at((m - rows[0]) * pitch)
                        row = matrix.at(m * p["row_bytes"])
                        ahead = following.at((m - top) // height * stride * depth) if is_largest else words.at(stride * _FEW_AHEAD)
                        addresses = (row.at(start).at(first * group_bytes(b.target)), words, place, ahead)
                        b.call_part(parts.tiles[vectors, height], *addresses, depth, first, stride)
                        with b.when(is_last):
                            b.call_part(parts.finish[vectors], place, head, row, batch * p["M"] + m, n, b.const(I64, height))


def _sides(b: Kernel, shape: Tiling, batch: Register) -> tuple[Register, Register, Pointer, Pointer]:
    """Return groups of rows of B, words of a panel, and where A and B of a batch begin."""
    p = _params(b)
    groups = write_groups(b, p["K"])
    length = (groups + 1) * shape.panel
    panels = b.buffer(B, I32).at(batch * (_blocks(p["N"], b.const(I64, shape.panel)) * length))
    return groups, length, b.buffer(A, U8).at(batch * p["stride_a"]), panels


def _write_tile_block(
    b: Kernel, parts: _Parts, tile_sums: TileSums, store: ByteStore, sums: Pointer, batch: Register, rows: Range, columns: Range
) -> None:
    """Write one block of C in matrix tiles."""
    p, shape = _params(b), parts.shape
    groups, length, matrix, panels = _sides(b, shape, batch)

    def head(n: Register) -> Pointer:
        return panels.at(n // shape.panel * length + n % shape.panel)

    def finish(place: Pointer, m: Register, n: Register, count: Register, vectors: int) -> None:
        row = matrix.at(m * p["row_bytes"])
        b.call_part(parts.finish[vectors], place, head(n), row, batch * p["M"] + m, n, count)

    left = matrix.at(HEAD_BYTES if store.is_prepared else 0)
    operands = TileOperands(left, p["row_bytes"], p["M"], lambda n: head(n).at(shape.panel), groups, sums, finish)
    tile_sums.write_block(b, operands, rows, columns)


def _stride_ahead(b: Kernel, shape: Tiling, height: int, rows: Register, *, is_largest: bool) -> Register:
    """Return how many words a tile fetches at each step.

    The largest ones together fetch the next panel. Those of few rows of A go through their own at the speed of memory.
    """
    if not is_largest:
        return b.select(b.param(_PARAMS.index("M")) < shape.tiles[0][1][0], b.const(I64, shape.panel), 0)
    tiles = b.max((rows + (height - 1)) // height, 1)
    return (tiles + (shape.panel - 1)) // tiles


def _write_tile(module: Module, symbol: str, shape: Tiling, vectors: int, height: int, kind: Type, *, flips: bool) -> Kernel:
    """Write one tile in registers: the sums of a block of K, added to those before it."""
    is_largest = (vectors, height) == (shape.tiles[0][0], shape.tiles[0][1][0])
    with module.part(symbol, Address(U8), Address(I32), Address(I32), Address(I32), I64, I64, I64) as b:
        a, words, place, near = b.addresses
        depth, first, stride = b.arguments
        row_bytes = b.param(_PARAMS.index("row_bytes"))
        zero = b.const(I32.vector(shape.lanes), 0)
        sums = [b.variable(zero) for _ in range(height * vectors)]
        rows, ahead = [a.at(row_bytes * i).of(U32) for i in range(height)], Ahead(near, stride, 1 if is_largest else vectors)
        multiply_bytes(b, rows, words, shape.panel, depth, sums, left=kind, flips=flips, ahead=ahead)
        places = [i * shape.panel + j * shape.lanes for i in range(height) for j in range(vectors)]
        with b.when(first > 0):
            for total, index in zip(sums, places, strict=True):
                total.add(place.load(index, shape.lanes))
        for total, index in zip(sums, places, strict=True):
            place.store(total.value, index, shape.lanes)
    return b


def _write_finish(module: Module, symbol: str, shape: Tiling, vectors: int, store: ByteStore) -> Kernel:
    """Write what takes rows of sums and stores C: corrected by zero points, and with the expression of the store."""
    with module.part(symbol, Address(I32, unique=False), Address(I32), Address(U8), I64, I64, I64) as b:
        sums, head, a = b.addresses
        m, n, height = b.arguments
        p = _params(b)
        spans = tile_spans(b, shape, vectors, p["N"] - n)
        places = [j * shape.lanes for j in range(vectors)]
        packs = vectors * shape.lanes == shape.panel and _packs(module.target, store.expr, vectors)
        expr = store.expr.operands[0] if packs else store.expr
        columns = [_Column(b, store, expr, head.load(j, shape.lanes), n + j, span) for j, span in zip(places, spans, strict=True)]
        with b.loop(0, height) as i:
            row_sum = a.at(i * p["row_bytes"]).of(I32).load(0) if store.needs_row_sums else None
            totals = [sums.load(i * shape.panel + j, shape.lanes) for j in places]
            values = [column.finish(m + i, total, row_sum) for column, total in zip(columns, totals, strict=True)]
            row = b.buffer(C, store.expr.type).at((m + i) * p["N"] + n)
            if packs:
                zero = write_expressions(b, [store.expr.operands[1]], [])[0]
                row.store(pack_saturated(b, values, zero, store.expr.type), 0, vectors * shape.lanes)
            else:
                for j, column, value in zip(places, columns, values, strict=True):
                    row.store(value, j, column.span)
    return b


def _packs(target: Target, expr: ElementExpr, vectors: int) -> bool:
    """Return whether vectors of what is stored are narrowed together: numbers of 8 bits with one zero point."""
    if expr.primitive != "round_saturated" or expr.type.bits != _BYTE or not can_pack(target, vectors, target.lanes(32)):
        return False
    return expr.operands[1].primitive in ("constant", "parameter")


_BYTE = 8


class _Column:
    """One vector of columns of C: what is the same in all rows is computed once."""

    def __init__(self, b: Kernel, store: ByteStore, expr: ElementExpr, sums: Register, n: Register, span: Span) -> None:
        """Load and compute what does not depend on the row; `sums` are those of the columns of B, `expr` is what is computed."""
        self._expr = expr
        self.b, self.store, self.sums, self.n, self.span = b, store, sums, n, span
        zeros = iter(range(C + 1, C + 1 + len(store.zeros)))
        self._left = None if store.left_zero is None else next(zeros)
        self._right = self._right_zeros(None if store.right_zero is None else next(zeros))
        self._first = C + 1 + len(store.zeros)
        fixed = [self._operand(index, n) if way in (SCALAR, COLUMN) else None for index, way in enumerate(store.ways)]
        self._fixed = fixed
        self._known = write_invariants(b, [expr], [None, *fixed], span.lanes)
        self._shift = None if self._goes_by_row else self._corrected(self._left_zero(None))

    @property
    def _goes_by_row(self) -> bool:
        return self.store.left_zero is not None and self.store.left_zero.way == ROW

    def _left_zero(self, row: Register | None) -> Register | None:
        """Return the zero points of A', for a row or for all; None for 0."""
        shift = self.store.shift(self.b.target)
        if self._left is None or self.store.left_zero is None:
            return self.b.const(I32, shift) if shift else None
        return self.b.buffer(self._left, self.store.left_zero.kind).load(0 if row is None else row).to(I32) + shift

    def _right_zeros(self, buffer: int | None) -> Register | None:
        """Return the zero points of B', one for each column; None for 0."""
        shift, zero = (-HALF_RANGE if self.store.right == U8 else 0), self.store.right_zero
        if buffer is None or zero is None:
            return self.b.const(I32, shift).splat(self.span.lanes) if shift else None
        points = self.b.buffer(buffer, zero.kind)
        found = points.load(self.n, self.span) if zero.way == COLUMN else points.load(0).splat(self.span.lanes)
        return found.to(I32) + shift

    def _corrected(self, zero: Register | None) -> Register | None:
        """Return what is taken from the sums besides the part of the rows: za x sum of B - zb x K za."""
        if zero is None:
            return None
        taken = self.sums * zero
        if self._right is None:
            return taken
        return taken - self._right * (zero * self.b.param(_PARAMS.index("K")).to(I32))

    def _operand(self, index: int, place: Register) -> Register:
        kind, way = self.store.kinds[index], self.store.ways[index]
        buffer = self.b.buffer(self._first + index, kind)
        if way in (SCALAR, ROW):
            return buffer.load(0 if way == SCALAR else place).splat(self.span.lanes)
        return buffer.load(place, self.span)

    def finish(self, row: Register, total: Register, row_sum: Register | None) -> Register:
        """Return what is stored in a row instead of the sums `total`."""
        b, N = self.b, self.b.param(_PARAMS.index("N"))
        shift = self._corrected(self._left_zero(row)) if self._goes_by_row else self._shift
        total = total if shift is None else total - shift
        if self._right is not None and row_sum is not None:
            total = total - self._right * row_sum
        operands = [
            fixed if fixed is not None else self._operand(index, row if way == ROW else row * N + self.n)
            for index, (fixed, way) in enumerate(zip(self._fixed, self.store.ways, strict=True))
        ]
        return write_expressions(b, [self._expr], [total, *operands], self._known)[0]


def _params(b: Kernel) -> dict[str, Register]:
    return {name: b.param(place) for place, name in enumerate(_PARAMS)}


def _blocks(length: Register, block: Register) -> Register:
    return (length + block - 1) // block
