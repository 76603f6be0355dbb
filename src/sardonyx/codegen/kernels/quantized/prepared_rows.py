"""Rows of A as products of 8-bit integers multiply them: in the sign that the instruction takes, each with its sum.

    int32 sum, and nothing up to HEAD_BYTES | numbers, zeros up to a whole group of four, or a matrix tile

Numbers are bytes, or int16 that keep their sign where the target multiplies pairs of 16 bits.
"""

from __future__ import annotations

from sardonyx.codegen.emit.dots import dot4, dot_pairs, flip_sign, has_pairs, native_left
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import I16, I32, U8, Type
from sardonyx.codegen.kernels.byte_panels import HALF_RANGE, group_unit, groups_of, left_shift
from sardonyx.codegen.target import Target
from sardonyx.lazy_dataclasses import dataclass

__all__ = ["HEAD_BYTES", "PrepareParams", "group_bytes", "prepared_bytes", "write_prepare_rows"]

HEAD_BYTES = 64
"""Of a prepared row, before its numbers: the sum of them in int32, and nothing."""


@dataclass(frozen=True, slots=True)
class PrepareParams:
    """The integer parameters of the kernel that prepares rows; a task is a row."""

    K: int
    """Numbers of a row."""
    row_bytes: int
    """From one prepared row to the next: `prepared_bytes`."""

    def words(self) -> list[int]:
        """Return the parameters as the kernel reads them."""
        return [self.K, self.row_bytes]


def prepared_bytes(target: Target, K: int) -> int:
    """Return how many bytes a prepared row takes."""
    return HEAD_BYTES + groups_of(K, group_unit(target)) * group_bytes(target)


def group_bytes(target: Target) -> int:
    """Return how many bytes four numbers of a prepared row take."""
    return 8 if has_pairs(target) else 4


def write_prepare_rows(module: Module, symbol: str, kind: Type) -> None:
    """Write the kernel `symbol`: buffers A (elements of `kind`, U8 or I8) and rows (`prepared_bytes` each).

    Parameters as PrepareParams. Behind the last number of a row are zeros, up to a whole group, or tile. Where the target has pairs
    of 16 bits, numbers are widened to that and keep their sign.
    """
    if has_pairs(module.target):
        _write_widen_rows(module, symbol, kind)
        return
    flips = left_shift(module.target, kind) != 0
    native, wide = native_left(module.target), module.target.vector_bytes
    with module.kernel(symbol) as b:
        K, row_bytes = b.param(0), b.param(1)
        with b.loop(b.begin, b.end) as row:
            source, head = b.buffer(0, native).at(row * K), b.buffer(1, native).at(row * row_bytes)
            numbers, total = head.at(HEAD_BYTES), b.variable(b.const(I32.vector(wide // 4), 0))
            rest = b.variable(b.const(I32, 0))
            whole = K // wide * wide
            with b.loop(0, whole, wide) as k:
                group = source.load(k, wide)
                group = flip_sign(group.bits_as(I32.vector(wide // 4))).bits_as(native.vector(wide)) if flips else group
                numbers.store(group, k, wide)
                words = group.bits_as(I32.vector(wide // 4))
                total.set(dot4(b, total.value, words, words.like(0x01010101), native))
            with b.loop(whole, K) as k:
                number = source.load(k) ^ (HALF_RANGE if flips else 0)
                numbers.store(number, k)
                rest.add(number.to(I32))
            with b.loop(K, row_bytes - HEAD_BYTES) as k:
                numbers.store(0, k)
            head.of(I32).store(b.sum_lanes(total.value) + rest.value, 0)


def _write_widen_rows(module: Module, symbol: str, kind: Type) -> None:
    half = module.target.lanes(16)
    with module.kernel(symbol) as b:
        K, row_bytes = b.param(0), b.param(1)
        with b.loop(b.begin, b.end) as row:
            source, head = b.buffer(0, kind).at(row * K), b.buffer(1, U8).at(row * row_bytes)
            numbers, total = head.at(HEAD_BYTES).of(I16), b.variable(b.const(I32.vector(half // 2), 0))
            rest, ones = b.variable(b.const(I32, 0)), b.const(I16.vector(half), 1).bits_as(I32.vector(half // 2))
            whole = K // half * half
            with b.loop(0, whole, half) as k:
                group = source.load(k, half).to(I16)
                numbers.store(group, k, half)
                total.set(dot_pairs(b, total.value, group.bits_as(I32.vector(half // 2)), ones))
            with b.loop(whole, K) as k:
                number = source.load(k).to(I16)
                numbers.store(number, k)
                rest.add(number.to(I32))
            with b.loop(K, (row_bytes - HEAD_BYTES) // 2) as k:
                numbers.store(0, k)
            head.of(I32).store(b.sum_lanes(total.value) + rest.value, 0)
