"""Replace a convolution between DequantizeLinear and QuantizeLinear by QLinearConv.

    Q(Conv(DQ(x), DQ(w), DQ(b)))           ->      QLinearConv(x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, b)

with or without b. The sums are exact; a result may differ by one step, as it is rounded once.

Left alone:
    x and y of other types than int8 and uint8, or with scales by axis
    weights that are no constants, or whose scales do not go by output channel
    a bias that is not int32 in steps of x_scale * w_scale, with zero point 0: `quantize_weights` makes it so
    Conv that has other users
"""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.ir import Value
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
from sardonyx.optimize.target import standard
from sardonyx.optimize.terms import Term

__all__ = ["FUSE_QUANTIZED_CONV"]


def _pattern(op: PatternBuilder, x: Term) -> Term:
    bias = op.any_of(dequantized(op, "b", "b"), None)
    return quantized(op, op.Conv(dequantized(op, x, "x"), dequantized(op, "w", "w"), bias, _as="conv"), "y")


def _check(match: Match) -> str | None:
    reason = bytes_reason(match, "x", "y")
    if reason is not None:
        return reason
    x, w = scale_of(match.node("x/dequantize")), scale_of(match.node("w/dequantize"))
    if x is None or w is None or w.dtype not in EIGHT_BITS:
        return "the weights have no scales of float32, or are not of 8 bits"
    if not w.is_single and w.axis != 0:
        return f"the weights have scales along axis {w.axis}, expected 0"
    if match.get("b") is None:
        return None
    b = scale_of(match.node("b/dequantize"))
    if b is None or b.dtype is not DataType.INT32 or b.zero.any():
        return "the bias is not int32 with zero point 0"
    return None if np.allclose(b.scale, x.scale * w.scale, rtol=1e-4, atol=0) else "the bias is not in steps of x_scale * w_scale"


def _replace(op: Builder, match: Match, learned: None) -> Value:
    conv, y = match.node("conv"), match.root
    parts = (*triple(op, match.node("x/dequantize")), *triple(op, match.node("w/dequantize")), y.inputs[1], zero_point_of(op, y))
    bias = [] if match.get("b") is None else [match["b"]]
    return op.QLinearConv(*parts, *bias, _attributes=conv.attributes)


FUSE_QUANTIZED_CONV = Rule(
    "fuse_quantized_conv",
    _pattern,
    _replace,
    _check,
    Level.EXTENDED,
    integer_steps=1,
    makes=standard("QLinearConv"),
    opt_out=NO_QUANTIZATION,
    aliases=("QDQSelectorActionTransformer",),
)
