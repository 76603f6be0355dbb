"""ONNX's element-wise operators as expressions of the kernel compiler.

    expression(node, [x, y])     what `node` computes for one element from the expressions of its inputs

Each operator's entry says what it computes; those whose meaning needs an attribute read it from the node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sardonyx.codegen.expr import OPERATORS, Expr, argument, constant, number
from sardonyx.codegen.types import BOOL, Type, of_dtype
from sardonyx.dtypes import DataType
from sardonyx.ir import Node

__all__ = ["ELEMENTWISE", "argument_of", "element_type", "expression", "expression_key", "is_elementwise", "scalar_of"]

Operands = Sequence["Expr | None"]
Build = Callable[[Node, Operands], Expr]


def element_type(dtype: DataType | None) -> Type | None:
    """The kernel compiler's type of elements of `dtype`, or None where kernels do not compute with it."""
    if dtype is None or dtype is DataType.UNDEFINED:
        return None
    try:
        return of_dtype(dtype.numpy)
    except KeyError:
        return None


def is_elementwise(node: Node) -> bool:
    """Whether `expression` knows the node's operator."""
    return node.domain == "" and node.op_type in ELEMENTWISE


def expression(node: Node, operands: Operands) -> Expr:
    """What the node computes for one element.

    Args:
        node: an element-wise node.
        operands: for each input its expression, None for one left out.

    Raises:
        TypeError: the operator is not defined for these types.
    """
    return ELEMENTWISE[node.op_type](node, operands)


def expression_key(outputs: Sequence[Expr]) -> str:
    """Text that two lists of expressions share if, and only if, they compute the same."""
    steps, results = number(outputs)
    words = (f"{step.primitive}:{step.type}:{step.type.kind.value}:{step.operands}:{step.value}" for step in steps)
    return ";".join(words) + f"->{results}"


def scalar_of(node: Node, index: int) -> float | int | bool | None:
    """Input `index` as a number where it is a constant of one element, else None."""
    value = node.input(index)
    if value is None or value.constant is None or value.constant.size != 1:
        return None
    item: float | int | bool = value.constant.numpy().reshape(()).item()
    return item


def _plain(name: str) -> Build:
    return lambda node, operands: OPERATORS[name](*[operand for operand in operands if operand is not None])


def _with(name: str, **defaults: float) -> Build:
    """An operator with float attributes, each with the standard's default."""
    return lambda node, operands: OPERATORS[name](operands[0], **{key: node.get(key, value) for key, value in defaults.items()})


def _folded(name: str) -> Build:
    """A variadic operator as a chain of binary ones."""

    def build(node: Node, operands: Operands) -> Expr:
        result, *rest = (operand for operand in operands if operand is not None)
        for operand in rest:
            result = OPERATORS[name](result, operand)
        return result

    return build


def _mean(node: Node, operands: Operands) -> Expr:
    return _folded("add")(node, operands) * (1.0 / len(operands))


def _clip(node: Node, operands: Operands) -> Expr:
    low = operands[1] if len(operands) > 1 else node.get("min")
    high = operands[2] if len(operands) > 2 else node.get("max")
    return OPERATORS["clip"](operands[0], low, high)


def _cast(node: Node, operands: Operands) -> Expr:
    kind = element_type(DataType(node.get("to")))
    assert kind is not None
    return _given(operands, 0).to(kind)


def _gelu(node: Node, operands: Operands) -> Expr:
    return OPERATORS["gelu_tanh" if node.get("approximate", "none") == "tanh" else "gelu"](operands[0])


def _mod(node: Node, operands: Operands) -> Expr:
    return OPERATORS["remainder" if node.get("fmod", 0) else "modulo"](*operands)


def _logical(primitive: str) -> Build:
    return lambda node, operands: Expr(primitive, BOOL, tuple(operand.to(BOOL) for operand in operands if operand is not None))


def _not(node: Node, operands: Operands) -> Expr:
    return _given(operands, 0).eq(constant(False, BOOL)) if _given(operands, 0).type == BOOL else ~_given(operands, 0)


def _is_infinite(node: Node, operands: Operands) -> Expr:
    return OPERATORS["is_infinite"](
        operands[0], negative=bool(node.get("detect_negative", 1)), positive=bool(node.get("detect_positive", 1))
    )


def _pow(node: Node, operands: Operands) -> Expr:
    exponent = scalar_of(node, 1)
    if exponent is not None:
        return OPERATORS["power"](operands[0], exponent)
    base, power = _given(operands, 0), _given(operands, 1)
    return OPERATORS["power"](base, power if power.type == base.type else power.to(base.type))


def _given(operands: Operands, index: int) -> Expr:
    found = operands[index]
    if found is None:
        raise TypeError(f"input {index} is left out")
    return found


ELEMENTWISE: Mapping[str, Build] = {
    **{name: _plain(name.lower()) for name in ("Abs", "Acos", "Acosh", "Add", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos",
       "Cosh", "Div", "Erf", "Exp", "Floor", "Log", "Mul", "Neg", "Reciprocal", "Relu", "Round", "Sigmoid", "Sign", "Sin", "Sinh",
       "Softplus", "Softsign", "Sqrt", "Sub", "Tan", "Tanh", "Mish")},
    "And": _logical("and"),
    "Cast": _cast,
    "Celu": _with("celu", alpha=1.0),
    "Clip": _clip,
    "Elu": _with("elu", alpha=1.0),
    "Equal": _plain("eq"),
    "Gelu": _gelu,
    "Greater": _plain("gt"),
    "GreaterOrEqual": _plain("ge"),
    "HardSigmoid": _with("hard_sigmoid", alpha=0.2, beta=0.5),
    "HardSwish": _plain("hard_swish"),
    "IsInf": _is_infinite,
    "IsNaN": _plain("is_nan"),
    "LeakyRelu": _with("leaky_relu", alpha=0.01),
    "Less": _plain("lt"),
    "LessOrEqual": _plain("le"),
    "Max": _folded("max"),
    "Mean": _mean,
    "Min": _folded("min"),
    "Mod": _mod,
    "Not": _not,
    "Or": _logical("or"),
    "PRelu": _plain("prelu"),
    "Pow": _pow,
    "Selu": _with("selu", alpha=1.67326319217681884765625, gamma=1.05070102214813232421875),
    "Shrink": _with("shrink", bias=0.0, threshold=0.5),
    "Sum": _folded("add"),
    "Swish": _with("swish", alpha=1.0),
    "ThresholdedRelu": _with("thresholded_relu", alpha=1.0),
    "Where": _plain("select"),
    "Xor": _logical("xor"),
}  # fmt: skip
"""Operator -> what it computes."""


def argument_of(index: int, dtype: DataType) -> Expr:
    """Argument `index` of a kernel, an element of `dtype`; raises TypeError for a type that kernels do not compute with."""
    kind = element_type(dtype)
    if kind is None:
        raise TypeError(f"kernels do not compute with {dtype}")
    return argument(index, kind)
