"""Dot products of four bytes into 32 bits: a table of the processors' instructions, and what each of them computes.

    instruction   of                         left        right
    VPDPBUSD      AVX512-VNNI, AVX-VNNI      unsigned    signed
    USDOT         Arm I8MM                   unsigned    signed
    SDOT          Arm DotProd                signed      signed
    VPMADDWD      SSE2, AVX2, AVX512-BW      any         any       bytes widened to 16 bits, two sums of pairs: exact
    VPMADDUBSW    SSSE3, AVX2, AVX512-BW     unsigned    signed    two sums of pairs in 16 bits, which saturate: for few bits
    (none)        any processor              any         any       four multiplications of 32 bits

Each row has the instruction as LLVM writes it (`template`) beside the same in plain operations (`meaning`), as its manual defines
it. A target that emulates features gets the meaning, so that kernels for other processors run, slowly, on any.

Sources: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2 (VPDPBUSD, PMADDWD, PMADDUBSW); Arm Architecture
Reference Manual for A-profile (USDOT, SDOT, vector).
"""

from __future__ import annotations

from collections.abc import Callable

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.types import I8, I16, I32, U8, U16, U32, Kind, Type
from sardonyx.codegen.emit.values import Register
from sardonyx.codegen.target import Target
from sardonyx.lazy_dataclasses import dataclass

__all__ = [
    "DOTS",
    "PAIRS",
    "SHORT_PAIRS",
    "Instruction",
    "add_short_pairs",
    "dot4",
    "dot_pairs",
    "flip_sign",
    "has_dot4",
    "has_pairs",
    "has_short_pairs",
    "native_left",
    "sum_of_bytes",
]

Write = Callable[[Function, Register, Register, Register], Register]
"""`write(b, total, left, right)`: total + the dot product of each lane."""

_SIGN_BITS = 0x80808080 - (1 << 32)
_HALF_RANGE = 0x40404040


@dataclass(frozen=True, slots=True)
class Instruction:
    """A dot product that a processor has."""

    name: str
    """Its name in the manual."""
    feature: str
    """LLVM's name of the feature that it belongs to."""
    widths: tuple[int, ...]
    """Bits of the vectors that it takes."""
    left: Type
    """Elements on the left; those on the right are signed."""
    template: Write
    """Writes it."""
    meaning: Write
    """Writes the same in operations that every processor has."""

    def is_in(self, target: Target, bits: int) -> bool:
        """Return whether the target has it, or emulates it, for vectors of `bits` bits."""
        return bits in self.widths and target.has_feature(self.feature)

    def write(self, b: Function, total: Register, left: Register, right: Register) -> Register:
        """Write it for the target of `b`."""
        return (self.meaning if b.target.emulated else self.template)(b, total, left, right)


def _vpdpbusd(b: Function, total: Register, left: Register, right: Register) -> Register:
    bits = _bits_of(total)
    return b.intrinsic(f"llvm.x86.avx512.vpdpbusd.{bits}", total.type, [total, left.bits_as(I32), right.bits_as(I32)])


def _neon(name: str) -> Write:
    def write(b: Function, total: Register, left: Register, right: Register) -> Register:
        operands = [total, left.bits_as(I8.vector(16)), right.bits_as(I8.vector(16))]
        return b.intrinsic(f"llvm.aarch64.neon.{name}.v4i32.v16i8", total.type, operands)

    return write


def _pmaddwd(name: str) -> Write:
    def write(b: Function, total: Register, left: Register, right: Register) -> Register:
        halves = I16.vector(2 * total.type.lanes)
        return total + b.intrinsic(f"llvm.x86.{name}", total.type, [left.bits_as(halves), right.bits_as(halves)])

    return write


def _pmaddubsw(name: str) -> Write:
    def write(b: Function, total: Register, left: Register, right: Register) -> Register:
        eights = I8.vector(2 * total.type.lanes)
        return total + b.intrinsic(f"llvm.x86.{name}", total.type, [left.bits_as(eights), right.bits_as(eights)])

    return write


def _saturated_sum(b: Function, total: Register, left: Register, right: Register) -> Register:
    lanes = total.type.lanes
    lefts, rights = left.bits_as(U8.vector(2 * lanes)).to(I32), right.bits_as(I8.vector(2 * lanes)).to(I32)
    products = lefts * rights
    even, odd = (products.shuffle(range(first, 2 * lanes, 2)) for first in range(2))
    return total + b.max(b.min(even + odd, 32767), -32768).to(I16)


def sum_of_bytes(left_type: Type, right_type: Type = I8) -> Write:
    """Return what writes the dot product of four bytes, each U8 or I8, in four multiplications of 32 bits."""

    def write(b: Function, total: Register, left: Register, right: Register) -> Register:
        for byte in range(4):
            total = total + _field(left, left_type, byte) * _field(right, right_type, byte)
        return total

    return write


def _sum_of_halves(b: Function, total: Register, left: Register, right: Register) -> Register:
    for half in range(2):
        total = total + _field(left, I16, half) * _field(right, I16, half)
    return total


def _field(lanes: Register, kind: Type, place: int) -> Register:
    """Return field `place` of each lane of 32 bits, as int32."""
    raised = lanes.bits_as(I32) << (32 - kind.bits * (place + 1))
    return raised >> (32 - kind.bits) if kind.kind is Kind.SIGNED else (raised.bits_as(U32) >> (32 - kind.bits)).bits_as(I32)


