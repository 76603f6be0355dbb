"""Choose between integers.

    Q(Where(c, DQ(a), DQ(b)))              ->      com.microsoft.QLinearWhere(c, a, …, b, …, y_scale, y_zero)
    Where(c, DQ(a), 0.5)                   ->      Where(c, DQ(a), DQ(1)), in front of a Q; as well the other way round

The numbers are the same.

Left alone: other types than int8 and uint8; inputs and results of two types; scales by axis or block; Where that has other users;
for the second form, anything but a constant of one finite element.
"""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.ir import Value
from sardonyx.optimize.contract import Level
from sardonyx.optimize.helpers.quantized import (
    INTEGER_OPERATORS,
    NO_QUANTIZATION,
    bytes_reason,
    dequantized,
    quantized,
    triple,
    zero_point_of,
)
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import microsoft
from sardonyx.optimize.terms import Term

__all__ = ["FUSE_QUANTIZED_WHERE", "QUANTIZE_WHERE_SCALAR"]


def _pattern(op: PatternBuilder, c: Term, a: Term, b: Term) -> Term:
    return quantized(op, op.Where(c, dequantized(op, a, "a"), dequantized(op, b, "b")), "y")


def _check(match: Match) -> str | None:
    types = {match["a"].dtype, match["b"].dtype, match.outputs[0].dtype}
    return bytes_reason(match, "a", "b", "y") or (None if len(types) == 1 else "the tensors are of two types")


def _replace(op: Builder, match: Match, learned: None) -> Value:
    operands = (*triple(op, match.node("a/dequantize")), *triple(op, match.node("b/dequantize")))
    return op.QLinearWhere(match["c"], *operands, match.root.inputs[1], zero_point_of(op, match.root), _domain="com.microsoft")


FUSE_QUANTIZED_WHERE = Rule(
    "fuse_quantized_where",
    _pattern,
    _replace,
    _check,
    Level.EXTENDED,
    integer_steps=1,
    makes=microsoft("QLinearWhere"),
    opt_out=NO_QUANTIZATION,
    aliases=("QDQSelectorActionTransformer",),
    summary="Replace a Where between DequantizeLinear and QuantizeLinear by QLinearWhere of com.microsoft.",
)


def _with_scalar(op: PatternBuilder, c: Term, a: Term, number: Term) -> Term:
    known, other = op.constant("number"), dequantized(op, a, "a")
    return quantized(op, op.any_of(op.Where(c, other, known, _as="where"), op.Where(c, known, other, _as="where")), "y")


def _check_scalar(match: Match) -> str | float:
    reason, number = bytes_reason(match, "a", "y"), match.constant("number", 1)
    if reason is not None:
        return reason
    if number is None or number.dtype != np.float32 or not np.isfinite(number).all():
        return "the other side is no constant of one finite element"
    return float(number.reshape(()))


def _quantize_scalar(op: Builder, match: Match, number: float) -> Value:
    where, dtype = match.node("where"), match["a"].dtype or DataType.UINT8
    zero = 1 if number < 0 else 0
    integer = op.constant(np.full(len(match["number"].shape or ()) * (1,), number > 0, dtype.numpy))
    scale, version = np.float32(abs(number) or 1.0), match.node("a/dequantize").version
    made = op.DequantizeLinear(integer, scale, np.array(zero, dtype.numpy), _version=version)
    chosen = op.Where(*(made if value is match["number"] else value for value in where.inputs), _version=where.version)
    return op.QuantizeLinear(chosen, *match.root.inputs[1:], _attributes=match.root.attributes, _version=match.root.version)


QUANTIZE_WHERE_SCALAR = Rule(
    "quantize_where_scalar",
    _with_scalar,
    _quantize_scalar,
    _check_scalar,
    Level.EXTENDED,
    prepares=INTEGER_OPERATORS,
    opt_out=NO_QUANTIZATION,
    aliases=("WhereDummyDq",),
    summary="Quantize the constant number that a Where takes beside dequantized elements.",
)
