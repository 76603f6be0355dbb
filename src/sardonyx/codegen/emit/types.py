"""The types of values in a kernel: a scalar, a vector of lanes, or a pointer.

`F32` is LLVM's `float`, `F32.vector(16)` its `<16 x float>`. LLVM's integers have no sign; ours do, and operators obey it:
`I8` and `U8` are both `i8`, but are divided, compared, shifted and widened by different instructions.

`F16` and `BF16` are `i16` too: floats of 16 bits are loaded, selected, shuffled and stored as bits, and computed with after a
conversion by `narrow`. LLVM's own `half` and `bfloat` become calls of a compiler's support library on processors that lack
instructions for them, even where a kernel only moves them; that library is not part of a process. Floats of 8 and 4 bits, `small`,
are bytes in the same way; only what quantizes to them and back computes with them.
"""

from __future__ import annotations

import enum
import functools
import struct

import numpy as np

from sardonyx.lazy_dataclasses import dataclass, field

__all__ = [
    "BF16",
    "BOOL",
    "E2M1",
    "E4M3FN",
    "E4M3FNUZ",
    "E5M2",
    "E5M2FNUZ",
    "F16",
    "F32",
    "F64",
    "I8",
    "I16",
    "I32",
    "I64",
    "PTR",
    "U8",
    "U16",
    "U32",
    "U64",
    "VOID",
    "Kind",
    "Type",
    "literal",
    "of_dtype",
]


class Kind(enum.Enum):
    """What a type's bits mean: which instruction an operator becomes."""

    FLOAT = "float"
    HALF = "float16"
    BFLOAT = "bfloat16"
    E4M3FN = "float8e4m3fn"
    E4M3FNUZ = "float8e4m3fnuz"
    E5M2 = "float8e5m2"
    E5M2FNUZ = "float8e5m2fnuz"
    E2M1 = "float4e2m1"
    SIGNED = "signed"
    UNSIGNED = "unsigned"
    BOOL = "bool"
    POINTER = "pointer"
    VOID = "void"


@dataclass(frozen=True, slots=True)
class Type:
    """A type of LLVM, with the sign that LLVM's integers lack."""

    element: str
    """LLVM's name of one lane."""
    bits: int
    """Width of one lane; 1 for a bool, which takes a byte in memory."""
    kind: Kind
    """What the bits mean."""
    lanes: int = 1
    """Number of lanes; 1 is a scalar."""
    text: str = field(init=False, compare=False)
    """LLVM's name of the whole type."""

    def __post_init__(self) -> None:
        """Spell the type once: its text is written into every instruction."""
        text = self.element if self.lanes == 1 else f"<{self.lanes} x {self.element}>"
        object.__setattr__(self, "text", text)

    def __hash__(self) -> int:
        return hash(self.text)

    def __str__(self) -> str:
        """Return LLVM's name of the type."""
        return self.text

    def vector(self, lanes: int) -> Type:
        """Return this type with `lanes` lanes; 1 gives the scalar."""
        return self if lanes == self.lanes else _vector(self.element, self.bits, self.kind, lanes)

    @property
    def name(self) -> str:
        """The type in messages: LLVM's name, but float16 and bfloat16 by their own."""
        return self.kind.value if self.is_narrow else self.text

    @property
    def scalar(self) -> Type:
        """The type of one lane."""
        return self if self.lanes == 1 else self.vector(1)

    @property
    def size_bytes(self) -> int:
        """Bytes that one lane takes in memory."""
        return (self.bits + 7) // 8

    @property
    def is_float(self) -> bool:
        """Whether the lanes are floating-point numbers."""
        return self.kind is Kind.FLOAT or self.is_narrow

    @property
    def is_narrow(self) -> bool:
        """Whether the lanes are floats of 16 bits or fewer: bits, which no operator computes with."""
        return self.kind in _NARROW

    @property
    def is_small(self) -> bool:
        """Whether the lanes are floats of 8 or 4 bits, which have a byte each."""
        return self.is_narrow and self.bits == 8

    @property
    def is_integer(self) -> bool:
        """Whether the lanes are integers; bools are not."""
        return self.kind is Kind.SIGNED or self.kind is Kind.UNSIGNED


_NARROW = frozenset((Kind.HALF, Kind.BFLOAT, Kind.E4M3FN, Kind.E4M3FNUZ, Kind.E5M2, Kind.E5M2FNUZ, Kind.E2M1))


@functools.cache
def _vector(element: str, bits: int, kind: Kind, lanes: int) -> Type:
    return Type(element, bits, kind, lanes)


VOID = Type("void", 0, Kind.VOID)
PTR = Type("ptr", 64, Kind.POINTER)
BOOL = Type("i1", 1, Kind.BOOL)
F16 = Type("i16", 16, Kind.HALF)
BF16 = Type("i16", 16, Kind.BFLOAT)
F32 = Type("float", 32, Kind.FLOAT)
F64 = Type("double", 64, Kind.FLOAT)
I8 = Type("i8", 8, Kind.SIGNED)
I16 = Type("i16", 16, Kind.SIGNED)
I32 = Type("i32", 32, Kind.SIGNED)
I64 = Type("i64", 64, Kind.SIGNED)
U8 = Type("i8", 8, Kind.UNSIGNED)
U16 = Type("i16", 16, Kind.UNSIGNED)
U32 = Type("i32", 32, Kind.UNSIGNED)
U64 = Type("i64", 64, Kind.UNSIGNED)

E4M3FN, E4M3FNUZ, E5M2, E5M2FNUZ, E2M1 = (
    Type("i8", 8, kind) for kind in (Kind.E4M3FN, Kind.E4M3FNUZ, Kind.E5M2, Kind.E5M2FNUZ, Kind.E2M1)
)

_BY_DTYPE = {
    "float16": F16,
    "bfloat16": BF16,
    "float32": F32,
    "float64": F64,
    "bool": BOOL,
    "int8": I8,
    "int16": I16,
    "int32": I32,
    "int64": I64,
    "uint8": U8,
    "uint16": U16,
    "uint32": U32,
    "uint64": U64,
}


def of_dtype(dtype: np.dtype[np.generic] | type) -> Type:
    """Return the type of one element of an array of `dtype`; raises KeyError for one that kernels do not compute with."""
    return _BY_DTYPE[np.dtype(dtype).name]


def literal(kind: Type, number: float) -> str:
    """Return `number` as LLVM writes a constant of type `kind`, in every lane."""
    text = _scalar_literal(kind, number)
    return text if kind.lanes == 1 else f"splat ({kind.element} {text})"


def _scalar_literal(kind: Type, number: float) -> str:
    if kind.kind is Kind.BOOL:
        return "true" if number else "false"
    if kind.kind is Kind.POINTER:
        return "null"
    if not kind.is_float:
        return str(int(number))
    return _FLOAT_LITERALS[kind.scalar](number)


def _double_text(number: float) -> str:
    return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"


def _float_text(number: float) -> str:
    with np.errstate(over="ignore"):
        return _double_text(float(np.float32(number)))


def _half_text(number: float) -> str:
    with np.errstate(over="ignore"):
        return str(int(np.float16(number).view(np.uint16)))


def _bfloat_text(number: float) -> str:
    """Return the bits of the bfloat16 nearest to `number`, ties to even."""
    bits = int(np.float32(number).view(np.uint32))
    if np.isnan(number):
        return str(bits >> 16 & 0x8000 | 0x7FC0)
    return str((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)


_FLOAT_LITERALS = {F64: _double_text, F32: _float_text, F16: _half_text, BF16: _bfloat_text}
