"""Custom operators whose meaning is an expression of one element: found here by every provider that computes expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.expr import ElementExpr, argument
from sardonyx.codegen.emit.row_expr import folds_rows
from sardonyx.codegen.emit.types import BF16, BOOL, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64, Type, of_dtype
from sardonyx.dtypes import DataType
from sardonyx.ir import Attribute, Node
from sardonyx.ops.session_operators import find_session_operator

__all__ = ["DATA_TYPES", "ElementwiseExpression", "expression_of"]

DATA_TYPES: Mapping[Type, DataType] = {
    F32: DataType.FLOAT,
    F64: DataType.DOUBLE,
    F16: DataType.FLOAT16,
    BF16: DataType.BFLOAT16,
    BOOL: DataType.BOOL,
    I8: DataType.INT8,
    I16: DataType.INT16,
    I32: DataType.INT32,
    I64: DataType.INT64,
    U8: DataType.UINT8,
    U16: DataType.UINT16,
    U32: DataType.UINT32,
    U64: DataType.UINT64,
}
"""Type of one element of an expression -> that of a tensor that holds it: all that expressions compute with."""


@dataclasses.dataclass(frozen=True, slots=True)
class ElementwiseExpression:
    """What an operator computes for one element of its output, to which its inputs are broadcast; it may fold the element's row."""

    build: Callable[[Mapping[str, Attribute], Sequence[ElementExpr | None]], ElementExpr]
    """Makes the expression from a node's attributes and from the inputs' elements; raises TypeError for other types."""

    def apply(self, attributes: Mapping[str, Attribute], operands: Sequence[ElementExpr | None]) -> ElementExpr:
        """Return the element of the output; operands of 16 bits are computed with in float32, and the result is rounded once."""
        made = self.build(
            attributes, [operand.to(F32) if operand is not None and operand.type.is_narrow else operand for operand in operands]
        )
        narrow = next((operand.type for operand in operands if operand is not None and operand.type.is_narrow), None)
        return made.to(narrow) if narrow is not None and made.type == F32 else made

    def folds_rows(self, node: Node) -> bool:
        """Return whether what it computes for a node folds rows; False where the types of its inputs are not known."""
        kinds = [None if value is None else value.dtype for value in node.inputs]
        try:
            operands = [None if kind is None else argument(index, of_dtype(kind.numpy)) for index, kind in enumerate(kinds)]
            return folds_rows(self.apply(node.attributes, operands))
        except (KeyError, TypeError):
            return False


def expression_of(node: Node) -> ElementwiseExpression | None:
    """Return the expression of a node's operator where the session being built knows it as one, else None."""
    found = find_session_operator(node.domain, node.op_type, node.version)
    expression = None if found is None else found.expression
    return expression if isinstance(expression, ElementwiseExpression) else None
