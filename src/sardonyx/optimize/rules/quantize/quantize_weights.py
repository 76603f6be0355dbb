"""Quantize the weights and the bias of an operator whose input and result are quantized.

    Q(f(DQ(x), w, b))           ->      Q(f(DQ(x), DQ(w8), b))         w8 = round(w / s), int8, s = max|w| / 127
    Q(f(DQ(x), DQ(w8), b))      ->      Q(f(DQ(x), DQ(w8), DQ(b32)))   b32 = round(b / (x_scale * s)), int32

    f: Conv, ConvTranspose, Gemm

so that the whole becomes one operator on integers. The weights lose precision as any that are quantized: for providers that
prefer quantized operators, and only there.

Left alone:
    weights and biases that are no constants of float32, or have other users
    weights beside a bias that is no constant
    x and the result of other types than int8 and uint8, or with scales by axis
    a bias whose steps would go beyond int32, or under a beta other than 1
"""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import Array, DataType
from sardonyx.ir import Node, Value
from sardonyx.ops.views.quantize import BY_AXIS_SINCE
from sardonyx.optimize.contract import Level
from sardonyx.optimize.helpers.quantized import (
    NO_QUANTIZATION,
    bytes_reason,
    dequantized,
    limits_of,
    quantized,
    scale_of,
)
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import microsoft, standard
from sardonyx.optimize.terms import Term

__all__ = ["QUANTIZE_BIAS", "QUANTIZE_WEIGHTS"]

_OPERATORS = ("Conv", "ConvTranspose", "Gemm")
_LARGEST = 127


def _of_float_weights(op: PatternBuilder, x: Term) -> Term:
    number = dequantized(op, x, "x")
    return quantized(
        op, op.any_of(*(op.node(name, number, op.constant("w"), op.optional("b"), _as="operator") for name in _OPERATORS)), "y"
    )


def _check_weights(match: Match) -> str | None:
    w = match.tensor("w")
    if w is None or w.dtype is not DataType.FLOAT or match["w"].use_count > 1:
        return "the weights are not float, or have other users"
    b = match.get("b")
    if b is not None and b.constant is None and (b.producer is None or b.producer.op_type != "DequantizeLinear"):
        return "the bias is no constant, so that the operator stays one of floats"
    return bytes_reason(match, "x", "y") or (None if np.isfinite(w.numpy()).all() else "the weights are not finite")


def _quantize_weights(op: Builder, match: Match, learned: None) -> Value:
    w = match.tensor("w")
    if w is None:
        raise ValueError("the weights are no constant")
    array = w.numpy()
    step = np.float32(max(float(np.abs(array).max(initial=0)) / _LARGEST, float(np.finfo(np.float32).tiny)))
    integers = np.clip(np.rint(array / step), -_LARGEST, _LARGEST).astype(np.int8)
    made = op.DequantizeLinear(op.constant(integers, f"{match['w'].name}/quantized"), step, np.int8(0), _version=_version(match))
    return _again(op, match, 1, made)


def _of_float_bias(op: PatternBuilder, x: Term) -> Term:
    number, weights = dequantized(op, x, "x"), dequantized(op, "w", "w")
    return quantized(op, op.any_of(*(op.node(name, number, weights, op.constant("b"), _as="operator") for name in _OPERATORS)), "y")


def _check_bias(match: Match) -> str | tuple[Array, Array]:
    reason, b = bytes_reason(match, "x", "y"), match.tensor("b")
    if reason is not None:
        return reason
    if b is None or b.dtype is not DataType.FLOAT or len(b.shape) != 1 or match["b"].use_count > 1:
        return "the bias is no float vector, or has other users"
    x, w = scale_of(match.node("x/dequantize")), scale_of(match.node("w/dequantize"))
    if x is None or w is None or match.node("operator").number("beta", 1.0) != 1.0:
        return "the weights have no scales, or the bias is scaled"
    if not w.is_single and w.scale.shape != b.shape:
        return f"the weights have {w.scale.size} scales for a bias of {b.size} elements"
    with np.errstate(all="ignore"):
        step = np.asarray(x.scale * w.scale, np.float32)
        integers = np.rint(b.numpy().astype(np.float64) / step)
    low, high = limits_of(DataType.INT32)
    if not np.isfinite(integers).all() or integers.min(initial=0) < low or integers.max(initial=0) > high:
        return "the bias has too many steps for int32"
    return integers.astype(np.int32), step


def _quantize_bias(op: Builder, match: Match, learned: tuple[Array, Array]) -> Value:
    integers, step = learned
    zero_point = np.zeros(step.shape, np.int32)
    axis = 0 if step.ndim else None
    made = op.DequantizeLinear(
        op.constant(integers, f"{match['b'].name}/quantized"), step, zero_point, axis=axis, _version=_version(match)
    )
    return _again(op, match, 2, made)


def _again(op: Builder, match: Match, index: int, value: Value) -> Value:
    """Return Q(f(…)) with another input `index` of f."""
    node: Node = match.node("operator")
    inputs = [value if place == index else old for place, old in enumerate(node.inputs)]
    made = op.node(node.op_type, *inputs, _attributes=node.attributes, _version=node.version)
    return op.QuantizeLinear(made, *match.root.inputs[1:], _attributes=match.root.attributes, _version=match.root.version)


def _version(match: Match) -> int:
    return max(match.node("x/dequantize").version, BY_AXIS_SINCE)


QUANTIZE_WEIGHTS = Rule(
    "quantize_weights",
    _of_float_weights,
    _quantize_weights,
    _check_weights,
    Level.EXTENDED,
    integer_steps=4,
    prepares=standard("QLinearConv") | microsoft("QGemm"),
    opt_out=NO_QUANTIZATION,
    aliases=("WeightBiasQuantization",),
    summary="Quantize the constant weights of an operator whose input and result are quantized.",
)
QUANTIZE_BIAS = Rule(
    "quantize_bias",
    _of_float_bias,
    _quantize_bias,
    _check_bias,
    Level.EXTENDED,
    integer_steps=1,
    prepares=standard("QLinearConv") | microsoft("QGemm"),
    opt_out=NO_QUANTIZATION,
    aliases=("WeightBiasQuantization",),
    summary="Quantize the constant bias of an operator whose input, weights and result are quantized.",
)
