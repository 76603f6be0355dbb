"""Derivatives of operators, as operators: what reverse-mode differentiation needs to know of each.

    derivative_of("Mul")(make, node, gradient)  ->  the gradients of the node's inputs; None for an input that gets none

A derivative sees a node of its operator with one output and the gradient of that output, and makes nodes with `make`. Where
operands were broadcast, `shrunk` sums a gradient back to the shape of an input.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from sardonyx.ir import Node, Tensor, Value
from sardonyx.ir.attribute import AttributeValue
from sardonyx.ops.views.binary import Broadcast
from sardonyx.ops.views.matmul import Gemm
from sardonyx.ops.views.reduce import Reduce
from sardonyx.ops.views.reshape import Transpose
from sardonyx.ops.views.softmax import Softmax

__all__ = ["Derivative", "Make", "derivative_of", "differentiable_operators"]

VERSION = 21
"""The opset version under which the nodes that derivatives are made of are read."""


class Make:
    """Makes nodes in order and keeps them."""

    def __init__(self) -> None:
        """Begin with none."""
        self.nodes: list[Node] = []

    def __call__(self, op_type: str, *inputs: Value | None, **attributes: AttributeValue) -> Value:
        """Return the output of a new node; Any as attributes differ in kind."""
        node = Node(op_type, inputs, 1, attributes, version=VERSION)
        self.nodes.append(node)
        return node.output

    def integers(self, *values: int) -> Value:
        """Return a vector of int64."""
        return self("Constant", value=Tensor.from_array(np.array(values, np.int64)))

    def number(self, value: float, like: Value) -> Value:
        """Return a scalar of the type of `like`."""
        return self("CastLike", self("Constant", value=Tensor.from_array(np.array(value, np.float64))), like)

    def filled(self, value: float, like: Value) -> Value:
        """Return `value` in the shape and type of `like`."""
        return self("Expand", self.number(value, like), self("Shape", like))

    def shrunk(self, gradient: Value, like: Value) -> Value:
        """Return `gradient` summed over the axes along which `like` was broadcast, in the shape of `like`."""
        own, whole = self("Shape", like), self("Shape", gradient)
        missing = self("Sub", self("Size", whole), self("Size", own))
        ones = self("Expand", self.integers(1), self("Reshape", missing, self.integers(1)))
        padded = self("Concat", ones, own, axis=0)
        axes = self("Reshape", self("NonZero", self("Equal", padded, self.integers(1))), self.integers(-1))
        return self("Reshape", self("ReduceSum", gradient, axes, keepdims=1, noop_with_empty_axes=1), own)


Gradients = Sequence[Value | None]
Derivative = Callable[[Make, Node, Value], Gradients]
"""f(make, node, gradient of its output) -> gradients of its inputs."""


def _operands(node: Node) -> list[Value]:
    return [value for value in node.inputs if value is not None]


def _add(make: Make, node: Node, g: Value) -> Gradients:
    return [make.shrunk(g, value) for value in _operands(node)]


def _sub(make: Make, node: Node, g: Value) -> Gradients:
    a, b = _operands(node)
    return [make.shrunk(g, a), make.shrunk(make("Neg", g), b)]


def _mul(make: Make, node: Node, g: Value) -> Gradients:
    a, b = _operands(node)
    return [make.shrunk(make("Mul", g, b), a), make.shrunk(make("Mul", g, a), b)]


def _div(make: Make, node: Node, g: Value) -> Gradients:
    a, b = _operands(node)
    quotient = make("Div", g, b)
    return [make.shrunk(quotient, a), make.shrunk(make("Neg", make("Mul", quotient, node.output)), b)]


def _pow(make: Make, node: Node, g: Value) -> Gradients:
    a, b = _operands(node)
    exponent = make("CastLike", b, a)
    lower = make("Pow", a, make("Sub", exponent, make.number(1, a)))
    base = make.shrunk(make("Mul", g, make("Mul", exponent, lower)), a)
    return [base, make.shrunk(make("CastLike", make("Mul", g, make("Mul", node.output, make("Log", a))), b), b)]


def _matmul(make: Make, node: Node, g: Value) -> Gradients:
    """Differentiate a product of matrices of any batch; a vector becomes a matrix first, and the gradient with it."""
    a, b = _operands(node)
    row, column = _is_vector(a), _is_vector(b)
    left = make("Unsqueeze", a, make.integers(0)) if row else a
    right = make("Unsqueeze", b, make.integers(1)) if column else b
    if column:
        g = make("Unsqueeze", g, make.integers(-1))
    if row:
        g = make("Unsqueeze", g, make.integers(-2))
    of_left = make.shrunk(make("MatMul", g, _swapped(make, right)), left)
    of_right = make.shrunk(make("MatMul", _swapped(make, left), g), right)
    return [make("Reshape", of_left, make("Shape", a)), make("Reshape", of_right, make("Shape", b))]


def _is_vector(value: Value) -> bool:
    return value.shape is not None and len(value.shape) == 1


def _swapped(make: Make, value: Value) -> Value:
    """Return the last two axes exchanged, whatever the rank: as Einsum says it."""
    return make("Einsum", value, equation="...ij->...ji")


def _gemm(make: Make, node: Node, g: Value) -> Gradients:
    a, b = node.inputs[:2]
    view = Gemm.of(node)
    trans_a, trans_b = int(view.transposes_a), int(view.transposes_b)
    first = (b, g, trans_b, 1) if trans_a else (g, b, 0, 1 - trans_b)
    second = (g, a, 1, trans_a) if trans_b else (a, g, 1 - trans_a, 0)
    gradients = [make("Gemm", x, y, alpha=view.alpha, transA=s, transB=t) for x, y, s, t in (first, second)]
    c = node.input(2)
    if c is not None:
        gradients.append(make.shrunk(make("Mul", g, make.number(view.beta, g)), c))
    return gradients


def _reduce(make: Make, node: Node, g: Value) -> Value:
    """Return the gradient of a reduction's output, spread over its input."""
    x, axes = node.inputs[0], node.input(1)
    if axes is None and "axes" in node.attributes:
        axes = make.integers(*node.integers("axes", ()))
    if not Reduce.of(node).keeps_axes:
        if axes is None:
            g = make("Reshape", g, make.integers(1))
        else:
            g = make("Unsqueeze", g, axes)
    return make("Expand", g, make("Shape", x))


