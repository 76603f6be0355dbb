"""Add, multiply, pool and activate integers.

    Q(Add(DQ(a), DQ(b))), Q(Mul(DQ(a), DQ(b)))                     ->      com.microsoft.QLinearAdd, QLinearMul
    Q(f(DQ(x)))                                                    ->      com.microsoft.QLinear<f>(x, …, y_scale, y_zero)

    f: AveragePool, GlobalAveragePool, LeakyRelu, Sigmoid, Softmax

A result may differ by one step, as sums and products are rounded at another place.

Left alone: other types than int8 and uint8; inputs and results of two types; scales by axis or block; AveragePool with dilations;
operators that have other users.
"""

from __future__ import annotations

from sardonyx.ir import Value
from sardonyx.ops.views.softmax import Softmax
from sardonyx.optimize.contract import Level
from sardonyx.optimize.helpers.quantized import NO_QUANTIZATION, bytes_reason, dequantized, quantized, triple, zero_point_of
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import microsoft
from sardonyx.optimize.terms import Term

__all__ = ["FUSE_QUANTIZED_BINARY", "FUSE_QUANTIZED_UNARY"]

_UNARY = ("AveragePool", "GlobalAveragePool", "LeakyRelu", "Sigmoid", "Softmax")
_BINARY = ("Add", "Mul")


def _binary(op: PatternBuilder, a: Term, b: Term) -> Term:
    left, right = dequantized(op, a, "a"), dequantized(op, b, "b")
    return quantized(op, op.any_of(*(op.node(name, left, right, _as="operator", _ordered=True) for name in _BINARY)), "y")


def _check_binary(match: Match) -> str | None:
    types = {match["a"].dtype, match["b"].dtype, match.outputs[0].dtype}
    return bytes_reason(match, "a", "b", "y") or (None if len(types) == 1 else "the tensors are of two types")


def _replace_binary(op: Builder, match: Match, learned: None) -> Value:
    operands = (*triple(op, match.node("a/dequantize")), *triple(op, match.node("b/dequantize")))
    return op.node(
        f"QLinear{match.node('operator').op_type}",
        *operands,
        match.root.inputs[1],
        zero_point_of(op, match.root),
        _domain="com.microsoft",
    )


FUSE_QUANTIZED_BINARY = Rule(
    "fuse_quantized_binary",
    _binary,
    _replace_binary,
    _check_binary,
    Level.EXTENDED,
    integer_steps=1,
    makes=microsoft("QLinearAdd", "QLinearMul"),
    opt_out=NO_QUANTIZATION,
    aliases=("QDQSelectorActionTransformer",),
    summary="Replace an Add or Mul between DequantizeLinear and QuantizeLinear by QLinearAdd or QLinearMul of com.microsoft.",
)


def _unary(op: PatternBuilder, x: Term) -> Term:
    number = dequantized(op, x, "x")
    return quantized(op, op.any_of(*(op.node(name, number, _as="operator") for name in _UNARY)), "y")


def _check_unary(match: Match) -> str | None:
    node = match.node("operator")
    dilations = node.integers("dilations", ())
    if any(step != 1 for step in dilations):
        return f"the pool has dilations {list(dilations)}, which QLinearAveragePool lacks"
    same = match["x"].dtype is match.outputs[0].dtype
    return bytes_reason(match, "x", "y") or (None if same else "the tensors are of two types")


def _replace_unary(op: Builder, match: Match, learned: None) -> Value:
    node = match.node("operator")
    attributes = {name: attribute for name, attribute in node.attributes.items() if name != "dilations"}
    extra = {}
    if node.op_type == "Softmax":
        extra = {"opset": node.version, "axis": Softmax.of(node).axis}
    return op.node(
        f"QLinear{node.op_type}",
        *triple(op, match.node("x/dequantize")),
        match.root.inputs[1],
        zero_point_of(op, match.root),
        _domain="com.microsoft",
        _attributes=attributes,
        **extra,
    )


FUSE_QUANTIZED_UNARY = Rule(
    "fuse_quantized_unary",
    _unary,
    _replace_unary,
    _check_unary,
    Level.EXTENDED,
    integer_steps=1,
    makes=microsoft("QLinearAveragePool", "QLinearGlobalAveragePool", "QLinearLeakyRelu", "QLinearSigmoid", "QLinearSoftmax"),
    opt_out=NO_QUANTIZATION,
    aliases=("QDQSelectorActionTransformer",),
    summary="Replace an activation or pooling between DequantizeLinear and QuantizeLinear by its form for integers.",
)
