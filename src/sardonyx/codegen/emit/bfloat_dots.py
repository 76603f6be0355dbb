"""Dot products of two bfloat16 into float32: a table of the processors' instructions, and which processors compute them fast.

    VDPBF16PS   AVX512-BF16   total + left[1] x right[1], then + left[0] x right[0], each fused and rounded to nearest
    BFDOT       Arm BF16      left[0] x right[0] + left[1] x right[1], then + total, each sum rounded to odd

Both take denormal operands for zeros, and make denormal results zeros. Products of bfloat16 are exact in float32. Rounding to odd
gives, of the two float32 next to an inexact result, the one whose last bit is set.

Zen 4 and later, and Cooper Lake, begin a VDPBF16PS in each cycle: twice the multiplications of float32 that their units do.
Intel's processors since Sapphire Rapids, which have AVX512-FP16 too, begin one in three cycles (measured), less than their units
for float32 do: those have AMX for bfloat16. BFDOT, two multiplications where a multiply-add of its width has one, has not been
timed.

Each row has the instruction as LLVM writes it beside the same in plain operations, as in `dots`. Elsewhere pairs are widened and
multiplied by two multiply-adds.

Operands that are made for a dot product are rounded by VCVTNEPS2BF16, which makes zeros of denormal numbers too, and of a NaN a
quiet one: what VDPBF16PS makes of them is the same as of operands that `to_narrow` rounds.

Sources: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2 (VDPBF16PS); Arm Architecture Reference Manual for
A-profile (BFDOT, vector, where FPCR.EBF is 0, as it is in processes on Linux).
"""

from __future__ import annotations

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.dots import Instruction
from sardonyx.codegen.emit.narrow import to_narrow
from sardonyx.codegen.emit.types import BF16, F32, U16, U32, Kind, Type
from sardonyx.codegen.emit.values import Register
from sardonyx.codegen.target import Target

__all__ = ["PAIR_DOTS", "dot2", "flushed", "has_fast_dot2", "to_factor", "widened"]

_BFLOAT = Type("bfloat", 16, Kind.FLOAT)
"""LLVM's bfloat16, for the instructions alone."""
_HIGH = 0xFFFF0000
_LEAST_NORMAL = 2.0**-126


def widened(b: Function, words: Register) -> tuple[Register, Register]:
    """Return the lower and the upper bfloat16 of words of 32 bits, as float32."""
    bits = words.bits_as(U32)
    return (bits << 16).bits_as(F32), (bits & _HIGH).bits_as(F32)


def flushed(b: Function, x: Register) -> Register:
    """Return float32 with a zero of its sign for each denormal number."""
    return b.select(b.abs(x) < _LEAST_NORMAL, b.call_math("copysign", x.like(0.0), x), x)


def _vdpbf16ps(b: Function, total: Register, left: Register, right: Register) -> Register:
    lanes, pairs = total.type.lanes, _BFLOAT.vector(2 * total.type.lanes)
    name = f"llvm.x86.avx512bf16.dpbf16ps.{32 * lanes}"
    return b.intrinsic(name, total.type, [total, left.bits_as(pairs), right.bits_as(pairs)])


def _bfdot(b: Function, total: Register, left: Register, right: Register) -> Register:
    pairs = _BFLOAT.vector(8)
    return b.intrinsic("llvm.aarch64.neon.bfdot.v4f32.v8bf16", total.type, [total, left.bits_as(pairs), right.bits_as(pairs)])


def _fused(b: Function, total: Register, left: Register, right: Register) -> Register:
    total = flushed(b, total)
    for x, y in reversed(list(zip(widened(b, left), widened(b, right), strict=True))):
        total = flushed(b, b.fma(flushed(b, x), flushed(b, y), total))
    return total


def _odd(b: Function, total: Register, left: Register, right: Register) -> Register:
    low, high = (flushed(b, flushed(b, x) * flushed(b, y)) for x, y in zip(widened(b, left), widened(b, right), strict=True))
    return _add_to_odd(b, flushed(b, total), _add_to_odd(b, low, high))


def _add_to_odd(b: Function, left: Register, right: Register) -> Register:
    """Return a sum rounded to odd: the nearest one, or its neighbour on the side of the error, which Knuth's TwoSum finds."""
    total = left + right
    part = total - left
    error = (left - (total - part)) + (right - part)
    bits = total.bits_as(U32)
    outward = (error > 0.0) ^ (total < 0.0)
    neighbour = b.select(outward, bits + 1, bits - 1)
    is_even = ((error > 0.0) | (error < 0.0)) & (bits & 1).eq(0)
    return flushed(b, b.select(is_even, neighbour, bits).bits_as(F32))


PAIR_DOTS = (
    Instruction("VDPBF16PS", "avx512bf16", (128, 256, 512), BF16, _vdpbf16ps, _fused),
    Instruction("BFDOT", "bf16", (128,), BF16, _bfdot, _odd),
)
"""Dot products of two bfloat16, on both sides."""


def _find(target: Target, bits: int) -> Instruction | None:
    return next((instruction for instruction in PAIR_DOTS if instruction.is_in(target, bits)), None)


def has_fast_dot2(target: Target) -> bool:
    """Return whether dot products of bfloat16 are faster than multiply-adds of float32."""
    return _find(target, target.vector_bytes * 8) is not None and not target.has_feature("avx512fp16")


def dot2(b: Function, total: Register, left: Register, right: Register) -> Register:
    """Return total + the dot product of the two bfloat16 in each lane of left and right.

    Args:
        b: the function to write into.
        total: float32 lanes.
        left: lanes of 32 bits, two bfloat16 each.
        right: the same.
    """
    found = _find(b.target, total.type.bits * total.type.lanes)
    if found is not None:
        return found.write(b, total, left, right)
    (low_left, high_left), (low_right, high_right) = widened(b, left), widened(b, right)
    return b.fma(low_left, low_right, b.fma(high_left, high_right, total))


def to_factor(b: Function, x: Register) -> Register:
    """Return float32 as bfloat16 for `dot2`: rounded to nearest, ties to even; a denormal number may become a zero."""
    lanes = x.type.lanes
    if lanes not in _ROUNDED_LANES or b.target.emulated or not b.target.has_feature("avx512bf16"):
        return to_narrow(b, x, BF16)
    name = f"llvm.x86.avx512bf16.cvtneps2bf16.{x.type.bits * lanes}"
    return b.intrinsic(name, _BFLOAT.vector(lanes), [x]).bits_as(U16.vector(lanes)).bits_as(BF16.vector(lanes))


_ROUNDED_LANES = (8, 16)
"""Of the vectors that VCVTNEPS2BF16 takes, and makes as many bfloat16 of."""