def _reduce_sum(make: Make, node: Node, g: Value) -> Gradients:
    return [_reduce(make, node, g)]


def _reduce_mean(make: Make, node: Node, g: Value) -> Gradients:
    x = node.inputs[0]
    assert x is not None
    count = make("Div", make("Size", x), make("Size", node.output))
    return [make("Div", _reduce(make, node, g), make("CastLike", count, x))]


def _reshape(make: Make, node: Node, g: Value) -> Gradients:
    """Differentiate everything that keeps the elements in their order."""
    return [make("Reshape", g, make("Shape", node.inputs[0]))]


def _expand(make: Make, node: Node, g: Value) -> Gradients:
    x = node.inputs[0]
    assert x is not None
    return [make.shrunk(g, x)]


def _transpose(make: Make, node: Node, g: Value) -> Gradients:
    order = Transpose.of(node).permutation
    return [make("Transpose", g) if order is None else make("Transpose", g, perm=[int(axis) for axis in np.argsort(order)])]


def _cast(make: Make, node: Node, g: Value) -> Gradients:
    return [make("CastLike", g, node.inputs[0])]


def _where(make: Make, node: Node, g: Value) -> Gradients:
    condition, a, b = _operands(node)
    zero = make.number(0, g)
    return [None, make.shrunk(make("Where", condition, g, zero), a), make.shrunk(make("Where", condition, zero, g), b)]


