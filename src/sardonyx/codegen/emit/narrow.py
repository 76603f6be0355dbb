"""float16 and bfloat16 as float32 and back, by their bits where the processor has no instruction that is right.

    from_narrow   exact                          float16: a NaN becomes quiet and keeps its other bits; bfloat16: all bits stay
    to_narrow     rounded once, ties to even     float16: a NaN becomes quiet and keeps its upper bits; bfloat16: ±0x7FC0

Floats of 8 and 4 bits are `small_floats`'s matter, which both hand on to it.

Every target gives the same bits, those of x86's VCVTPH2PS and VCVTPS2PH for float16 and those of ml_dtypes for bfloat16;
denormals and infinities keep their meaning. x86's own conversion to bfloat16 (VCVTNEPS2BF16) is not used: it takes denormals
for 0.
"""

from __future__ import annotations

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.small_floats import from_small, to_small
from sardonyx.codegen.emit.types import BF16, F16, F32, F64, U16, U32, Kind, Type
from sardonyx.codegen.emit.values import Register

__all__ = ["from_narrow", "rounded_to_odd", "to_narrow"]

_HALF = Type("half", 16, Kind.FLOAT)
"""LLVM's float16, for the two instructions that convert it."""


def from_narrow(b: Function, x: Register) -> Register:
    """Return floats of 16 bits, or fewer, as float32."""
    if x.type.is_small:
        return from_small(b, x)
    if x.type.scalar == BF16:
        return (x.bits_as(U16).to(U32) << 16).bits_as(F32)
    return x.bits_as(_HALF).to(F32) if b.target.has_half else _from_half(b, x.bits_as(U16).to(U32))


def to_narrow(b: Function, x: Register, kind: Type) -> Register:
    """Return a float32 as `kind`, a type of 16 bits or fewer."""
    if kind.is_small:
        return to_small(b, x, kind)
    if kind == BF16:
        return _to_bfloat(b, x.bits_as(U32)).to(U16).bits_as(BF16)
    return (x.to(_HALF) if b.target.has_half else _to_half(b, x).to(U16)).bits_as(F16)


def rounded_to_odd(b: Function, x: Register) -> Register:
    """Return a float64 as float32, of the two around it the one that is odd: rounded to float16 it is as if rounded once.

    Source: Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008.
    """
    near = x.to(F32)
    wide, bits = near.to(F64), near.bits_as(U32)
    below = bits - b.select(b.abs(wide) > b.abs(x), bits.like(1), bits.like(0))
    return b.select(wide.eq(x) | b.is_nan(x), bits, below | 1).bits_as(F32)


def _from_half(b: Function, bits: Register) -> Register:
    """Shift the exponent into place and scale it by the difference of the biases: denormals become normal by themselves."""
    magnitude = (bits & 0x7FFF) << 13
    scaled = (magnitude.bits_as(F32) * 2.0**112).bits_as(U32)
    quiet = b.select(magnitude > 0x7C00 << 13, magnitude | 0x7FC00000, magnitude | 0x7F800000)
    return (b.select(magnitude >= 0x7C00 << 13, quiet, scaled) | ((bits & 0x8000) << 16)).bits_as(F32)


def _to_half(b: Function, x: Register) -> Register:
    magnitude = b.abs(x).bits_as(U32)
    odd = (magnitude >> 13) & 1
    normal = (magnitude - ((112 << 23) - 0xFFF) + odd) >> 13
    denormal = (b.abs(x) + 0.5).bits_as(U32) - 0x3F000000
    finite = b.select(magnitude < 113 << 23, denormal, normal)
    special = b.select(b.is_nan(x), (magnitude >> 13) & 0x3FF | 0x7E00, finite.like(0x7C00))
    return b.select(b.abs(x) < 65520.0, finite, special) | ((x.bits_as(U32) >> 16) & 0x8000)


def _to_bfloat(b: Function, bits: Register) -> Register:
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return b.select((bits & 0x7FFFFFFF) > 0x7F800000, (bits >> 16) & 0x8000 | 0x7FC0, rounded)
