"""Chains from 8 bits to 8 bits as tables: what all 256 bytes become is computed first, and then looked up for each element.

    DequantizeLinear -> Gelu -> QuantizeLinear           y = table[x]

A table holds what the chain's own kernel makes of each byte, so that results are the same to the last bit, scales that a run
computes included. Of few elements the chain is computed as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.expr import ElementExpr, number
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.kernels.quantized.byte_table import has_table_registers, write_byte_table
from sardonyx.codegen.target import Target
from sardonyx.dtypes import DataType
from sardonyx.ir import Node, Value
from sardonyx.providers.cpu.expressions import ELEMENTWISE, scalar_of
from sardonyx.providers.cpu.fuse import LONGEST_TAIL, Member
from sardonyx.providers.cpu.steps import Buffer

__all__ = ["LEAST_ELEMENTS", "ByteTableKernel", "is_costly", "looked_up", "starts_table"]

LEAST_ELEMENTS = 1024
"""Of fewer elements a table costs more than it saves."""

_BYTES = frozenset((DataType.INT8, DataType.UINT8))
_COSTLY = frozenset(
    (
        "acos acosh asin asinh atan atanh cos cosh erf exp expm1 gelu gelu_tanh log log1p power sigmoid sin sinh softplus tan tanh"
    ).split()
)
_MANY_STEPS = 24


@dataclasses.dataclass(frozen=True, slots=True)
class ByteTableKernel:
    """A table of bytes, looked up."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"byte_table_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_byte_table(module, symbol)


def looked_up(target: Target, expr: ElementExpr, reads: Sequence[Buffer], result: Buffer) -> int | None:
    """Return which of the operands is looked up, or None where elements are computed one by one.

    It is the only one of more than one element, and of 8 bits, as the result is. Where bytes are looked up one by one the chain
    must be worth it.
    """
    wide = [index for index, buffer in enumerate(reads) if any(dim != 1 for dim in buffer.shape)]
    if len(wide) != 1 or result.dtype not in _BYTES or reads[wide[0]].dtype not in _BYTES:
        return None
    if reads[wide[0]].shape != result.shape or not (is_costly(expr) or (has_table_registers(target) and _has_floats(expr))):
        return None
    return wide[0]


def is_costly(expr: ElementExpr) -> bool:
    """Return whether an element takes longer to compute than to load from a table."""
    steps = number([expr])[0]
    return len(steps) >= _MANY_STEPS or any(step.primitive in _COSTLY for step in steps)


def _has_floats(expr: ElementExpr) -> bool:
    return any(step.type.is_float for step in number([expr])[0])


def starts_table(member: Member, value: Value) -> bool:
    """Return whether a costly chain from 8 bits to 8 bits, which nobody reads on the way, begins with a node that reads `value`.

    It is left to a table rather than computed in the store of what makes `value`.
    """
    node, read, costly = member.node, value, False
    for _ in range(LONGEST_TAIL):
        made = node.outputs[0]
        if any(
            other is not read and scalar_of(node, index) is None for index, other in enumerate(node.inputs) if other is not None
        ):
            return False
        costly = costly or node.op_type in _COSTLY_OPERATORS
        if made.dtype in _BYTES:
            return costly and value.dtype in _BYTES
        users = [user for user, _ in made.uses]
        if len(users) != 1 or not isinstance(users[0], Node) or users[0].op_type not in ELEMENTWISE:
            return False
        node, read = users[0], made
    return False


_COSTLY_OPERATORS = frozenset(
    "Celu Cos Cosh Elu Erf Exp Gelu Log Mish QLinearSigmoid Selu Sigmoid Sin Sinh Softplus Swish Tan Tanh".split()
)
