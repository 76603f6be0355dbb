"""Multiply integer matrices and add a bias.

    Q(Gemm(DQ(a), DQ(b), DQ(c)))           ->      com.microsoft.QGemm(a, …, b, …, c, y_scale, y_zero)
    Gemm(DQ(a), DQ(b), DQ(c))              ->      com.microsoft.QGemm(a, …, b, …, c)

with or without c. The sums are exact; a quantized result may differ by one step, as it is rounded once.

Left alone:
    other types than int8 and uint8, and a or y with scales by axis
    scales of b that do not go by column of the product
    c that is not int32 in steps of alpha * a_scale * b_scale with zero point 0, or is used with beta other than 1
    Gemm that only a Q reads, for the second form
"""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.ir import Node, Value
from sardonyx.ops.views.matmul import Gemm
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
from sardonyx.optimize.target import microsoft
from sardonyx.optimize.terms import Term

__all__ = ["FUSE_QUANTIZED_GEMM", "FUSE_QUANTIZED_GEMM_TO_FLOAT"]


def _product(op: PatternBuilder, a: Term, b: Term) -> Term:
    return op.Gemm(dequantized(op, a, "a"), dequantized(op, b, "b"), op.any_of(dequantized(op, "c", "c"), None), _as="gemm")


def _quantized_product(op: PatternBuilder, a: Term, b: Term) -> Term:
    return quantized(op, _product(op, a, b), "y")


def _operands_reason(match: Match) -> str | None:
    reason, gemm = bytes_reason(match, "a"), match.node("gemm")
    a, b = scale_of(match.node("a/dequantize")), scale_of(match.node("b/dequantize"))
    if reason is not None or a is None:
        return reason or "a has no scale"
    if b is None or b.dtype not in EIGHT_BITS:
        return "b has no scales of float32, or is not of 8 bits"
    column = Gemm.of(gemm).column_axis
    if not b.is_single and b.axis % 2 != column:
        return f"b has scales along axis {b.axis}, expected {column}"
    if match.get("c") is None:
        return None
    c, view = scale_of(match.node("c/dequantize")), Gemm.of(gemm)
    if c is None or c.dtype is not DataType.INT32 or c.zero.any() or view.is_scaled:
        return "c is not int32 with zero point 0, or is scaled"
    return None if np.allclose(c.scale, a.scale * b.scale, rtol=1e-4, atol=0) else "c is not in steps of a_scale * b_scale"


def _check_quantized(match: Match) -> str | None:
    return _operands_reason(match) or bytes_reason(match, "y")


def _check_float(match: Match) -> str | None:
    users = [user for user, _ in match.outputs[0].uses]
    if users and all(isinstance(user, Node) and user.op_type == "QuantizeLinear" for user in users):
        return "the product is quantized"
    return _operands_reason(match)


def _operands(op: Builder, match: Match) -> tuple[Value | None, ...]:
    return (*triple(op, match.node("a/dequantize")), *triple(op, match.node("b/dequantize")), match.get("c"))


def _made(op: Builder, match: Match, *inputs: Value | None) -> Value:
    gemm = match.node("gemm")
    kept = {name: attribute for name, attribute in gemm.attributes.items() if name in ("alpha", "transA", "transB")}
    return op.QGemm(*inputs, _domain="com.microsoft", _attributes=kept)


def _replace_quantized(op: Builder, match: Match, learned: None) -> Value:
    return _made(op, match, *_operands(op, match), match.root.inputs[1], zero_point_of(op, match.root))


def _replace_float(op: Builder, match: Match, learned: None) -> Value:
    operands = _operands(op, match)
    return _made(op, match, *(operands if operands[-1] is not None else operands[:-1]))


FUSE_QUANTIZED_GEMM = Rule(
    "fuse_quantized_gemm",
    _quantized_product,
    _replace_quantized,
    _check_quantized,
    Level.EXTENDED,
    integer_steps=1,
    makes=microsoft("QGemm"),
    opt_out=NO_QUANTIZATION,
    aliases=("QDQSelectorActionTransformer",),
    summary="Replace a Gemm between DequantizeLinear and QuantizeLinear by QGemm of com.microsoft.",
)
FUSE_QUANTIZED_GEMM_TO_FLOAT = Rule(
    "fuse_quantized_gemm_to_float",
    _product,
    _replace_float,
    _check_float,
    Level.EXTENDED,
    makes=microsoft("QGemm"),
    opt_out=NO_QUANTIZATION,
    aliases=("QDQSelectorActionTransformer",),
    summary="Replace a Gemm of dequantized matrices by QGemm of com.microsoft with floats as its result.",
)
