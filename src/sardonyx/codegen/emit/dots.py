"""Dot products of four bytes into 32 bits: VPDPBUSD where the processor has it, elsewhere what the manual says that it does."""

from __future__ import annotations

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.types import I32, U32
from sardonyx.codegen.emit.values import Register
from sardonyx.codegen.target import Target

__all__ = ["dot4", "has_dot4"]

_WIDTHS = (128, 256, 512)


def has_dot4(target: Target) -> bool:
    """Return whether vectors of the target's width have the instruction."""
    features = target.features.split(",")
    return "+avx512vnni" in features or ("+avxvnni" in features and target.vector_bytes <= 32)


def dot4(b: Function, total: Register, left: Register, right: Register) -> Register:
    """Return total + the sum over the four bytes of each lane of left x right; sums wrap.

    Args:
        b: the function to write into.
        total: int32 lanes.
        left: lanes of four unsigned bytes each.
        right: lanes of four signed bytes each.
    """
    bits = total.type.bits * total.type.lanes
    if has_dot4(b.target) and bits in _WIDTHS:
        operands = [total, left.bits_as(I32), right.bits_as(I32)]
        return b.intrinsic(f"llvm.x86.avx512.vpdpbusd.{bits}", total.type, operands)
    left, right = left.bits_as(U32), right.bits_as(I32)
    for byte in range(4):
        unsigned, signed = (left >> (8 * byte)) & 0xFF, (right << (24 - 8 * byte)) >> 24
        total = total + unsigned.bits_as(I32) * signed
    return total
