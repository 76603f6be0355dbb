"""Compute quantized operators with floats, those that no provider prefers.

    QLinearConv(x, …, w, …, y_scale, y_zero, b)      ->      Q(Conv(DQ(x), DQ(w), DQ(b, x_scale * w_scale)))
    QLinearMatMul(a, …, b, …, y_scale, y_zero)       ->      Q(MatMul(DQ(a), DQ(b)))
    and of com.microsoft:
    QLinearConv                                      ->      as above
    QGemm(a, …, b, …, c, y_scale, y_zero)            ->      Q(Gemm(DQ(a), DQ(b), DQ(c, a_scale * b_scale))), or without Q
    QLinearAdd(a, …, b, …)                           ->      Q(Add(DQ(a), DQ(b)) / y_scale + y_zero, 1)
    QLinearMul(a, …, b, …)                           ->      Q(DQ(a, 1) * DQ(b, 1) * (a_scale * b_scale / y_scale) + y_zero, 1)
    QLinearAveragePool, GlobalAveragePool, LeakyRelu, Sigmoid, Softmax (x, …)      ->      Q(f(DQ(x)) / y_scale + y_zero, 1)
    QLinearConcat(y_scale, y_zero, a, …)             ->      Q(Concat(DQ(a), …))
    QLinearWhere(c, a, …, b, …)                      ->      Q(Where(c, DQ(a), DQ(b)))
    MatMulIntegerToFloat(a, b, …, bias)              ->      MatMul(DQ(a), DQ(b)) + bias
    DynamicQuantizeMatMul(a, b, …, bias)             ->      the same of DynamicQuantizeLinear(a)

The reverse of the `fuse_quantized_*` rules. A quantized result may differ by one step, as sums are rounded on the way.

Left alone:
    channels_last, which the standard's operators have no word for
    scales of a by row; scales of b by column of a stack of matrices; a bias that is no constant
    zero points that are left out where the type of the result would be unknown
    products with scales that are no constants, or not finite: infinities are added, where integers are
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.ir import Node, Value
from sardonyx.ops.views.matmul import Gemm
from sardonyx.ops.views.quantize import BY_AXIS_SINCE
from sardonyx.ops.views.slice import Concat
from sardonyx.ops.views.softmax import Softmax
from sardonyx.optimize.edit import tensor_of
from sardonyx.optimize.helpers.quantized import QUANTIZATION
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import OpKey
from sardonyx.optimize.terms import Term

__all__ = ["EXPAND_QUANTIZED"]

_MICROSOFT = "com.microsoft"


def _pattern(op: PatternBuilder) -> Term:
    return op.any_of(*(op.node(name, op.rest("inputs"), _domain=domain) for domain, name in _EXPANSIONS))


def _check(match: Match) -> str | None:
    node = match.root
    if node.flag("channels_last"):
        return "the channels are last"
    for index in _WITH_ONE_SCALE.get(node.op_type, ()):
        if not _is_one(node.input(index)):
            return f"input {index} is not one scale"
    if node.op_type in _BY_SCALES and not all(map(_is_finite, (node.input(1), node.input(4)))):
        return "the scales are no constants, or not finite"
    b = _OF_COLUMNS.get(node.op_type)
    if b is not None and not _is_one(node.input(b[1])) and not _is_matrix_with_columns(node.input(b[0]), node.input(b[1])):
        return "the scales of b are not those of a matrix's columns"
    bias = _BIAS.get(node.op_type)
    if bias is not None and node.input(bias) is not None and _bias_reason(node, bias) is not None:
        return _bias_reason(node, bias)
    return None


def _is_finite(scale: Value | None) -> bool:
    tensor = tensor_of(scale)
    return tensor is not None and bool(np.isfinite(tensor.numpy().astype(np.float32)).all())


def _is_one(value: Value | None) -> bool:
    return value is not None and value.shape is not None and all(dim == 1 for dim in value.shape)


def _is_matrix_with_columns(b: Value | None, scale: Value | None) -> bool:
    return (
        b is not None
        and scale is not None
        and b.shape is not None
        and len(b.shape) == 2
        and (scale.shape is not None and len(scale.shape) == 1)
    )


def _bias_reason(node: Node, bias: int) -> str | None:
    values = (node.input(bias), node.input(1), node.input(4))
    return None if all(tensor_of(value) is not None for value in values) else "the bias or its scales are no constants"


def _number(op: Builder, node: Node, places: tuple[int, int, int], axis: int = 0) -> Value:
    """Return DQ of the inputs at `places`: integers, scale, zero point; with one scale or with one per index of `axis`."""
    x, scale, zero_point = (node.input(place) for place in places)
    single = _is_one(scale)
    version = max(op.version("", "DequantizeLinear"), BY_AXIS_SINCE)
    inputs = [x, scale] if zero_point is None else [x, scale, zero_point]
    return op.DequantizeLinear(*inputs, axis=None if single else axis, _version=version)


def _integers(op: Builder, y: Value, scale: Value | None, zero_point: Value | None, like: Value | None) -> Value:
    """Return Q(y), in the type of the zero point, or of `like` where it is left out."""
    if zero_point is None and like is not None and like.dtype is not None:
        zero_point = op.constant(np.zeros((), like.dtype.numpy))
    return op.QuantizeLinear(y, scale, zero_point, _version=max(op.version("", "QuantizeLinear"), BY_AXIS_SINCE))


def _float_bias(op: Builder, node: Node, index: int, alpha: float = 1.0) -> Value | None:
    """Return DQ of the bias of int32, in steps of the product's scales."""
    bias = node.input(index)
    if bias is None:
        return None
    x_scale, w_scale = (_constant(node.input(place)).astype(np.float64) for place in (1, 4))
    steps = (alpha * x_scale.reshape(()) * (w_scale.reshape(()) if w_scale.size == 1 else w_scale)).astype(np.float32)
    axis = None if steps.ndim == 0 or bias.shape is None else len(bias.shape) - 1
    return op.DequantizeLinear(bias, steps, axis=axis, _version=max(op.version("", "DequantizeLinear"), BY_AXIS_SINCE))


