"""Numbers that a kernel gets with each call, so that expressions which differ by numbers only are one kernel.

scaled = argument(0, F32) * scalar(0.0473, F32)
(code,), numbers = lift_scalars(scaled)      argument(0) * parameter(0), and the number as a word
KernelCall(…, scalars=numbers)               which the kernel finds before its parameters
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable, Mapping

import numpy as np

from sardonyx.codegen.emit.expr import ElementExpr, Number, has_primitive, rebuild
from sardonyx.codegen.emit.types import F32, F64, Type

__all__ = ["lift_scalars", "scalar", "scalar_word"]

_BYTES = 8


def scalar(value: Number, kind: Type) -> ElementExpr:
    """Return a number of type `kind` that is data of a call, and no part of a kernel's code."""
    return ElementExpr("scalar", kind, (), value)


def lift_scalars(*exprs: ElementExpr) -> tuple[tuple[ElementExpr, ...], tuple[int, ...]]:
    """Return the expressions of a kernel with parameter i in the place of their i-th different scalar, and the words of these.

    Scalars are equal where type and word are: a scale that is used twice is one parameter.
    """
    places: dict[tuple[Type, int], int] = {}

    def replace(node: ElementExpr) -> ElementExpr:
        if node.primitive != "scalar":
            return node
        index = places.setdefault((node.type, scalar_word(node.value, node.type)), len(places))
        return ElementExpr("parameter", node.type, (), index)

    lifted = tuple(rebuild(rebuild(expr, _computed), replace) if has_primitive(expr, "scalar") else expr for expr in exprs)
    return lifted, tuple(word for _, word in places)


def _computed(node: ElementExpr) -> ElementExpr:
    """Return a float32 that is computed of scalars, and of constants beside them, as a scalar; any other node as it is."""
    leaves = {operand.primitive for operand in node.operands}
    if node.type != F32 or "scalar" not in leaves or leaves - {"scalar", "constant"} or node.primitive not in _COMPUTED:
        return node
    with np.errstate(all="ignore"):
        result = _COMPUTED[node.primitive](*(np.float32(operand.value) for operand in node.operands))
    return scalar(float(np.float32(result)), F32)


def _multiply_add(x: np.float32, y: np.float32, z: np.float32) -> np.float64:
    """Return x y + z, of which the product is exact."""
    return np.float64(x) * np.float64(y) + np.float64(z)


_COMPUTED: Mapping[str, Callable[..., np.floating]] = {
    "add": operator.add,
    "cast": lambda x: x,
    "div": operator.truediv,
    "mul": operator.mul,
    "multiply_add": _multiply_add,
    "neg": operator.neg,
    "sub": operator.sub,
}
"""What is computed of scalars."""


def scalar_word(value: Number, kind: Type) -> int:
    """Return a number as a word of 64 bits, in whose first bytes it lies as an element of type `kind` does in memory."""
    if kind in (F32, F64):
        packed = struct.pack("<f" if kind == F32 else "<d", value)
        return int.from_bytes(packed.ljust(_BYTES, b"\0"), "little", signed=True)
    return int(value)
