"""Multiply integer matrices.

    Q(MatMul(DQ(a), DQ(b)))        ->      QLinearMatMul(a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero)
    MatMul(DQ(a), DQ(b))           ->      com.microsoft.MatMulIntegerToFloat(a, b, a_scale, b_scale, a_zero, b_zero)

The sums are exact; a quantized result may differ by one step, as it is rounded once.

Left alone:
    other types than int8 and uint8, and a or y with scales by axis
    scales of b that do not go by column, or of a stack of matrices
    MatMul that has users besides Q, for the first form; MatMul that only a Q reads, for the second
"""

from __future__ import annotations

from sardonyx.ir import Node, Value
from sardonyx.optimize.contract import Level
from sardonyx.optimize.helpers.quantized import (
    EIGHT_BITS,
    NO_QUANTIZATION,
    bytes_reason,
    dequantized,
    quantized,
    scale_of,
    triple,
    zero_point_of,
)
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import microsoft, standard
from sardonyx.optimize.terms import Term

__all__ = ["FUSE_QUANTIZED_MATMUL", "FUSE_QUANTIZED_MATMUL_TO_FLOAT"]


def _product(op: PatternBuilder, a: Term, b: Term) -> Term:
    return op.MatMul(dequantized(op, a, "a"), dequantized(op, b, "b"))


def _quantized_product(op: PatternBuilder, a: Term, b: Term) -> Term:
    return quantized(op, _product(op, a, b), "y")


def _operands_reason(match: Match) -> str | None:
    reason = bytes_reason(match, "a")
    if reason is not None:
        return reason
    scale, shape = scale_of(match.node("b/dequantize")), match["b"].shape
    if scale is None or scale.dtype not in EIGHT_BITS:
        return "b has no scales of float32, or is not of 8 bits"
    if scale.is_single:
        return None
    if shape is None or len(shape) != 2 or scale.axis not in (1, -1):
        return f"b of shape {shape} has scales along axis {scale.axis}, expected those of columns"
    return None


def _check_quantized(match: Match) -> str | None:
    return _operands_reason(match) or bytes_reason(match, "y")


def _replace_quantized(op: Builder, match: Match, learned: None) -> Value:
    operands = (*triple(op, match.node("a/dequantize")), *triple(op, match.node("b/dequantize")))
    return op.QLinearMatMul(*operands, match.root.inputs[1], zero_point_of(op, match.root))


def _check_float(match: Match) -> str | None:
    users = [user for user, _ in match.outputs[0].uses]
    if users and all(isinstance(user, Node) and user.op_type == "QuantizeLinear" for user in users):
        return "the product is quantized"
    return _operands_reason(match)


def _replace_float(op: Builder, match: Match, learned: None) -> Value:
    a, a_scale, a_zero = triple(op, match.node("a/dequantize"))
    b, b_scale, b_zero = triple(op, match.node("b/dequantize"))
    return op.MatMulIntegerToFloat(a, b, a_scale, b_scale, a_zero, b_zero, _domain="com.microsoft")


FUSE_QUANTIZED_MATMUL = Rule(
    "fuse_quantized_matmul",
    _quantized_product,
    _replace_quantized,
    _check_quantized,
    Level.EXTENDED,
    integer_steps=1,
    makes=standard("QLinearMatMul"),
    opt_out=NO_QUANTIZATION,
    aliases=("QDQSelectorActionTransformer",),
    summary="Replace a MatMul between DequantizeLinear and QuantizeLinear by QLinearMatMul.",
)
FUSE_QUANTIZED_MATMUL_TO_FLOAT = Rule(
    "fuse_quantized_matmul_to_float",
    _product,
    _replace_float,
    _check_float,
    Level.EXTENDED,
    makes=microsoft("MatMulIntegerToFloat"),
    opt_out=NO_QUANTIZATION,
    aliases=("QDQSelectorActionTransformer",),
    summary="Replace a MatMul of dequantized matrices by MatMulIntegerToFloat of com.microsoft.",
)