def _constant(value: Value | None) -> Array:
    tensor = tensor_of(value)
    if tensor is None:
        raise ValueError(f"{value!r} is no constant")
    return tensor.numpy()


def _conv(op: Builder, node: Node) -> Value:
    x, w, bias = _number(op, node, (0, 1, 2)), _number(op, node, (3, 4, 5)), _float_bias(op, node, 8)
    kept = {name: attribute for name, attribute in node.attributes.items() if name != "channels_last"}
    y = op.Conv(x, w, *([] if bias is None else [bias]), _attributes=kept)
    return _integers(op, y, node.input(6), node.input(7), None)


def _matmul(op: Builder, node: Node) -> Value:
    y = op.MatMul(_number(op, node, (0, 1, 2)), _number(op, node, (3, 4, 5), axis=1))
    return _integers(op, y, node.input(6), node.input(7), None)


def _gemm(op: Builder, node: Node) -> Value:
    view = Gemm.of(node)
    a, b = _number(op, node, (0, 1, 2)), _number(op, node, (3, 4, 5), axis=view.column_axis)
    bias = _float_bias(op, node, 6, view.alpha)
    y = op.Gemm(a, b, *([] if bias is None else [bias]), _attributes=node.attributes)
    return y if node.input(7) is None else _integers(op, y, node.input(7), node.input(8), node.input(0))


def _multiply(op: Builder, node: Node) -> Value:
    numbers = [_single(node.input(place)) for place in (1, 4, 6, 7)]
    if None in numbers:
        return _binary(op, node)
    a_scale, b_scale, y_scale, y_zero = (np.float32(number) for number in numbers if number is not None)
    with np.errstate(all="ignore"):
        factor = a_scale * b_scale / y_scale
    one = np.ones((), np.float32)
    a, b = (
        op.DequantizeLinear(*[value for value in (node.input(place), one, node.input(place + 2)) if value is not None])
        for place in (0, 3)
    )
    return _rounded(op, op.Add(op.Mul(op.Mul(a, b), factor), y_zero), node.input(0))


def _single(value: Value | None) -> float | None:
    """Return a scale or zero point as a number, 0 where it is left out; None where it is no constant of one element."""
    if value is None:
        return 0.0
    tensor = tensor_of(value)
    return None if tensor is None or tensor.size != 1 else float(tensor.numpy().reshape(()))


def _after_zero(op: Builder, y: Value, scale: Value | None, zero_point: Value | None, like: Value | None) -> Value:
    """Return Q(y), rounded after the zero point is added.

    With an odd one, half-way between two integers is rounded the other way.
    """
    step, zero = _single(scale), _single(zero_point)
    if not step or zero is None:
        return _integers(op, y, scale, zero_point, like)
    return _rounded(op, op.Add(op.Div(y, np.float32(step)), np.float32(zero)), like)


