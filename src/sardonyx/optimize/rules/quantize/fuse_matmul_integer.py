"""Scale the product of integer matrices where it is made.

    Cast(MatMulInteger(a, b, a_zero, b_zero), to=float) * (a_scale * b_scale)
        ->      com.microsoft.MatMulIntegerToFloat(a, b, a_scale, b_scale, a_zero, b_zero)
    MatMulIntegerToFloat(a, b, …) + bias
        ->      MatMulIntegerToFloat(a, b, …, bias)

The numbers are the same, but for the rounding of a product of two scales.

Left alone:
    scales of a that are not one number; scales of b that are neither one number nor one per column
    a bias that is no constant of one element per column
    intermediate results that have other users
"""

from __future__ import annotations

from sardonyx.dtypes import DataType
from sardonyx.ir import Value
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["FUSE_MATMUL_INTEGER", "FUSE_MATMUL_INTEGER_BIAS"]


def _scaled(op: PatternBuilder, a: Term, b: Term, a_scale: Term, b_scale: Term) -> Term:
    total = op.MatMulInteger(a, b, op.optional("a_zero"), op.optional("b_zero"))
    return op.Mul(op.Cast(total, to=int(DataType.FLOAT)), op.Mul(a_scale, b_scale, _shared=True))


def _check_scaled(match: Match) -> str | None:
    a, b = match["a_scale"], match["b_scale"]
    if a.shape is None or any(dim != 1 for dim in a.shape) or a.dtype is not DataType.FLOAT:
        return f"the scale of a is {a.dtype} {a.shape}, expected one float"
    columns = None if match["b"].shape is None else match["b"].shape[-1:]
    if b.dtype is not DataType.FLOAT or b.shape is None or not (all(dim == 1 for dim in b.shape) or b.shape == columns):
        return f"the scale of b is {b.dtype} {b.shape}, expected one float or {columns}"
    return None if len(a.shape) < 2 and len(b.shape) < 2 else "a scale has several dimensions"


def _scale(op: Builder, match: Match, learned: None) -> Value:
    zeros = [match.get("a_zero"), match.get("b_zero")]
    while zeros and zeros[-1] is None:
        zeros.pop()
    return op.MatMulIntegerToFloat(match["a"], match["b"], match["a_scale"], match["b_scale"], *zeros, _domain="com.microsoft")


FUSE_MATMUL_INTEGER = Rule(
    "fuse_matmul_integer",
    _scaled,
    _scale,
    _check_scaled,
    aliases=("MatMulIntegerToFloatFusion",),
    summary="Replace MatMulInteger, and the scaling of its result, by MatMulIntegerToFloat of com.microsoft.",
)


def _biased(op: PatternBuilder, a: Term, b: Term, a_scale: Term, b_scale: Term, bias: Term) -> Term:
    product = op.MatMulIntegerToFloat(
        a, b, a_scale, b_scale, op.optional("a_zero"), op.optional("b_zero"), _domain="com.microsoft", _as="product"
    )
    return op.Add(product, op.constant(bias))


def _check_biased(match: Match) -> str | None:
    bias, columns = match["bias"], None if match["b"].shape is None else match["b"].shape[-1:]
    return None if columns is not None and bias.shape == columns else f"the bias has shape {bias.shape}, expected {columns}"


def _bias(op: Builder, match: Match, learned: None) -> Value:
    inputs = match.node("product").inputs
    return op.MatMulIntegerToFloat(*inputs, *[None] * (6 - len(inputs)), match["bias"], _domain="com.microsoft")


FUSE_MATMUL_INTEGER_BIAS = Rule(
    "fuse_matmul_integer_bias",
    _biased,
    _bias,
    _check_biased,
    aliases=("MatMulIntegerToFloatFusion",),
    summary="Fold the addition of a bias into the MatMulIntegerToFloat before it.",
)