def _softmax(make: Make, node: Node, g: Value) -> Gradients:
    weighted = make("Mul", g, node.output)
    total = make("ReduceSum", weighted, make.integers(Softmax.of(node).axis), keepdims=1)
    return [make("Sub", weighted, make("Mul", node.output, total))]


def _log_softmax(make: Make, node: Node, g: Value) -> Gradients:
    total = make("ReduceSum", g, make.integers(Softmax.of(node).axis), keepdims=1)
    return [make("Sub", g, make("Mul", make("Exp", node.output), total))]


def _factor(slope: Callable[[Make, Value, Value], Value]) -> Derivative:
    """Return the derivative of an element-wise function with this slope at (x, y)."""

    def derivative(make: Make, node: Node, g: Value) -> Gradients:
        x = node.inputs[0]
        assert x is not None
        return [make("Mul", g, slope(make, x, node.output))]

    return derivative


def _none(make: Make, node: Node, g: Value) -> Gradients:
    return []


_SLOPES: dict[str, Callable[[Make, Value, Value], Value]] = {
    "Abs": lambda make, x, y: make("Sign", x),
    "Cos": lambda make, x, y: make("Neg", make("Sin", x)),
    "Cosh": lambda make, x, y: make("Sinh", x),
    "Erf": lambda make, x, y: make("Mul", make("Exp", make("Neg", make("Mul", x, x))), make.number(2 / np.sqrt(np.pi), x)),
    "Exp": lambda make, x, y: y,
    "Identity": lambda make, x, y: make.number(1, x),
    "Log": lambda make, x, y: make("Reciprocal", x),
    "Neg": lambda make, x, y: make.number(-1, x),
    "Reciprocal": lambda make, x, y: make("Neg", make("Mul", y, y)),
    "Relu": lambda make, x, y: make("CastLike", make("Greater", x, make.number(0, x)), x),
    "Sigmoid": lambda make, x, y: make("Mul", y, make("Sub", make.number(1, y), y)),
    "Sin": lambda make, x, y: make("Cos", x),
    "Sinh": lambda make, x, y: make("Cosh", x),
    "Softplus": lambda make, x, y: make("Sigmoid", x),
    "Sqrt": lambda make, x, y: make("Div", make.number(0.5, y), y),
    "Tanh": lambda make, x, y: make("Sub", make.number(1, y), make("Mul", y, y)),
}

_DERIVATIVES: Mapping[str, Derivative] = {
    **{name: _factor(slope) for name, slope in _SLOPES.items()},
    **dict.fromkeys(["CastLike", "Cast"], _cast),
    **dict.fromkeys(["Flatten", "Reshape", "Squeeze", "Unsqueeze"], _reshape),
    **dict.fromkeys(["Ceil", "Constant", "Equal", "Floor", "Greater", "Less", "NonZero", "Shape", "Sign", "Size"], _none),
    "Add": _add,
    "Div": _div,
    "Expand": _expand,
    "Gemm": _gemm,
    "LogSoftmax": _log_softmax,
    "MatMul": _matmul,
    "Mul": _mul,
    "Pow": _pow,
    "ReduceMean": _reduce_mean,
    "ReduceSum": _reduce_sum,
    "Softmax": _softmax,
    "Sub": _sub,
    "Sum": _add,
    "Transpose": _transpose,
    "Where": _where,
}


def derivative_of(node: Node) -> Derivative | None:
    """Return the derivative of a node's operator, or None where none is known."""
    is_flat = node.op_type in ("LogSoftmax", "Softmax") and Softmax.of(node).is_flat
    return None if node.domain or is_flat or Broadcast.of(node).is_legacy else _DERIVATIVES.get(node.op_type)


def differentiable_operators() -> list[str]:
    """Return the operators of ai.onnx whose derivative is known, sorted."""
    return sorted(_DERIVATIVES)
