"""Gather rows of numbers of 2, 4 or 8 bits, and dequantize them by blocks: GatherBlockQuantized of com.microsoft.

    y[i, r, k] = (x[v, r, k] - zero[v, r, k / block]) * scale[v, r, k / block]        v = indices[i], from the end if < 0

    x       ┌──┬──┬──┬──┐ bytes of a row: 8 / bits numbers each, the first in the lowest bits; zero points alike
    scale   ┌─────┐┌─────┐ float32, one for a block of numbers

An index that is out of range gives zeros. Source: com.microsoft GatherBlockQuantized of ONNX Runtime 1.31.
"""

from __future__ import annotations

from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import F32, I32, U8, Type
from sardonyx.codegen.emit.values import Pointer, Register, Span
from sardonyx.lazy_dataclasses import dataclass

__all__ = ["GatherBlocksParams", "write_gather_blocks"]

_LANES = 16
"""Numbers that are computed at once: as many as the smallest block has."""


@dataclass(frozen=True, slots=True)
class GatherBlocksParams:
    """The integer parameters of the kernel; a task is an index."""

    size: int
    """Entries of the table."""
    parts: int
    """Rows of one entry."""
    K: int
    """Numbers of a row."""
    block: int
    """Numbers of a block, a power of two from 16 on."""
    bits: int
    """Bits of a number."""
    zero: int
    """The zero point where there are none."""

    def words(self) -> list[int]:
        """Return the parameters as the kernel reads them."""
        blocks = -(-self.K // self.block)
        return [self.size, self.parts, self.K, self.block, blocks, self.K * self.bits // 8, -(-blocks * self.bits // 8), self.zero]


_SIZE, _PARTS, _K, _BLOCK, _BLOCKS, _ROW_BYTES, _ZERO_BYTES, _ZERO = range(8)


def write_gather_blocks(module: Module, symbol: str, bits: int, index: Type, *, has_zeros: bool) -> None:
    """Write the kernel `symbol`: buffers x (bytes), indices, scales (float32), y (float32), and zero points (bytes) if it has them.

    Parameters as GatherBlocksParams.
    """
    with module.kernel(symbol) as b, b.loop(b.begin, b.end) as task:
        given, size = b.buffer(1, index).load(task).to(b.begin.type), b.param(_SIZE)
        wrapped = b.select(given < 0, given + size, given)
        inside = (wrapped >= 0) & (wrapped < size)
        with b.loop(0, b.param(_PARTS)) as part:
            source, target = wrapped * b.param(_PARTS) + part, task * b.param(_PARTS) + part
            y = b.buffer(3, F32).at(target * b.param(_K))
            b.branch(inside, lambda: _write_row(b, bits, source, y, has_zeros=has_zeros), lambda: _write_zeros(b, y))


def _write_zeros(b: Kernel, y: Pointer) -> None:
    with b.loop(0, b.param(_K)) as k:
        y.store(b.const(F32, 0.0), k)


def _write_row(b: Kernel, bits: int, source: Register, y: Pointer, *, has_zeros: bool) -> None:
    x, block, K = b.buffer(0, U8).at(source * b.param(_ROW_BYTES)), b.param(_BLOCK), b.param(_K)
    with b.loop(0, b.param(_BLOCKS)) as place:
        scale = b.buffer(2, F32).load(source * b.param(_BLOCKS) + place).splat(_LANES)
        zero = (_zero(b, bits, source, place) if has_zeros else b.param(_ZERO).to(I32)).splat(_LANES)
        first, end = place * block, b.min((place + 1) * block, K)
        whole = first + (end - first) // _LANES * _LANES
        for start, stop, is_whole in ((first, whole, True), (whole, end, False)):
            with b.loop(start, stop, _LANES) as k:
                width, rest = _LANES * bits // 8, end - k
                held = Span(width) if is_whole else Span(width, b.tail_mask(rest * bits // 8, width))
                numbers = _unpacked(x.load(k * bits // 8, held).to(I32), bits, b)
                y.store((numbers - zero).to(F32) * scale, k, Span(_LANES) if is_whole else Span(_LANES, b.tail_mask(rest, _LANES)))


def _zero(b: Kernel, bits: int, source: Register, place: Register) -> Register:
    """Return the zero point of a block."""
    bit = place * bits
    byte = b.buffer(4, U8).load(source * b.param(_ZERO_BYTES) + bit // 8).to(I32)
    return (byte >> (bit % 8).to(I32)) & ((1 << bits) - 1)


def _unpacked(held: Register, bits: int, b: Kernel) -> Register:
    """Return the numbers of some bytes, which are int32, in order."""
    fields = [(held >> shift) & ((1 << bits) - 1) for shift in range(0, 8, bits)]
    while len(fields) > 1:
        half = len(fields) // 2
        fields = [b.interleave(low, high) for low, high in zip(fields[:half], fields[half:], strict=True)]
    return fields[0]
