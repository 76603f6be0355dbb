"""Write products of tensors as matrix products.

    Einsum(a, b) {"bihd,bjhd->bhij"}       ->      MatMul(Transpose(a), Transpose(b))
    Einsum(x, w) {"ibh,hnd->ibnd"}         ->      Reshape(MatMul(x, Reshape(w)))
    Einsum(x) {"ijbn->bnij"}               ->      Transpose(x)

Indices of both operands and the result count batches, those of both operands alone are summed over, those of one operand and the
result count rows or columns. The operands are transposed to (batches, rows, summed) and (batches, summed, columns), where each kind
but the batches becomes one dimension, and the product is brought back to the order of the result. Kernels of matrix products run it
then, and rules that look for products find it.

Left alone:
    three operands and more; one operand that is more than transposed
    an index that is repeated in an operand, or summed over in one operand alone; nothing to sum over; no rows or no columns
    an index whose sizes are known to differ, which broadcasts
    dimensions that are to be joined or parted and of which too many are not known
    integers of less than 32 bits, whose products are left to the operator
"""

from __future__ import annotations

import math
import string
from collections.abc import Sequence

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import DataType
from sardonyx.ir import Dim, Value
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import standard
from sardonyx.optimize.terms import Term

__all__ = ["EXPAND_EINSUM"]

_INTEGERS = (DataType.INT32, DataType.INT64, DataType.UINT32, DataType.UINT64)
_KINDS = (DataType.BFLOAT16, DataType.FLOAT16, DataType.FLOAT, DataType.DOUBLE, *_INTEGERS)


@dataclasses.dataclass(frozen=True, slots=True)
class _Equation:
    """The indices of operands and result, a letter each, and how many each counts."""

    operands: tuple[str, ...]
    result: str
    sizes: dict[str, Dim]

    def kept(self, *, left: bool, right: bool) -> str:
        """Return the indices of the result that are in these of the two operands."""
        one, other = self.operands
        return "".join(index for index in self.result if ((index in one), (index in other)) == (left, right))


@dataclasses.dataclass(frozen=True, slots=True)
class _Move:
    """What is done to a value: a transpose, a Reshape."""

    perm: list[int]
    """The permutation."""
    shape: list[int] | None = None
    """As a Reshape says it; None where there is none."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Plan:
    """What is done to the operands, the left of the product first, and to the product: its Reshape comes before its transpose."""

    operands: tuple[_Move, ...]
    product: _Move | None = None
    is_transposed: bool = False
    """Whether the second operand is the left one."""


def _pattern(op: PatternBuilder, a: Term) -> Term:
    return op.Einsum(a, op.optional("b"))


def _check(match: Match) -> str | _Plan:
    b = match.get("b")
    values = [match["a"]] if b is None else [match["a"], b]
    if any(value.shape is None or value.dtype not in _KINDS for value in values):
        return "the operands are not of a type with products, and of known rank"
    equation = _read(match.root.text("equation", "").replace(" ", ""), values)
    if isinstance(equation, str):
        return equation
    if len(values) == 2:
        return _plan(equation)
    (indices,) = equation.operands
    is_transpose = sorted(indices) == sorted(equation.result)
    return _Plan((_Move(_order(indices, equation.result)),)) if is_transpose else "it is more than a transpose"


def _read(text: str, values: Sequence[Value]) -> str | _Equation:
    terms, arrow, result = text.partition("->")
    parts = terms.split(",")
    if not arrow or len(parts) != len(values):
        return f"{text} has no result, or other operands than {len(values)}"
    hidden = {len(value.shape or ()) - len(part) + 3 for part, value in zip(parts, values, strict=True) if "..." in part}
    if len(hidden) > 1:
        return f"what {text} leaves out has different ranks"
    free = [letter for letter in string.ascii_letters if letter not in text]
    operands = tuple(part.replace("...", "".join(free[: max(hidden, default=0)])) for part in parts)
    result = result.replace("...", "".join(free[: max(hidden, default=0)]))
    if any(len(set(indices)) != len(indices) for indices in operands) or not set(result) <= set("".join(operands)):
        return f"{text} repeats an index of an operand"
    sizes: dict[str, Dim] = {}
    for indices, value in zip(operands, values, strict=True):
        for index, dim in zip(indices, value.shape or (), strict=True):
            known = sizes.setdefault(index, dim)
            if isinstance(dim, int) and isinstance(known, int) and dim != known:
                return f"{index} of {text} counts {known} and {dim}"
            sizes[index] = dim if isinstance(dim, int) else known
    return _Equation(operands, result, sizes)


def _plan(equation: _Equation) -> str | _Plan:
    batches = equation.kept(left=True, right=True)
    rows, columns = equation.kept(left=True, right=False), equation.kept(left=False, right=True)
    is_transposed = equation.result == batches + columns + rows
    left, right = equation.operands[::-1] if is_transposed else equation.operands
    if is_transposed:
        rows, columns = columns, rows
    summed = "".join(index for index in left if index in right and index not in equation.result)
    if {*left, *right} - {*batches, *rows, *columns, *summed} or not rows or not summed or not columns:
        return "it sums over one operand alone, or is no product of rows and columns"
    outer, joined = (batches, [rows, summed]) if batches else (rows, [summed])
    shapes = [
        _shape(equation, outer, joined, joined),
        _shape(equation, batches, [summed, columns], [summed, columns]),
        _shape(equation, outer, [rows, columns] if batches else [columns], [*(rows if batches else ""), *columns]),
    ]
    if [] in shapes:
        return "dimensions that are to be joined or parted are not known"
    orders = [_order(left, batches + rows + summed), _order(right, batches + summed + columns)]
    moves = tuple(_Move(order, shape) for order, shape in zip(orders, shapes, strict=False))
    return _Plan(moves, _Move(_order(batches + rows + columns, equation.result), shapes[2]), is_transposed)


def _order(before: str, after: str) -> list[int]:
    return [before.index(index) for index in after]


def _shape(equation: _Equation, outer: str, groups: list[str], wanted: list[str]) -> list[int] | None:
    """Return the shape of `outer` and `wanted`.

    None where no group of indices is joined or parted, empty where it cannot be said.
    """
    if all(len(group) == 1 for group in groups):
        return None
    sizes = [_size([equation.sizes[index] for index in indices]) for indices in wanted]
    return [0] * len(outer) + sizes if sizes.count(-1) <= 1 and 0 not in sizes else []


def _size(dims: Sequence[Dim]) -> int:
    """Return the product of dimensions; -1 where a run shows it."""
    known = [dim for dim in dims if isinstance(dim, int)]
    return math.prod(known) if len(known) == len(dims) else -1


def _replace(op: Builder, match: Match, plan: _Plan) -> Value:
    b = match.get("b")
    values = [match["a"]] if b is None else [match["a"], b]
    moved = [
        _reshaped(op, _transposed(op, value, move.perm), move.shape)
        for value, move in zip(values[::-1] if plan.is_transposed else values, plan.operands, strict=True)
    ]
    if plan.product is None:
        return moved[0]
    return _transposed(op, _reshaped(op, op.MatMul(*moved), plan.product.shape), plan.product.perm)


def _transposed(op: Builder, value: Value, perm: list[int]) -> Value:
    return value if perm == sorted(perm) else op.Transpose(value, perm=perm)


def _reshaped(op: Builder, value: Value, shape: list[int] | None) -> Value:
    return value if shape is None else op.Reshape(value, shape)


EXPAND_EINSUM = Rule("expand_einsum", _pattern, _replace, _check, takes_apart=standard("Einsum"), takes_legal_apart=True)
