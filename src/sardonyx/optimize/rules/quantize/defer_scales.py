"""Multiply the integers themselves, as floats, and scale the sums.

    Q(f(DQ(a, a_scale), DQ(b, b_scale), DQ(c, a_scale * b_scale)), y_scale)
        ->      Q(f(DQ(a, 1), DQ(b, 1), DQ(c, 1)) * (a_scale * b_scale / y_scale), 1)

with f a MatMul, Gemm or Conv, with or without c. Integers of 8 bits are exact in floats, and so are their products and sums up to
2^24: the result is that of QLinearMatMul, QGemm or QLinearConv to the last bit, and not by chance a step beside it. Such a step is
little, but in deep models it grows.

Left alone:
    other types than int8 and uint8 of a, b and y; scales of a and y by axis, those of b along another axis, or by block
    c that is not int32 in steps of a_scale * b_scale, with zero point 0; Gemm with alpha or beta
    factors beyond float32; scales that are 1 already
    products that have other users
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sardonyx.dtypes import Array, DataType
from sardonyx.ir import Node, Value
from sardonyx.ops.views.matmul import Gemm
from sardonyx.optimize.edit import tensor_of
from sardonyx.optimize.helpers.quantized import (
    EIGHT_BITS,
    QUANTIZATION,
    Scale,
    bytes_reason,
    dequantized,
    quantized,
    scale_of,
)
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import OpKey
from sardonyx.optimize.terms import Term

__all__ = ["DEFER_SCALES"]


def _pattern(op: PatternBuilder, a: Term, b: Term) -> Term:
    left, right, bias = dequantized(op, a, "a"), dequantized(op, b, "b"), op.any_of(dequantized(op, "c", "c"), None)
    biased = (op.node(name, left, right, bias, _as="product") for name in ("Gemm", "Conv"))
    return quantized(op, op.any_of(op.MatMul(left, right, _as="product"), *biased), "y")


def _check(match: Match) -> str | Array:
    reason, product = bytes_reason(match, "a", "y"), match.node("product")
    if reason is not None:
        return reason
    a, b, y = (scale_of(match.node(name)) for name in ("a/dequantize", "b/dequantize", "y/quantize"))
    if a is None or b is None or y is None or b.dtype not in EIGHT_BITS or not _goes_by_channel(match, b):
        return "b has no scales of float32 that go by output channel, or is not of 8 bits"
    if Gemm.of(product).is_scaled:
        return "alpha or beta is not 1"
    if float(a.scale) == 1 and (b.scale == 1).all():
        return "the scales are 1 already"
    step = a.scale * b.scale
    if match.get("c") is not None:
        c = scale_of(match.node("c/dequantize"))
        if c is None or c.dtype is not DataType.INT32 or c.zero.any() or not np.allclose(c.scale, step, rtol=1e-4, atol=0):
            return "c is not int32 in steps of a_scale * b_scale"
    with np.errstate(all="ignore"):
        factor = np.asarray(a.scale.astype(np.float32) * b.scale.astype(np.float32) / y.scale.astype(np.float32), np.float32)
    usual = (factor > np.finfo(np.float32).tiny) & (factor < np.inf)
    return factor if usual.all() else f"the factor would be {factor}"


def _goes_by_channel(match: Match, scale: Scale) -> bool:
    """Return whether the scales of b are one, or one for each output channel of the product."""
    product, shape = match.node("product"), match["b"].shape
    if scale.is_single:
        return True
    if product.op_type == "Conv":
        return scale.axis == 0
    column = Gemm.of(product).column_axis
    return shape is not None and len(shape) == 2 and scale.axis % 2 == column


def _replace(op: Builder, match: Match, factor: Array) -> Value:
    product, names = match.node("product"), ("a", "b", "c") if match.get("c") is not None else ("a", "b")
    operands = [_integers(op, match.node(f"{name}/dequantize")) for name in names]
    made = op.node(product.op_type, *operands, _attributes=product.attributes, _version=product.version)
    spatial = len(match["b"].shape or ()) - 2 if product.op_type == "Conv" and factor.ndim else 0
    scaled = op.Mul(made, factor.reshape(factor.shape + (1,) * spatial))
    one, rest = np.ones((), np.float32), match.root.inputs[2:]
    return op.QuantizeLinear(scaled, one, *rest, _attributes=match.root.attributes, _version=match.root.version)


def _integers(op: Builder, dequantize: Node) -> Value:
    """Return DQ without its scale: the integers, less their zero point, as floats."""
    x, scale, *zero_point = dequantize.inputs
    given = tensor_of(scale)
    one = np.ones(() if given is None else given.shape, np.float32)
    return op.DequantizeLinear(x, one, *zero_point, _attributes=dequantize.attributes, _version=dequantize.version)


def _about(match: Match) -> OpKey:
    """Return the operator that the product would become where providers prefer it."""
    return _QUANTIZED[match.node("product").op_type]


_QUANTIZED: Mapping[str, OpKey] = {
    "Conv": OpKey("", "QLinearConv"),
    "Gemm": OpKey("com.microsoft", "QGemm"),
    "MatMul": OpKey("", "QLinearMatMul"),
}

DEFER_SCALES = Rule("defer_scales", _pattern, _replace, _check, integer_steps=1, takes_apart=QUANTIZATION, about=_about)
