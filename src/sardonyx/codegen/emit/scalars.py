"""Numbers that a kernel gets with each call, so that expressions which differ by numbers only are one kernel.

scaled = argument(0, F32) * scalar(0.0473, F32)
code, numbers = lift_scalars(scaled)         argument(0) * parameter(0), and the number as a word
KernelCall(…, scalars=numbers)               which the kernel finds before its parameters
"""

from __future__ import annotations

import struct

from sardonyx.codegen.emit.expr import ElementExpr, Number, rebuild
from sardonyx.codegen.emit.types import F32, F64, Type

__all__ = ["lift_scalars", "scalar", "scalar_word"]

_BYTES = 8


def scalar(value: Number, kind: Type) -> ElementExpr:
    """Return a number of type `kind` that is data of a call, and no part of a kernel's code."""
    return ElementExpr("scalar", kind, (), value)


def lift_scalars(expr: ElementExpr) -> tuple[ElementExpr, tuple[int, ...]]:
    """Return the expression with parameter i in the place of its i-th different scalar, and the words of these.

    Scalars are equal where type and word are: a scale that is used twice is one parameter.
    """
    places: dict[tuple[Type, int], int] = {}

    def replace(node: ElementExpr) -> ElementExpr:
        if node.primitive != "scalar":
            return node
        index = places.setdefault((node.type, scalar_word(node.value, node.type)), len(places))
        return ElementExpr("parameter", node.type, (), index)

    return rebuild(expr, replace), tuple(word for _, word in places)


def scalar_word(value: Number, kind: Type) -> int:
    """Return a number as a word of 64 bits, in whose first bytes it lies as an element of type `kind` does in memory."""
    if kind in (F32, F64):
        packed = struct.pack("<f" if kind == F32 else "<d", value)
        return int.from_bytes(packed.ljust(_BYTES, b"\0"), "little", signed=True)
    return int(value)
