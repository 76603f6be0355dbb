"""Dot products of two bfloat16 into float32, and which processors compute them fast.

    VDPBF16PS     AVX512-BF16     total + left[1] x right[1], then + left[0] x right[0], both rounded to nearest; denormals are 0

Products of bfloat16 are exact in float32. Zen 4 and later, and Cooper Lake, begin one in each cycle: twice the multiplications of
float32 that their units do. Intel's processors since Sapphire Rapids, which have AVX512-FP16 too, begin one in three cycles
(measured), less than their units for float32 do: those have AMX for bfloat16.

Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2 (VDPBF16PS).
"""

from __future__ import annotations

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.types import F32, U32, Kind, Type
from sardonyx.codegen.emit.values import Register
from sardonyx.codegen.target import Target

__all__ = ["dot2", "has_fast_dot2"]

_FEATURE = "avx512bf16"
_BFLOAT = Type("bfloat", 16, Kind.FLOAT)
"""LLVM's bfloat16, for the instruction alone."""
_HIGH = 0xFFFF0000
_WIDTHS = (128, 256, 512)


def has_fast_dot2(target: Target) -> bool:
    """Return whether dot products of bfloat16 are faster than multiply-adds of float32."""
    return target.has_feature(_FEATURE) and not target.has_feature("avx512fp16")


def dot2(b: Function, total: Register, left: Register, right: Register) -> Register:
    """Return total + the dot product of the two bfloat16 in each lane of left and right.

    Args:
        b: the function to write into.
        total: float32 lanes.
        left: lanes of 32 bits, two bfloat16 each.
        right: the same.
    """
    bits = total.type.bits * total.type.lanes
    if b.target.has_feature(_FEATURE) and bits in _WIDTHS and not b.target.emulated:
        pairs = _BFLOAT.vector(2 * total.type.lanes)
        return b.intrinsic(f"llvm.x86.avx512bf16.dpbf16ps.{bits}", total.type, [total, left.bits_as(pairs), right.bits_as(pairs)])
    left, right = left.bits_as(U32), right.bits_as(U32)
    total = b.fma((left & _HIGH).bits_as(F32), (right & _HIGH).bits_as(F32), total)
    return b.fma((left << 16).bits_as(F32), (right << 16).bits_as(F32), total)
