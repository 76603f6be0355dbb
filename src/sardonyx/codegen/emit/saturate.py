"""Floats to small integers: rounded to nearest, ties to even, plus a zero point, saturated; NaN becomes the least number.

    number = round_clipped(b, x, zero, least, greatest)      one vector, as int32
    packed = pack_saturated(b, [x0, x1, x2, x3], zero, U8)   several, narrowed together by the processor's saturating packs

One vector is moved into the limits less the zero point first, which are whole numbers. Several are converted by an instruction that
rounds to even (x86: CVTPS2DQ, in the default mode) and gives -2^31 for NaN and for what is too small, so that only what is too
large is cut off before; the zero point is added with saturation to 16 bits, where sums are far beyond the limits of 8 bits already.
Source of the definition: ONNX QuantizeLinear-10.
"""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.types import BOOL, I8, I16, I32, Kind, Type
from sardonyx.codegen.emit.values import Register
from sardonyx.codegen.target import Target

__all__ = ["can_pack", "limits_of_kind", "pack_saturated", "round_clipped"]

_CONVERSIONS = {4: "sse2.cvtps2dq", 8: "avx.cvt.ps2dq.256"}
"""Lanes -> x86's conversion to the nearest int32; 16 lanes have another form."""

_PACKS = {4: ("sse2", ".128"), 8: ("avx2", ""), 16: ("avx512", ".512")}
"""Lanes of 32 bits -> how LLVM names x86's packs of such vectors, before and after the instruction."""


def limits_of_kind(kind: Type) -> tuple[int, int]:
    """Return the least and the greatest integer of a type."""
    span = 1 << kind.bits
    return (-span // 2, span // 2 - 1) if kind.kind is Kind.SIGNED else (0, span - 1)


def round_clipped(b: Function, x: Register, zero: Register, least: Register, greatest: Register) -> Register:
    """Return float32 lanes, moved into [least, greatest], rounded, plus `zero` (int32), as int32; NaN counts as the least.

    The limits are whole numbers, so that what is rounded fits an integer: those of the result's type less the zero point.
    """
    above = b.select(x > least, x, least)
    return _nearest(b, b.select(above < greatest, above, greatest)) + zero


def can_pack(target: Target, vectors: int, lanes: int) -> bool:
    """Return whether `pack_saturated` takes so many vectors of so many lanes."""
    return _is_x86(target) and lanes == target.lanes(32) and lanes in _PACKS and 2 <= vectors <= 4


def pack_saturated(b: Function, parts: Sequence[Register], zero: Register, kind: Type) -> Register:
    """Return the lanes of two to four float32 vectors, one after the other, as `round_clipped` does, of 8 bits.

    Three vectors give the lanes of four, of which the last are undefined. `zero` is an int32 that fits 16 bits.
    """
    lanes = parts[0].type.lanes
    first, last = _PACKS[lanes]
    pairs, numbers = I16.vector(2 * lanes), [_nearest(b, b.min(x.like(32767.0), x)) for x in parts]
    numbers = numbers if not len(numbers) % 2 else [*numbers, numbers[-1]]
    halves = [
        b.intrinsic(f"llvm.x86.{first}.packssdw{last}", pairs, [low, high])
        for low, high in zip(numbers[::2], numbers[1::2], strict=True)
    ]
    halves = [b.call_math("sadd.sat", half, zero.to(I16).splat(2 * lanes)) for half in halves]
    name = f"llvm.x86.{first}.{'packsswb' if kind == I8 else 'packuswb'}{last}"
    packed = b.intrinsic(name, kind.vector(4 * lanes), [halves[0], halves[-1]])
    blocks = lanes // 4
    order = [block * 4 + part for part in range(len(numbers)) for block in range(blocks)]
    return packed.bits_as(I32.vector(lanes)).shuffle(order).bits_as(kind.vector(len(order) * 4))


def _nearest(b: Function, x: Register) -> Register:
    """Return the nearest int32; on x86 -2^31 for NaN and where there is none."""
    lanes, most = x.type.lanes, b.target.lanes(32)
    if not _is_x86(b.target) or lanes < 4:
        return b.round_even(x).to(I32)
    if lanes > most:
        half = lanes // 2
        return b.join(_nearest(b, x.shuffle(range(half))), _nearest(b, x.shuffle(range(half, lanes))))
    if lanes in _CONVERSIONS:
        return b.intrinsic(f"llvm.x86.{_CONVERSIONS[lanes]}", I32.vector(lanes), [x])
    kept, mask = b.const(I32.vector(16), 0), b.const(BOOL.vector(16), True).bits_as(I16)
    return b.intrinsic("llvm.x86.avx512.mask.cvtps2dq.512", I32.vector(16), [x, kept, mask, b.const(I32, _CURRENT_DIRECTION)])


_CURRENT_DIRECTION = 4
"""Rounding in the mode of the thread, which is to nearest."""


def _is_x86(target: Target) -> bool:
    return target.triple.startswith("x86_64") and not target.emulated