DOTS = (
    Instruction("VPDPBUSD", "avx512vnni", (128, 256, 512), U8, _vpdpbusd, sum_of_bytes(U8)),
    Instruction("VPDPBUSD", "avxvnni", (128, 256), U8, _vpdpbusd, sum_of_bytes(U8)),
    Instruction("USDOT", "i8mm", (128,), U8, _neon("usdot"), sum_of_bytes(U8)),
    Instruction("SDOT", "dotprod", (128,), I8, _neon("sdot"), sum_of_bytes(I8)),
)
"""Dot products of four bytes, the preferred first."""

PAIRS = (
    Instruction("VPMADDWD", "avx512bw", (512,), I16, _pmaddwd("avx512.pmaddw.d.512"), _sum_of_halves),
    Instruction("VPMADDWD", "avx2", (256,), I16, _pmaddwd("avx2.pmadd.wd"), _sum_of_halves),
    Instruction("PMADDWD", "sse2", (128,), I16, _pmaddwd("sse2.pmadd.wd"), _sum_of_halves),
)
"""Dot products of two int16: what there is without one of four bytes."""


SHORT_PAIRS = (
    Instruction("VPMADDUBSW", "avx512bw", (512,), U8, _pmaddubsw("avx512.pmaddubs.w.512"), _saturated_sum),
    Instruction("VPMADDUBSW", "avx2", (256,), U8, _pmaddubsw("avx2.pmadd.ub.sw"), _saturated_sum),
    Instruction("PMADDUBSW", "ssse3", (128,), U8, _pmaddubsw("ssse3.pmadd.ub.sw.128"), _saturated_sum),
)
"""Dot products of two bytes into int16, whose sums saturate: exact where the left side has at most 7 bits."""


def has_dot4(target: Target) -> bool:
    """Return whether vectors of the target's width have an instruction for four bytes."""
    return _find(DOTS, target, target.vector_bytes * 8) is not None


def has_pairs(target: Target) -> bool:
    """Return whether vectors of the target's width have an instruction for two int16, and none for four bytes."""
    return not has_dot4(target) and _find(PAIRS, target, target.vector_bytes * 8) is not None


def native_left(target: Target) -> Type:
    """Return what the left side of the target's dot product best is: U8, or I8 where the instruction takes that only."""
    found = _find(DOTS, target, target.vector_bytes * 8)
    return U8 if found is None else found.left


def dot4(b: Function, total: Register, left: Register, right: Register, left_type: Type = U8) -> Register:
    """Return total + the sum over the four bytes of each lane of left x right; sums wrap.

    Args:
        b: the function to write into.
        total: int32 lanes.
        left: lanes of four bytes each.
        right: lanes of four signed bytes each.
        left_type: U8 or I8, of the bytes of `left`; other than `native_left`, it takes more instructions.
    """
    bits = _bits_of(total)
    left, right = left.bits_as(I32), right.bits_as(I32)
    whole = _find(DOTS, b.target, bits)
    if whole is None:
        pairs = _find(PAIRS, b.target, bits)
        return _by_pairs(b, pairs, total, left, right, left_type) if pairs else sum_of_bytes(left_type)(b, total, left, right)
    if left_type == whole.left:
        return whole.write(b, total, left, right)
    total = whole.write(b, total, flip_sign(left), right)
    if left_type == U8:
        half = left.like(_HALF_RANGE)
        return whole.write(b, whole.write(b, total, half, right), half, right)
    return total - whole.write(b, total.like(0), left.like(_SIGN_BITS), right)


def dot_pairs(b: Function, total: Register, left: Register, right: Register) -> Register:
    """Return total + the dot product of the two int16 in each lane of left and right, for a target that `has_pairs`; sums wrap."""
    pairs = _find(PAIRS, b.target, _bits_of(total))
    return (_sum_of_halves if pairs is None else pairs.write)(b, total, left, right)


def has_short_pairs(target: Target) -> bool:
    """Return whether vectors of the target's width have an instruction for two bytes, and none for four."""
    return not has_dot4(target) and _find(SHORT_PAIRS, target, target.vector_bytes * 8) is not None


def add_short_pairs(b: Function, total: Register, left: Register, right: Register) -> Register:
    """Return total (int16) + the dot product of the two bytes in each lane, for a target that `has_short_pairs`.

    Args:
        b: the function to write into.
        total: int16 lanes; what is added to them must fit.
        left: unsigned bytes.
        right: signed bytes, as many; the sum of two products must fit too, or it saturates.
    """
    found = _find(SHORT_PAIRS, b.target, _bits_of(total))
    return (_saturated_sum if found is None else found.write)(b, total, left, right)


def flip_sign(lanes: Register) -> Register:
    """Turn the highest bit of each byte: unsigned bytes become signed ones that are less by 128, and the other way round."""
    return lanes.bits_as(I32) ^ _SIGN_BITS


def _by_pairs(b: Function, pairs: Instruction, total: Register, left: Register, right: Register, left_type: Type) -> Register:
    """Multiply the even bytes, then the odd ones, both widened to 16 bits: no product and no sum of two leaves 32 bits."""
    lanes = 2 * total.type.lanes
    wide = (U16 if left_type == U8 else I16).vector(lanes)
    lefts, rights = left.bits_as(wide), right.bits_as(I16.vector(lanes))
    even = lefts & 0xFF if left_type == U8 else (lefts << 8) >> 8
    total = pairs.write(b, total, even.bits_as(I32.vector(lanes // 2)), ((rights << 8) >> 8).bits_as(total.type))
    return pairs.write(b, total, (lefts >> 8).bits_as(total.type), (rights >> 8).bits_as(total.type))


def _find(table: tuple[Instruction, ...], target: Target, bits: int) -> Instruction | None:
    return next((instruction for instruction in table if instruction.is_in(target, bits)), None)


def _bits_of(total: Register) -> int:
    return total.type.bits * total.type.lanes
