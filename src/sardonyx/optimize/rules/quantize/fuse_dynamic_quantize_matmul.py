"""Replace DynamicQuantizeLinear and the product that reads it by DynamicQuantizeMatMul of com.microsoft.

    q, scale, zero = DynamicQuantizeLinear(a);  MatMulIntegerToFloat(q, b, scale, b_scale, zero, b_zero, bias)
        ->      com.microsoft.DynamicQuantizeMatMul(a, b, b_scale, b_zero, bias)

The numbers are the same.

Left alone: a quantized matrix that has other users, as it would be quantized once for each.
"""

from __future__ import annotations

from sardonyx.ir import Value
from sardonyx.optimize.contract import Level
from sardonyx.optimize.helpers.quantized import NO_QUANTIZATION
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import microsoft
from sardonyx.optimize.terms import Term

__all__ = ["FUSE_DYNAMIC_QUANTIZE_MATMUL"]


def _pattern(op: PatternBuilder, a: Term, b: Term, b_scale: Term) -> Term:
    quantized, scale, zero = op.outputs(op.DynamicQuantizeLinear(a), 3)
    return op.MatMulIntegerToFloat(
        quantized, b, scale, b_scale, zero, op.optional("b_zero"), op.optional("bias"), _domain="com.microsoft"
    )


def _replace(op: Builder, match: Match, learned: None) -> Value:
    extra = [match.get("b_zero"), match.get("bias")]
    while extra and extra[-1] is None:
        extra.pop()
    return op.DynamicQuantizeMatMul(match["a"], match["b"], match["b_scale"], *extra, _domain="com.microsoft")


FUSE_DYNAMIC_QUANTIZE_MATMUL = Rule(
    "fuse_dynamic_quantize_matmul",
    _pattern,
    _replace,
    level=Level.EXTENDED,
    makes=microsoft("DynamicQuantizeMatMul"),
    opt_out=NO_QUANTIZATION,
    aliases=("DynamicQuantizeMatMulFusion",),
)
