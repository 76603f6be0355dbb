"""C[M, N] = A[M, K] @ B[K, N] with B of few bits, A rounded to 8 bits by blocks of K, and exact sums of integers within a block.

    write_quantize_blocks   A -> Q [M][blocks]: the scale of a block, the sum of its numbers, and these in int8
    write_dot_blocks        Q, packed B -> C = sum over blocks of scale of A x scale of B x (dot product - zero point x sum)

A block of A is scaled by its largest magnitude / 127, each number rounded to nearest, ties to even; a block with an infinity or NaN
makes its row NaN. Rows are independent of one another: equal bits in a batch or alone, for any number of threads.

A tile reads the scales of a block of B before its numbers, as they lie: memory that is read strictly forwards comes at full speed.
It asks for its part of C first, which is rarely near when it is stored. Where all zero points are half the range, their part is
what the dot product of a block begins with.

Where no instruction takes four bytes, dot products of numbers of few bits are added up in int16, as many as that holds.

Numbers of B lie as `panels` says, which is how dot products of four bytes read them.
"""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.codegen.emit.builder import Function, Variable
from sardonyx.codegen.emit.dots import add_short_pairs, dot4, dot_pairs, has_short_pairs
from sardonyx.codegen.emit.module import Address, Kernel, Module
from sardonyx.codegen.emit.types import F32, I8, I16, I32, I64, U8, U32
from sardonyx.codegen.emit.values import Pointer, Register, Span
from sardonyx.codegen.kernels.gemm import Epilogue, tiling
from sardonyx.codegen.kernels.panels import BlockLayout
from sardonyx.codegen.target import Target
from sardonyx.lazy_dataclasses import dataclass

__all__ = ["ROW_LENGTH", "DotParams", "QuantizeParams", "block_spans", "q_bytes", "write_dot_blocks", "write_quantize_blocks"]

Q, B, C, FIRST_OPERAND = range(4)
"""The buffers of the product; those of its epilogue follow."""

PARAMS_COUNT = 4
"""Where the parameters of its epilogue begin."""

ROW_LENGTH = 1
"""The parameter that is the length of a row of C."""

_ROWS = 48
"""Rows that a task multiplies by a panel at most."""

_LARGEST = 127.0
_HEAD_BYTES = 2 * F32.size_bytes
"""Of the scale and the sum, before the numbers of a block of Q."""


@dataclass(frozen=True, slots=True)
class QuantizeParams:
    """The integer parameters of the kernel that rounds A."""

    K: int
    """Columns of A."""
    blocks: int
    """Blocks that they are cut into."""

    def words(self) -> list[int]:
        """Return the parameters as the kernel reads them; a task is a row."""
        return [self.K, self.blocks]


