"""Operators written as expressions of one element and its row, compiled and fused with their neighbours like built-in ones.

@sardonyx.expression_op("my.domain", "MyGelu")
def my_gelu(x, *, scale=0.5):
    return x * scale * (1 + expr.erf(x * 0.70710678))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from sardonyx import expr
from sardonyx.codegen.emit.expr import ElementExpr, argument, number
from sardonyx.codegen.emit.row_expr import folds_rows
from sardonyx.codegen.emit.types import Kind, Type, of_dtype
from sardonyx.custom_ops.definition import NEWEST, Arity, OperatorDefinition, Parameter
from sardonyx.custom_ops.function import PythonOperator, check_names, label_of
from sardonyx.custom_ops.signature import Signature, decode, name_of, read_attributes, read_inputs
from sardonyx.dtypes import DataType
from sardonyx.errors import Fail, InvalidArgument, InvalidGraph, SardonyxError, describe
from sardonyx.forks import without_fork
from sardonyx.ir import Attribute, Node
from sardonyx.ops.fact import UNKNOWN, Fact, tensor
from sardonyx.providers.expressions import DATA_TYPES, ElementwiseExpression

__all__ = ["expression_op"]


def expression_op(
    domain: str, name: str, *, since: int = 1, until: int = NEWEST
) -> Callable[[Callable[..., ElementExpr]], PythonOperator[..., ElementExpr]]:
    """Make an operator of the decorated function of `sardonyx.expr` values, which says what one element of the output is.

    It may fold the row of the element, along the last axis: `expr.row_sum`, `row_mean`, `row_max`, `row_min`. Inputs are broadcast
    to one another as NumPy does. Parameters before `*` are inputs, those after it attributes with their defaults. The CPU provider
    compiles the expression, in one loop with the element-wise nodes around it, or into the product or convolution before it; one
    that folds rows, in a kernel with the element-wise nodes after it. The reference provider computes it with NumPy.

    Args:
        domain: the operator's domain, such as "my.domain"; with that of a built-in operator ("" for ai.onnx) it replaces this one
            for the types that the expression computes with.
        name: the operator.
        since: the first version of the domain in which the operator exists.
        until: the last.

    Raises:
        InvalidArgument: the function has no inputs, or is none of these.
    """

    def decorate(function: Callable[..., ElementExpr]) -> PythonOperator[..., ElementExpr]:
        where = check_names(domain, name, since, until)
        label = label_of(where, name)
        signature = Signature(read_inputs(function), read_attributes(function))
        if not signature.inputs:
            raise InvalidArgument(f"{label} has no inputs; an expression is of the elements of some")
        expression = _Expression(label, function, signature)
        parameters = tuple(
            Parameter(DataType.UNDEFINED, item.arity, is_homogeneous=False, min_arity=int(index == 0))
            for index, item in enumerate(signature.inputs)
        )
        definition = OperatorDefinition(
            where,
            name,
            parameters,
            (Parameter(DataType.UNDEFINED, Arity.REQUIRED),),
            None,
            since,
            until,
            expression.infer,
            f"{function.__module__}.{name_of(function)}",
            ElementwiseExpression(expression.build),
        )
        return PythonOperator(function, definition)

    return decorate


_ELEMENT = "ElementExpr"
_OPERATIONS = (
    "; an element is computed with by Python's + - * / ** abs() < <= > >= & | ~, by x.eq(y), x.ne(y), x.to(type), and by the "
    f"functions of sardonyx.expr: {', '.join(name for name in expr.__all__ if name.islower())}"
)


def _check_numbers(made: ElementExpr) -> None:
    """Raise TypeError where a number that stands in an expression is none of the type beside it, which would change it."""
    for step in number([made])[0]:
        value: object = step.expr.value  # what a user's function gave, whatever its annotation says
        if step.primitive != "constant":
            continue
        if isinstance(value, np.ndarray) and value.ndim:
            raise TypeError(f"an array of shape {list(value.shape)} stands in it; an expression takes numbers: make it an input")
        if not _fits(value, step.type):
            raise TypeError(
                f"{value!r:.60} is no number of type {DATA_TYPES[step.type]}, which the expression beside it has; "
                "convert that first, as in x.to(expr.F32)"
            )


def _fits(value: object, kind: Type) -> bool:
    if not isinstance(value, (int, float, np.number, np.bool_, np.ndarray)):
        return False
    if kind.kind not in (Kind.SIGNED, Kind.UNSIGNED):
        return True
    limits = np.iinfo(DATA_TYPES[kind].numpy)
    return bool(limits.min <= value <= limits.max and int(value) == value)


class _Expression:
    """A function of expressions, with what messages say of it."""

    def __init__(self, label: str, function: Callable[..., ElementExpr], signature: Signature) -> None:
        self._label, self._function, self._signature = label, function, signature

    def build(self, attributes: Mapping[str, Attribute], operands: Sequence[ElementExpr | None]) -> ElementExpr:
        """Call the function; raises TypeError where it does not compute with these types."""
        given = decode(attributes, self._signature.attributes)
        try:
            made: object = self._function(*operands, **given)  # a user's function may return anything
        except SardonyxError:
            raise
        except TypeError as error:
            raise TypeError(f"{error}{_OPERATIONS if _ELEMENT in str(error) else ''}") from error
        except AttributeError as error:
            raise Fail(f"the expression of {self._label} failed: {describe(error)}{_OPERATIONS}") from error
        except Exception as error:
            raise Fail(f"the expression of {self._label} failed: {describe(error)}") from error
        if not isinstance(made, ElementExpr):
            what = f"{len(made)} values" if isinstance(made, tuple) else f"{made!r:.100}"
            hint = "and compare by x.eq(y)" if isinstance(made, bool) else "such as x * 2 or sardonyx.expr.exp(x)"
            raise Fail(f"the expression of {self._label} is {what}; return one expression, {hint}")
        _check_numbers(made)
        return made

    def infer(self, node: Node, facts: Sequence[Fact | None]) -> list[Fact]:
        """Give the output the type of the expression and the shape that the inputs broadcast to."""
        if any(fact is not None and fact.dtype is None for fact in facts):
            return [UNKNOWN]
        operands = [None if fact is None else argument(index, self._type(fact, index)) for index, fact in enumerate(facts)]
        try:
            made = ElementwiseExpression(self.build).apply(node.attributes, operands)
        except TypeError as error:
            raise InvalidGraph(f"{self._label}: {error}") from error
        with without_fork():
            from sardonyx.ops.shapes.broadcast import broadcast  # imports every shape function

        shape = broadcast(fact.shape for fact in facts if fact is not None)
        if shape == () and folds_rows(made):
            raise InvalidGraph(f"{self._label} folds rows, but its inputs are scalars; expected tensors of rank 1 or more")
        return [tensor(DATA_TYPES[made.type], shape)]

    def _type(self, fact: Fact, index: int) -> Type:
        if fact.dtype is None or fact.dtype not in DATA_TYPES.values():
            raise InvalidGraph(f"{self._label}: input {index} has elements of {fact.dtype}, which expressions do not compute with")
        return of_dtype(fact.dtype.numpy)
