"""C[M, N] = A[M, K] @ B[K, N] with B of few bits, A in float32 as whole numbers of four digits, for dot products of bytes.

    write_digits        A -> D [M][blocks]: the numbers of a block as four signed bytes each, and those that do not fit
    write_digit_blocks  D, packed B -> C, to the precision of a product in float32

One row of A waits for the memory of B only where few instructions are needed for each of its numbers. A dot product of bytes takes
four numbers of B as they are stored. Four of them, one for each digit of A, are half as many instructions as to make floats of
these numbers and multiply by them.

A block of A is

    a = unit x (digit 0 + 2^8 digit 1 + 2^16 digit 2 + 2^24 digit 3)        digits from -128 to 127, unit a power of two

exactly, for every number whose magnitude is at least 2^-7 of the largest one's, and for those below that end in zeros. The others
(small beside the largest of their block, infinite, NaN; all, where the largest is beyond 2^±60) are zeros there, and are listed
with their places: they are multiplied by what they meet of B in float32. So nothing of A is rounded. Sums of the products of a
block are exact for each digit; what is rounded is their sum over digits, its product with the scale, and the sum over blocks.
Where a result is not finite, its panel is computed once more with all of A in float32: infinite scales and sums that overflow
give what they give there.
"""

from __future__ import annotations

import functools
import math
import operator

from sardonyx.codegen.emit.builder import Function, Variable
from sardonyx.codegen.emit.dots import dot4, native_left
from sardonyx.codegen.emit.module import Address, Kernel, Module
from sardonyx.codegen.emit.types import F32, I8, I32, I64, U8, U32
from sardonyx.codegen.emit.values import Pointer, Register, Span
from sardonyx.codegen.kernels.gemm import Epilogue, tiling
from sardonyx.codegen.kernels.panels import BlockLayout
from sardonyx.codegen.kernels.quantized.dot_blocks import B, C, Q, block_spans
from sardonyx.lazy_dataclasses import dataclass

__all__ = ["DigitParams", "digit_bytes", "write_digit_blocks", "write_digits"]

_DIGITS = 4
_SUMS, _NUMBERS = 2 * 4, 32
"""Where in a block of D the sums of digits begin, and the digits; before them are the unit and how many numbers are listed."""

_BELOW = 127.0 * 2**24
"""What four digits hold is less than this, whatever the lower ones are."""
_TOP_BIT = 30
"""The largest number of a block has this bit, or the one below."""
_BIAS, _MANTISSA = 127, 23
_CHAIN = 16
"""Blocks that are added up one after another; the sums of so many are."""
_RANGE = 60
"""Exponents of the largest number of a block that is written in digits: units, and sums of products, are normal numbers then."""


_LINE_BYTES, _AHEAD_BYTES = 64, 1 << 14
"""What is fetched at a time into the second-level cache, and how far ahead: memory waits for dot products otherwise."""


