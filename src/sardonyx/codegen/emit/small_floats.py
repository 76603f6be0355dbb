"""Floats of 8 and 4 bits as float32 and back, by their bits: in memory each has a byte.

    type              sign, exponent, mantissa   bias   infinity   NaN            what is too large becomes
    float8e4m3fn      1 4 3                      7      none       7F, FF         NaN
    float8e4m3fnuz    1 4 3                      8      none       80             NaN; there is no -0
    float8e5m2        1 5 2                      15     7C, FC     above these    an infinity
    float8e5m2fnuz    1 5 2                      16     none       80             NaN; there is no -0
    float4e2m1        1 2 1                      1      none       none           the largest; NaN -0, and a negative one 0

Conversions are exact one way, and rounded once the other, to nearest, ties to even; the bits are those of ml_dtypes on every
processor. Source: ONNX, "Float stored in 8 bits" and "Float stored in 4 bits".
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.types import F32, I32, U8, U32, Kind, Type
from sardonyx.codegen.emit.values import Register
from sardonyx.lazy_dataclasses import dataclass

__all__ = ["SMALL_FLOATS", "SmallFloat", "from_small", "to_small"]

_EXPONENT, _BIAS = 23, 127
"""The lowest bit of a float32's exponent, and what is added to it."""


@dataclass(frozen=True, slots=True)
class SmallFloat:
    """How numbers of a type are written in a byte."""

    mantissa: int
    """Bits of the mantissa."""
    bias: int
    """What is added to an exponent."""
    sign: int
    """The bit of the sign."""
    greatest: int
    """The code of the largest finite number."""
    beyond: int
    """The code of what is larger."""
    nan: int
    """The code of NaN."""
    is_unsigned: bool = False
    """Whether zero and NaN have no sign."""

    @property
    def largest(self) -> float:
        """The largest finite number."""
        steps = self.greatest & ((1 << self.mantissa) - 1)
        return math.ldexp(1 + steps / (1 << self.mantissa), (self.greatest >> self.mantissa) - self.bias)


SMALL_FLOATS: Mapping[Kind, SmallFloat] = {
    Kind.E4M3FN: SmallFloat(3, 7, 0x80, 0x7E, 0x7F, 0x7F),
    Kind.E4M3FNUZ: SmallFloat(3, 8, 0x80, 0x7F, 0x80, 0x80, True),
    Kind.E5M2: SmallFloat(2, 15, 0x80, 0x7B, 0x7C, 0x7E),
    Kind.E5M2FNUZ: SmallFloat(2, 16, 0x80, 0x7F, 0x80, 0x80, True),
    Kind.E2M1: SmallFloat(1, 1, 0x08, 0x07, 0x07, 0x08),
}
"""The types, by what their bits mean."""


def from_small(b: Function, x: Register) -> Register:
    """Return floats of 8 or 4 bits as float32."""
    form, code = SMALL_FLOATS[x.type.kind], x.bits_as(U8).to(U32)
    magnitude = code & (form.sign - 1)
    shift = _EXPONENT - form.mantissa
    normal = ((magnitude << shift) + ((_BIAS - form.bias) << _EXPONENT)).bits_as(F32)
    denormal = magnitude.bits_as(I32).to(F32) * math.ldexp(1.0, 1 - form.bias - form.mantissa)
    found = b.select(magnitude < 1 << form.mantissa, denormal, normal)
    if form.is_unsigned:
        found = b.select(code.eq(form.nan), found.like(math.nan), found)
    elif form.beyond > form.greatest:
        found = b.select(magnitude.eq(form.beyond), found.like(math.inf if form.beyond < form.nan else math.nan), found)
        found = b.select(magnitude > form.beyond, found.like(math.nan), found)
    sign = b.select((code & form.sign).eq(0), code.like(0), code.like(1 << 31))
    return (found.bits_as(U32) | sign).bits_as(F32)


def to_small(b: Function, x: Register, kind: Type) -> Register:
    """Return float32 as `kind`, a type of 8 or 4 bits, without saturating."""
    form, magnitude = SMALL_FLOATS[kind.kind], b.abs(x)
    bits, shift = magnitude.bits_as(U32), _EXPONENT - form.mantissa
    odd = (bits >> shift) & 1
    normal = (bits + ((1 << (shift - 1)) - 1) + odd - ((_BIAS - form.bias) << _EXPONENT)) >> shift
    step = math.ldexp(1.0, 1 - form.bias - form.mantissa + _EXPONENT)
    denormal = (magnitude + step).bits_as(U32) - magnitude.like(step).bits_as(U32)
    code = b.select(magnitude < math.ldexp(1.0, 1 - form.bias), denormal, normal)
    code = b.select(code > form.greatest, code.like(form.beyond), code)
    code = b.select(b.is_nan(x), code.like(form.nan), code)
    sign = b.select((x.bits_as(U32) >> 31).eq(0), code.like(0), code.like(form.sign))
    signed = b.select(code.eq(0) | code.eq(form.nan), code, code ^ sign) if form.is_unsigned else code ^ sign
    return signed.to(U8).bits_as(kind)
