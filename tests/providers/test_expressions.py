"""Which nodes are expressions, and how those of 16 bits are computed."""

from __future__ import annotations

import sardonyx
from sardonyx import expr
from sardonyx.codegen.emit.expr import argument
from sardonyx.codegen.emit.types import BF16, F16, F32
from sardonyx.custom_ops.catalog import Catalog
from sardonyx.ir import Node, Value
from sardonyx.ops.session_operators import session_operators
from sardonyx.providers.expressions import ElementwiseExpression, expression_of


@sardonyx.expression_op("mine", "Double")
def double(x: expr.ElementExpr) -> expr.ElementExpr:
    """Double."""
    return x + x


def test_a_node_is_an_expression_where_the_session_says_so() -> None:
    """Outside of its making there is none."""
    node = Node("Double", [Value("x")], domain="mine", version=1)
    assert expression_of(node) is None
    with session_operators(Catalog(double.definitions)):
        assert isinstance(expression_of(node), ElementwiseExpression)


def test_elements_of_16_bits_are_computed_with_in_float32() -> None:
    """And rounded once."""
    expression = double.definition.expression
    assert expression is not None
    for kind in (F16, BF16):
        made = expression.apply({}, [argument(0, kind)])
        assert (made.primitive, made.type, made.operands[0].type) == ("cast", kind, F32)