@dataclass(frozen=True, slots=True)
class DigitParams:
    """The integer parameters of the product."""

    M: int
    """Rows of C."""
    N: int
    """Columns of C."""
    blocks: int
    """Blocks of K."""
    K: int
    """Columns of A."""

    def words(self) -> list[int]:
        """Return the parameters as the kernel reads them; those of an epilogue follow."""
        return [self.M, self.N, self.blocks, self.K]

    def tasks(self, width: int) -> int:
        """Return how many tasks there are: panels of `width` columns."""
        return -(-self.N // width) if self.M else 0


def digit_bytes(block_size: int) -> int:
    """Return how many bytes a block of D takes: its head, its digits, its numbers, and room for places of all."""
    return _NUMBERS + block_size * (_DIGITS + F32.size_bytes + I32.size_bytes)


def write_digits(module: Module, symbol: str, block_size: int) -> None:
    """Write the kernel `symbol`: buffers A (float32) and D (bytes, `digit_bytes` a block); parameters as in QuantizeParams.

    A task is a block.
    """
    with module.kernel(symbol) as b:
        K, blocks = b.param(0), b.param(1)
        lanes = min(b.lanes(F32), block_size)
        with b.loop(b.begin, b.end) as task:
            row, first = task // blocks, task % blocks * block_size
            a = b.buffer(0, F32).at(row * K + first)
            block = b.buffer(1, U8).at(task * digit_bytes(block_size))
            _write_block(b, a, block, block_spans(b, K - first, block_size, lanes), block_size)


def _write_block(b: Kernel, a: Pointer, block: Pointer, spans: list[Span], block_size: int) -> None:
    lanes = spans[0].lanes
    zero = b.const(F32.vector(lanes), 0.0)

    def finite(place: int, span: Span) -> tuple[Register, Register]:
        x = a.load(place * lanes, span)
        return x, b.select(b.abs(x) < math.inf, x, zero)

    greatest = zero
    for place, span in enumerate(spans):
        greatest = b.max(greatest, b.abs(finite(place, span)[1]))
    factor, unit = _units(b, b.reduce(greatest, b.max))
    totals = [b.const(I32.vector(lanes), 0)] * _DIGITS
    is_listed = totals[0]
    values, places = _values(block, block_size), _places(block, block_size)
    for place, span in enumerate(spans):
        x, clean = finite(place, span)
        scaled = b.round_even(clean * factor.splat(lanes))
        fits = (scaled * unit.splat(lanes)).eq(x)
        left = b.select(fits, is_listed.like(0), is_listed.like(1))
        values.store(x, place * lanes, lanes)
        places.store(left, place * lanes, lanes)
        is_listed, number = is_listed | left, b.select(fits, scaled, zero).to(I32)
        for digit in range(_DIGITS):
            low = (number << 24) >> 24
            block.of(I8).store(low.to(I8), _NUMBERS + digit * block_size + place * lanes, lanes)
            totals[digit] = totals[digit] + low
            number = (number - low) >> 8
    block.of(F32).store(unit, 0)
    for digit, total in enumerate(totals):
        block.at(_SUMS).of(I32).store(b.sum_lanes(total), digit)
    count = b.variable(b.const(I32, 0))
    with b.when(b.reduce(is_listed, b.max) > 0), b.loop(0, block_size) as k:
        left = places.load(k)
        places.store(k.to(I32), count.value.to(I64))
        count.add(left)
    block.of(I32).store(count.value, 1)


def _values(block: Pointer, block_size: int) -> Pointer:
    """Return where a block of D has its numbers."""
    return block.at(_NUMBERS + _DIGITS * block_size).of(F32)


def _places(block: Pointer, block_size: int) -> Pointer:
    """Return where a block of D lists the places of those that are no digits."""
    return block.at(_NUMBERS + (_DIGITS + F32.size_bytes) * block_size).of(I32)


def _units(b: Function, largest: Register) -> tuple[Register, Register]:
    """Return what makes whole numbers of a block's, and its inverse: powers of two, or zeros where the block is listed."""
    exponent = (largest.bits_as(I32) >> _MANTISSA) - _BIAS
    raised = (exponent.like(_TOP_BIT + _BIAS) - exponent) << _MANTISSA
    at_most = raised.bits_as(F32)
    raised = b.select(largest * at_most < _BELOW, raised, raised - (1 << _MANTISSA))
    lowered = exponent.like(2 * _BIAS << _MANTISSA) - raised
    is_listed = b.max(exponent, exponent.like(0) - exponent) > _RANGE
    zero = largest.like(0.0)
    return b.select(is_listed, zero, raised.bits_as(F32)), b.select(is_listed, zero, lowered.bits_as(F32))


def write_digit_blocks(module: Module, symbol: str, panels: BlockLayout, epilogue: Epilogue | None = None) -> None:
    """Write the kernel `symbol`: buffers D, packed B, C and those of the epilogue; parameters as in DigitParams.

    A task is a panel, for all rows: they are few.
    """
    width = tiling(module.target).panel
    tile = _write_tile(module, f"{symbol}_row", panels, epilogue)
    with module.kernel(symbol) as b:
        M, blocks = b.param(0), b.param(2)
        with b.loop(b.begin, b.end) as panel:
            stored = b.buffer(B, U8).at(panel * blocks * panels.block_bytes(width))
            with b.loop(0, M) as m:
                digits = b.buffer(Q, U8).at(m * blocks * digit_bytes(panels.block_size))
                b.call_part(tile, digits, stored, m, panel * width)


def _write_tile(module: Module, symbol: str, panels: BlockLayout, epilogue: Epilogue | None) -> Kernel:
    shape = tiling(module.target)
    lanes, width, size = shape.lanes, shape.panel, panels.block_size
    columns = range(0, width, lanes)
    with module.part(symbol, Address(U8), Address(U8), I64, I64) as b:
        digits, stored = b.addresses
        m, n = b.arguments
        N, blocks = b.param(1), b.param(2)
        zero = b.const(F32.vector(lanes), 0.0)
        totals, chain, parts = ([b.variable(zero) for _ in columns] for _ in range(3))
        dots = [[b.variable(b.const(I32.vector(lanes), 0)) for _ in columns] for _ in range(_DIGITS)]
        with b.loop(0, blocks, _CHAIN) as first:
            for total in chain:
                total.set(zero)
            with b.loop(first, b.min(first + _CHAIN, blocks)) as block:
                here, head = stored.at(block * panels.block_bytes(width)), digits.at(block * digit_bytes(size))
                scales = [here.of(F32).load(j, lanes) for j in columns]
                _multiply_block(b, panels, here, head, dots)
                joined = _joined(b, panels, here, head, dots)
                for part in parts:
                    part.set(zero)
                _add_listed(b, panels, here, head, parts)
                for total, found, part, scale in zip(chain, joined, parts, scales, strict=True):
                    total.set(b.fma(found + part.value, scale, total.value))
            for total, part in zip(totals, chain, strict=True):
                total.add(part.value)
        odd = functools.reduce(operator.add, [total.value * 0.0 for total in totals])
        with b.when(~b.sum_lanes(odd).eq(0.0)):
            _add_all(b, panels, stored, digits, totals)
        for j, total in zip(columns, totals, strict=True):
            span = Span(lanes, b.tail_mask(b.max(b.min(N - n - j, lanes), 0), lanes))
            value = total.value if epilogue is None else epilogue(b, total.value, m, n + j, span)
            b.buffer(C, F32).store(value, m * N + n + j, span)
    return b


def _add_all(b: Kernel, panels: BlockLayout, stored: Pointer, digits: Pointer, totals: list[Variable]) -> None:
    """Make the sums of a panel anew, of all numbers in float32."""
    size, width = panels.block_size, tiling(b.target).panel
    for total in totals:
        total.set(total.value.like(0.0))
    with b.loop(0, b.param(2)) as block:
        here, values = stored.at(block * panels.block_bytes(width)), _values(digits.at(block * digit_bytes(size)), size)
        with b.loop(0, b.min(b.param(3) - block * size, size)) as k:
            for j, (total, number) in enumerate(zip(totals, _numbers(b, panels, here, k), strict=True)):
                weight = number * here.of(F32).load(j * number.type.lanes, number.type.lanes)
                total.set(b.fma(values.load(k).splat(number.type.lanes), weight, total.value))


def _multiply_block(b: Function, panels: BlockLayout, here: Pointer, head: Pointer, dots: list[list[Variable]]) -> None:
    """Set the dot products of a block, digit by digit; where all zero points are half the range, without what these are of them."""
    lanes, size = dots[0][0].type.lanes, panels.block_size
    width, sums = len(dots[0]) * lanes, head.at(_SUMS).of(I32)
    for digit, row in enumerate(dots):
        first = sums.load(digit) * -panels.half if panels.zero is None else sums.load(digit).like(0)
        for dot in row:
            dot.set(first.splat(lanes))
    numbers, groups = here.at(panels.numbers_at(width)).of(U32), size // panels.word_rows
    words = [head.at(_NUMBERS + digit * size).of(U32) for digit in range(_DIGITS)]
    share = -(-panels.block_bytes(width) // groups)
    with b.loop(0, groups) as group:
        for line in range(0, share, _LINE_BYTES):
            b.prefetch(here.at(group * share + (_AHEAD_BYTES + line)), locality=2)
        _add_words(b, panels, numbers.at(group * width), [row.at(group * panels.fields) for row in words], dots)


def _joined(b: Function, panels: BlockLayout, here: Pointer, head: Pointer, dots: list[list[Variable]]) -> list[Register]:
    """Return the dot products of a block in float32, before they are scaled."""
    lanes, unit = dots[0][0].type.lanes, head.of(F32).load(0)
    width, sums, found = len(dots[0]) * lanes, head.at(_SUMS).of(I32), []
    for place in range(len(dots[0])):
        mine = [row[place].value for row in dots]
        if panels.zero is not None:
            zero = here.at(width * F32.size_bytes).load(place * lanes, lanes).to(I32)
            mine = [dot - zero * sums.load(digit).splat(lanes) for digit, dot in enumerate(mine)]
        floats = [dot.to(F32) for dot in reversed(mine)]
        found.append(functools.reduce(lambda high, low: b.fma(high, high.like(256.0), low), floats) * unit.splat(lanes))
    return found


def _add_words(b: Function, panels: BlockLayout, numbers: Pointer, digits: list[Pointer], dots: list[list[Variable]]) -> None:
    """Add the products of a word of each column by the digits of as many rows of K."""
    lanes = dots[0][0].type.lanes
    mask = ((1 << panels.bits) - 1) * 0x01010101
    kind = native_left(b.target) if panels.bits < 8 else U8
    for j in range(len(dots[0])):
        packed = numbers.load(j * lanes, lanes)
        for field in range(panels.fields):
            left = (packed >> (field * panels.bits)) & mask if panels.bits < 8 else packed
            for row, dot in zip(digits, dots, strict=True):
                dot[j].set(dot4(b, dot[j].value, left, row.load(field).splat(lanes), kind))


def _add_listed(b: Function, panels: BlockLayout, here: Pointer, head: Pointer, parts: list[Variable]) -> None:
    """Add the products of the numbers that are no digits, before they are scaled."""
    values, places = _values(head, panels.block_size), _places(head, panels.block_size)
    with b.loop(0, head.of(I32).load(1).to(I64)) as i:
        k = places.load(i).to(I64)
        for part, number in zip(parts, _numbers(b, panels, here, k), strict=True):
            part.set(b.fma(values.load(k).splat(number.type.lanes), number, part.value))


def _numbers(b: Function, panels: BlockLayout, here: Pointer, k: Register) -> list[Register]:
    """Return row `k` of a block of B, less its zero points."""
    shape = tiling(b.target)
    lanes, width = shape.lanes, shape.panel
    word, place = k // panels.word_rows, k % panels.word_rows
    shift = (place % 4 * 8 + place // 4 * panels.bits).to(U32).splat(lanes)
    words, found = here.at(panels.numbers_at(width)).of(U32).at(word * width), []
    for j in range(0, width, lanes):
        number = ((words.load(j, lanes) >> shift) & ((1 << panels.bits) - 1)).bits_as(I32).to(F32)
        found.append(number - panels.zero_point(b, here, width, j, lanes))
    return found