@dataclass(frozen=True, slots=True)
class DotParams:
    """The integer parameters of the product."""

    M: int
    """Rows of C."""
    N: int
    """Columns of C."""
    blocks: int
    """Blocks of K."""

    @property
    def rows(self) -> int:
        """Rows of a task."""
        return min(max(self.M, 1), _ROWS)

    def words(self) -> list[int]:
        """Return the parameters as the kernel reads them; those of an epilogue follow."""
        return [self.M, self.N, self.blocks, self.rows]

    def tasks(self, width: int) -> int:
        """Return how many tasks there are: rows times panels of `width` columns."""
        return -(-self.M // self.rows) * -(-self.N // width)


def q_bytes(block_size: int) -> int:
    """Return how many bytes a block of Q takes."""
    return _HEAD_BYTES + block_size


def write_quantize_blocks(module: Module, symbol: str, block_size: int) -> None:
    """Write the kernel `symbol`: buffers A (float32) and Q (bytes, `q_bytes` for each block); parameters as in QuantizeParams."""
    with module.kernel(symbol) as b:
        K, blocks = b.param(0), b.param(1)
        lanes = min(b.lanes(F32), block_size)
        with b.loop(b.begin, b.end) as row, b.loop(0, blocks) as block:
            a = b.buffer(0, F32).at(row * K + block * block_size)
            q = b.buffer(1, I8).at((row * blocks + block) * q_bytes(block_size))
            _quantize_block(b, a, q, block_spans(b, K - block * block_size, block_size, lanes), lanes)


def block_spans(b: Kernel, remaining: Register, block_size: int, lanes: int) -> list[Span]:
    """Return how the vectors of a block touch A, whose last block may be cut short."""
    return [Span(lanes, b.tail_mask(b.max(b.min(remaining - j, lanes), 0), lanes)) for j in range(0, block_size, lanes)]


def _quantize_block(b: Kernel, a: Pointer, q: Pointer, spans: Sequence[Span], lanes: int) -> None:
    zero = b.const(F32.vector(lanes), 0.0)
    greatest, odd = zero, zero
    for place, span in enumerate(spans):
        x = a.load(place * lanes, span)
        greatest, odd = b.max(b.abs(x), greatest), odd + x * 0.0
    largest = b.reduce(greatest, b.max)
    scale = largest / _LARGEST + b.sum_lanes(odd)
    inverse = b.select(largest > 0.0, 1.0 / scale, largest.like(0.0)).splat(lanes)
    total = b.const(I32.vector(lanes), 0)
    for place, span in enumerate(spans):
        scaled = a.load(place * lanes, span) * inverse
        fits = b.abs(scaled) < _LARGEST + 1
        number = b.round_even(b.select(fits, scaled, zero)).to(I32)
        q.store(number.to(I8), _HEAD_BYTES + place * lanes, lanes)
        total = total + number
    q.of(F32).store(scale, 0)
    q.of(I32).store(b.sum_lanes(total), 1)


def write_dot_blocks(module: Module, symbol: str, panels: BlockLayout, epilogue: Epilogue | None = None) -> None:
    """Write the kernel `symbol`: buffers Q, packed B, C and those of the epilogue; parameters as DotParams.

    The dot products of a block are exact; they are scaled and added in float32 in the order of K.
    """
    width = tiling(module.target).panel
    heights = _heights(module.target)
    tiles = {height: _write_tile(module, f"{symbol}_{height}", panels, height, epilogue) for height in heights}
    with module.kernel(symbol) as b:
        M, N, blocks, rows = (b.param(place) for place in range(PARAMS_COUNT))
        count = (N + (width - 1)) // width
        with b.loop(b.begin, b.end) as task:
            panel, first = task % count, task // count * rows
            end = b.min(first + rows, M)
            stored = b.buffer(B, U8).at(panel * blocks * panels.block_bytes(width))
            for height in heights:
                last = first + (end - first) // height * height
                with b.loop(first, last, height) as m:
                    q = b.buffer(Q, U8).at(m * blocks * q_bytes(panels.block_size))
                    b.call_part(tiles[height], q, stored, m, panel * width)
                first = last


def _heights(target: Target) -> tuple[int, ...]:
    """Return how many rows tiles have: sums of integers and of floats, both in registers."""
    return (3, 1) if target.registers >= 32 else (2, 1)


def _write_tile(module: Module, symbol: str, panels: BlockLayout, height: int, epilogue: Epilogue | None) -> Kernel:
    shape = tiling(module.target)
    lanes, width, fields = shape.lanes, shape.panel, panels.fields
    with module.part(symbol, Address(U8), Address(U8), I64, I64) as b:
        q, stored = b.addresses
        m, n = b.arguments
        N, blocks = b.param(1), b.param(2)
        vectors = range(0, width, lanes)
        totals = [b.variable(b.const(F32.vector(lanes), 0.0)) for _ in range(height) for _ in vectors]
        dots = [b.variable(b.const(I32.vector(lanes), 0)) for _ in totals]
        for i in range(height):
            for j in vectors:
                b.prefetch(b.buffer(C, F32).at((m + i) * N + n + j), write=True)
        with b.loop(0, blocks) as block:
            here = stored.at(block * panels.block_bytes(width))
            heads = [q.at((blocks * i + block) * q_bytes(panels.block_size)) for i in range(height)]
            rows = [head.at(_HEAD_BYTES).of(U32) for head in heads]
            factors = [here.of(F32).load(j, lanes) for j in vectors]
            for place, dot in enumerate(dots):
                dot.set(_first_sum(b, panels, heads[place // len(vectors)]).splat(lanes))
            numbers = here.at(panels.numbers_at(width)).of(U32)
            groups = panels.block_size // 4 // fields
            together = min(groups, _short_groups(panels.bits)) if has_short_pairs(b.target) else 0
            with b.loop(0, groups, together or 1) as group:
                parts = [
                    (numbers.at((group + i) * width), [row.at((group + i) * fields) for row in rows]) for i in range(together or 1)
                ]
                (_add_shorts if together else _add_groups)(b, parts, dots, panels.bits)
            _add_block(b, here, [head.of(F32) for head in heads], factors, dots, totals, panels)
        for place, total in enumerate(totals):
            i, j = place // len(vectors), place % len(vectors) * lanes
            span = Span(lanes, b.tail_mask(b.max(b.min(N - n - j, lanes), 0), lanes))
            value = total.value if epilogue is None else epilogue(b, total.value, m + i, n + j, span)
            b.buffer(C, F32).store(value, (m + i) * N + n + j, span)
    return b


_Group = tuple[Pointer, Sequence[Pointer]]
"""A vector of packed numbers for each column, and for each row of A the numbers that they are multiplied by."""


def _short_groups(bits: int) -> int:
    """Return how many groups have sums that fit int16, a power of two; 0 where one does not."""
    fitting = _LARGEST_SHORT // (2 * ((1 << bits) - 1) * _LARGEST_MAGNITUDE) // (8 // bits)
    return 1 << (fitting.bit_length() - 1) if fitting else 0


_LARGEST_SHORT, _LARGEST_MAGNITUDE = 32767, 128


def _fields_of(packed: Register, bits: int) -> list[Register]:
    """Return the numbers of a vector, four in each lane."""
    mask = ((1 << bits) - 1) * 0x01010101
    return [(packed >> (field * bits)) & mask if bits < 8 else packed for field in range(8 // bits)]


def _add_groups(b: Function, groups: Sequence[_Group], dots: Sequence[Variable], bits: int) -> None:
    """Add the products of as many rows of K as lie in one vector of packed numbers, or in some."""
    lanes = dots[0].type.lanes
    for numbers, rows in groups:
        vectors = len(dots) // len(rows)
        for j in range(vectors):
            for field, left in enumerate(_fields_of(numbers.load(j * lanes, lanes), bits)):
                for i, row in enumerate(rows):
                    dot = dots[i * vectors + j]
                    dot.set(dot4(b, dot.value, left, row.load(field).splat(lanes)))


def _add_shorts(b: Function, groups: Sequence[_Group], dots: Sequence[Variable], bits: int) -> None:
    """Do the same, with sums in 16 bits that are widened when all are added."""
    lanes = dots[0].type.lanes
    shorts = [b.const(I16.vector(2 * lanes), 0) for _ in dots]
    for numbers, rows in groups:
        vectors = len(dots) // len(rows)
        for j in range(vectors):
            for field, left in enumerate(_fields_of(numbers.load(j * lanes, lanes), bits)):
                for i, row in enumerate(rows):
                    place = i * vectors + j
                    shorts[place] = add_short_pairs(b, shorts[place], left, row.load(field).splat(lanes))
    ones = b.const(I16.vector(2 * lanes), 1).bits_as(I32.vector(lanes))
    for dot, short in zip(dots, shorts, strict=True):
        dot.set(dot_pairs(b, dot.value, short.bits_as(ones.type), ones))


def _first_sum(b: Function, panels: BlockLayout, head: Pointer) -> Register:
    """Return what the dot product of a block begins with: the zero point's part, where all of B have one."""
    total = head.of(I32).load(1)
    return total * -panels.half if panels.zero is None else total.like(0)


def _add_block(
    b: Function,
    here: Pointer,
    scales: Sequence[Pointer],
    factors: Sequence[Register],
    dots: Sequence[Variable],
    totals: Sequence[Variable],
    panels: BlockLayout,
) -> None:
    """Add the dot products of a block, scaled, to the sums."""
    lanes, vectors = dots[0].type.lanes, len(factors)
    width = vectors * lanes
    for j, factor in enumerate(factors):
        for i, scale in enumerate(scales):
            place = i * vectors + j
            dot = dots[place].value.to(F32)
            if panels.zero is not None:
                dot = dot - panels.zero_point(b, here, width, j * lanes, lanes) * scale.of(I32).load(1).to(F32).splat(lanes)
            totals[place].set(b.fma(dot, factor * scale.load(0).splat(lanes), totals[place].value))