def _rounded(op: Builder, y: Value, like: Value | None) -> Value:
    """Return the nearest integers to y, in the type of `like`."""
    dtype = np.dtype(np.uint8) if like is None or like.dtype is None else like.dtype.numpy
    return op.QuantizeLinear(y, np.ones((), np.float32), np.zeros((), dtype))


def _binary(op: Builder, node: Node) -> Value:
    y = op.node(node.op_type.removeprefix("QLinear"), _number(op, node, (0, 1, 2)), _number(op, node, (3, 4, 5)))
    return _after_zero(op, y, node.input(6), node.input(7), node.input(0))


def _unary(op: Builder, node: Node) -> Value:
    kept = {name: attribute for name, attribute in node.attributes.items() if name not in ("channels_last", "opset")}
    extra = {}
    if node.op_type == "QLinearSoftmax":
        extra = {"axis": Softmax.of(node).axis, "_version": node.integer("opset", 0) or None}
    y = op.node(node.op_type.removeprefix("QLinear"), _number(op, node, (0, 1, 2)), _attributes=kept, **extra)
    return _after_zero(op, y, node.input(3), node.input(4), node.input(0))


def _concat(op: Builder, node: Node) -> Value:
    starts = range(2, len(node.inputs), 3)
    parts = [_number(op, node, (start, start + 1, start + 2)) for start in starts]
    return _integers(op, op.Concat(*parts, axis=Concat.of(node).axis), node.input(0), node.input(1), None)


def _where(op: Builder, node: Node) -> Value:
    y = op.Where(node.input(0), _number(op, node, (1, 2, 3)), _number(op, node, (4, 5, 6)))
    return _integers(op, y, node.input(7), node.input(8), None)


def _product(op: Builder, node: Node) -> Value:
    y = op.MatMul(_number(op, node, (0, 2, 4)), _number(op, node, (1, 3, 5), axis=1))
    return y if node.input(6) is None else op.Add(y, node.input(6))


def _dynamic_product(op: Builder, node: Node) -> Value:
    a, a_scale, a_zero = op.outputs("DynamicQuantizeLinear", 3, node.input(0))
    y = op.MatMul(op.DequantizeLinear(a, a_scale, a_zero), _number(op, node, (1, 2, 3), axis=1))
    return y if node.input(4) is None else op.Add(y, node.input(4))


_EXPANSIONS: Mapping[tuple[str, str], Callable[[Builder, Node], Value]] = {
    ("", "QLinearConv"): _conv,
    ("", "QLinearMatMul"): _matmul,
    (_MICROSOFT, "DynamicQuantizeMatMul"): _dynamic_product,
    (_MICROSOFT, "MatMulIntegerToFloat"): _product,
    (_MICROSOFT, "QGemm"): _gemm,
    (_MICROSOFT, "QLinearAdd"): _binary,
    (_MICROSOFT, "QLinearAveragePool"): _unary,
    (_MICROSOFT, "QLinearConcat"): _concat,
    (_MICROSOFT, "QLinearConv"): _conv,
    (_MICROSOFT, "QLinearGlobalAveragePool"): _unary,
    (_MICROSOFT, "QLinearLeakyRelu"): _unary,
    (_MICROSOFT, "QLinearMul"): _multiply,
    (_MICROSOFT, "QLinearSigmoid"): _unary,
    (_MICROSOFT, "QLinearSoftmax"): _unary,
    (_MICROSOFT, "QLinearWhere"): _where,
}

_BY_SCALES = ("QGemm", "QLinearConv", "QLinearMatMul")
"""Products with quantized results, whose scales are inputs 1 and 4."""
_WITH_ONE_SCALE = {"QLinearConv": (1,), "QLinearMatMul": (1,), "QGemm": (1,), "MatMulIntegerToFloat": (2,)}
"""Operator -> the inputs that must be one scale, where the standard allows several."""
_OF_COLUMNS = {"QLinearMatMul": (3, 4), "QGemm": (3, 4), "MatMulIntegerToFloat": (1, 3), "DynamicQuantizeMatMul": (1, 2)}
"""Operator -> where b and its scales are."""
_BIAS = {"QLinearConv": 8, "QGemm": 6}
"""Operator -> where the bias of int32 is."""


def _replace(op: Builder, match: Match, learned: None) -> Value:
    return _EXPANSIONS[match.root.domain, match.root.op_type](op, match.root)


def _about(match: Match) -> OpKey:
    return OpKey(match.root.domain, match.root.op_type)


EXPAND_QUANTIZED = Rule("expand_quantized", _pattern, _replace, _check, integer_steps=1, takes_apart=QUANTIZATION, about=_about)
