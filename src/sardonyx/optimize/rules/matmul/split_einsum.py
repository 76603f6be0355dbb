"""Write what is no product of matrices among the tensor products as sums, transposes and element-wise products.

    Einsum(a) {"ij->i"}                       ->      ReduceSum(a, 1)
    Einsum(a, b) {"ijl,jk->ik"}               ->      Einsum(ReduceSum(a, 2), b) {"ij,jk->ik"}
    Einsum(a, b) {"bi,bi->b"}                 ->      ReduceSum(Mul(a, b), 1)
    Einsum(a, b) {"i,j->ij"}                  ->      Mul(Unsqueeze(a, 1), Unsqueeze(b, 0))
    Einsum(a, b, c) {"ij,jk,kl->il"}          ->      Einsum(Einsum(a, b) {"ij,jk->ik"}, c) {"ik,kl->il"}

`expand_einsum` makes products of matrices of what remains, and providers have kernels for the rest. 16-bit types are cast to float
before and rounded once behind.

Left alone:
    two operands with rows, columns and indices that are summed over: products of matrices; one operand that is only transposed
    an equation without a result, with dots, or with an index that is repeated in an operand
    an index whose sizes are known to differ, which broadcasts
    integers of less than 32 bits, whose sums reductions do not have
"""

from __future__ import annotations

import dataclasses

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.ir import Dim, Value
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import standard
from sardonyx.optimize.terms import Term

__all__ = ["SPLIT_EINSUM"]

_HALVES = (DataType.FLOAT16, DataType.BFLOAT16)
_KINDS = (DataType.FLOAT, DataType.DOUBLE, DataType.INT32, DataType.INT64, DataType.UINT32, DataType.UINT64, *_HALVES)
_AXES_ARE_INPUTS = 13
"""From this version of ai.onnx on ReduceSum and Unsqueeze have their axes as an input."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Equation:
    """The indices of operands and result, a letter each."""

    operands: tuple[str, ...]
    result: str


def _pattern(op: PatternBuilder, a: Term) -> Term:
    return op.Einsum(a, op.rest("operands"))


def _check(match: Match) -> str | _Equation:
    values = _operands(match)
    text, arrow, result = match.root.text("equation", "").replace(" ", "").partition("->")
    parts = tuple(text.split(","))
    if not arrow or "." in text + result or len(parts) != len(values):
        return "it has no result, leaves out indices, or has other operands"
    if any(value.dtype not in _KINDS or value.shape is None for value in values):
        return "the operands are not of a type with sums, and of known rank"
    if any(len(set(part)) != len(part) for part in (*parts, result)) or not set(result) <= set("".join(parts)):
        return "an index is repeated"
    sizes: dict[str, Dim] = {}
    for part, value in zip(parts, values, strict=True):
        if len(part) != len(value.shape or ()):
            return f"{part} does not fit an operand of {len(value.shape or ())} dimensions"
        for index, dim in zip(part, value.shape or (), strict=True):
            known = sizes.setdefault(index, dim)
            if isinstance(known, int) and isinstance(dim, int) and known != dim:
                return f"{index} counts {known} and {dim}"
    equation = _Equation(parts, result)
    return "it is a product of matrices, or a transpose" if _is_plain(equation) else equation


def _operands(match: Match) -> list[Value]:
    return [match["a"], *(value for value in match.rest("operands") if value is not None)]


def _is_plain(equation: _Equation) -> bool:
    """Return whether one operand is only transposed, or two are multiplied as matrices."""
    if len(equation.operands) == 1:
        return set(equation.operands[0]) == set(equation.result)
    if len(equation.operands) > 2:
        return False
    one, other = map(set, equation.operands)
    kept = set(equation.result)
    alone = (one ^ other) - kept
    return not alone and bool(one - other and other - one and (one & other) - kept)


def _replace(op: Builder, match: Match, equation: _Equation) -> Value:
    values = _operands(match)
    if values[0].dtype in _HALVES:
        wide = [op.Cast(value, to=int(DataType.FLOAT)) for value in values]
        product = op.Einsum(*wide, equation=f"{','.join(equation.operands)}->{equation.result}")
        return op.Cast(product, to=int(values[0].dtype))
    if len(values) > 2:
        one, other, *rest = equation.operands
        wanted = set(equation.result).union(*rest)
        inner = "".join(dict.fromkeys(index for index in one + other if index in wanted))
        product = op.Einsum(*values[:2], equation=f"{one},{other}->{inner}")
        return op.Einsum(product, *values[2:], equation=f"{','.join([inner, *rest])}->{equation.result}")
    if len(values) == 1:
        found, indices = _summed(op, values[0], equation.operands[0], set(equation.result))
        return _ordered(op, found, indices, equation.result)
    return _product(op, values, equation)


def _product(op: Builder, values: list[Value], equation: _Equation) -> Value:
    """Sum over what one operand has alone; multiply, matrices as such, and sum over what both have."""
    one, other = equation.operands
    left, ours = _summed(op, values[0], one, {*other, *equation.result})
    right, theirs = _summed(op, values[1], other, {*one, *equation.result})
    if _is_plain(_Equation((ours, theirs), equation.result)):
        return op.Einsum(left, right, equation=f"{ours},{theirs}->{equation.result}")
    both = equation.result + "".join(index for index in ours if index not in equation.result)
    product = op.Mul(_spread(op, left, ours, both), _spread(op, right, theirs, both))
    return _summed(op, product, both, set(equation.result))[0]


def _summed(op: Builder, value: Value, indices: str, kept: set[str]) -> tuple[Value, str]:
    """Return the sum over the indices that are not kept, and which are left."""
    axes = [place for place, index in enumerate(indices) if index not in kept]
    if not axes:
        return value, indices
    version = max(op.version(), _AXES_ARE_INPUTS)
    total = op.ReduceSum(value, np.array(axes, np.int64), keepdims=0, _version=version)
    return total, "".join(index for index in indices if index in kept)


def _spread(op: Builder, value: Value, indices: str, wanted: str) -> Value:
    """Return an operand in the order of `wanted`, with dimensions of 1 for the indices that it lacks."""
    found = _ordered(op, value, indices, "".join(index for index in wanted if index in indices))
    axes = [place for place, index in enumerate(wanted) if index not in indices]
    return op.Unsqueeze(found, np.array(axes, np.int64), _version=max(op.version(), _AXES_ARE_INPUTS)) if axes else found


def _ordered(op: Builder, value: Value, indices: str, wanted: str) -> Value:
    perm = [indices.index(index) for index in wanted]
    return value if perm == sorted(perm) else op.Transpose(value, perm=perm)


SPLIT_EINSUM = Rule("split_einsum", _pattern, _replace, _check, takes_apart=standard("Einsum"), takes_legal_apart=True)
