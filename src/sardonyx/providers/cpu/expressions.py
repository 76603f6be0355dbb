"""ONNX's element-wise operators as expressions of the kernel compiler.

    expression(node, [x, y])     what `node` computes for one element from the expressions of its inputs

Each operator's entry says what it computes; those whose meaning needs an attribute read it from the node, or from its view.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Mapping, Sequence

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.expr import OPERATORS, ElementExpr, argument, constant, number
from sardonyx.codegen.emit.types import BOOL, F32, F64, Kind, Type, of_dtype
from sardonyx.codegen.target import Target
from sardonyx.digests import sha256
from sardonyx.dtypes import DataType
from sardonyx.ir import Node
from sardonyx.ops.views.activation import Clip, Selu
from sardonyx.providers.cpu.qlinear import QLINEAR
from sardonyx.providers.cpu.quantization import QUANTIZATION
from sardonyx.providers.expressions import expression_of

__all__ = [
    "ELEMENTWISE",
    "MICROSOFT_ELEMENTWISE",
    "ElementwiseSpec",
    "argument_of",
    "element_type",
    "expression",
    "expression_key",
    "expression_symbol",
    "is_data",
    "scalar_of",
]

Operands = Sequence["ElementExpr | None"]
Build = Callable[[Node, Operands], ElementExpr]


@dataclasses.dataclass(frozen=True, slots=True)
class ElementwiseSpec:
    """What an element-wise node computes."""

    expr: ElementExpr
    """One element of its output; argument i is the element of input i."""
    reads: frozenset[int]
    """The inputs that are read as tensors: not those left out, nor constants of one element, which are part of the expression."""
    is_open: bool = False
    """Whether only sizes show along which dimensions an input is repeated, the last one among them."""


@functools.cache
def element_type(dtype: DataType | None) -> Type | None:
    """Return the kernel compiler's type of elements of `dtype`, or None where kernels do not compute with it."""
    if dtype is None or dtype is DataType.UNDEFINED:
        return None
    try:
        return of_dtype(dtype.numpy)
    except KeyError:
        return None


def expression(node: Node, operands: Operands) -> ElementExpr:
    """Return what the node computes for one element.

    Args:
        node: an element-wise node.
        operands: for each input its expression, None for one left out.

    Operands of 16 bits are computed with in float32, and what comes out is rounded once.

    Raises:
        TypeError: the operator is not defined for these types.
    """
    custom = expression_of(node)
    if custom is not None:
        return custom.apply(node.attributes, operands)
    _require_defined(node.op_type, operands)
    build = QLINEAR.get(node.op_type) or ELEMENTWISE[node.op_type]
    if node.op_type in _TYPED:
        return build(node, operands)
    made = build(node, [operand.to(F32) if operand is not None and operand.type.is_narrow else operand for operand in operands])
    kept = operands[1 if node.op_type == "Where" else 0]
    return made if made.type == BOOL or kept is None else made.to(kept.type)


def _require_defined(op_type: str, operands: Operands) -> None:
    kinds = [operand.type for operand in operands if operand is not None]
    defined = _DEFINED_FOR.get(op_type, _FLOATS)
    wrong = next((kind for kind in kinds if kind.kind not in defined), None)
    if wrong is not None:
        raise TypeError(f"{op_type} of {wrong.kind.value} elements of {wrong.bits} bits")
    compared = kinds[1:] if op_type == "Where" else kinds
    if len(set(compared)) > 1 and op_type not in _MIXED:
        raise TypeError(f"{op_type} of elements of different types")


def expression_key(outputs: Sequence[ElementExpr]) -> str:
    """Return text that two lists of expressions share if, and only if, they compute the same."""
    if len(outputs) == 1 and not outputs[0].operands:
        return _leaf_key(outputs[0].primitive, outputs[0].type, repr(outputs[0].value))
    steps, results = number(outputs)
    words = (_word(step.primitive, step.type, step.operands, step.value) for step in steps)
    return ";".join(words) + f"->{results}"


@functools.lru_cache(maxsize=1024)
def _leaf_key(primitive: str, kind: Type, value: str) -> str:
    """Return the key of one leaf: what each product without a tail stores."""
    return f"{_word(primitive, kind, (), value)}->[0]"


def _word(primitive: str, kind: Type, operands: tuple[int, ...], value: object) -> str:
    return f"{primitive}:{kind}:{kind.kind.value}:{operands}:{value}"


def expression_symbol(target: Target, prefix: str, outputs: Sequence[ElementExpr], *parts: str) -> str:
    """Return a kernel's name: the same for equal expressions and parts, as in map_of_3f2a91b04c1d_avx512."""
    digest = sha256(expression_key(outputs).encode()).hexdigest()[:12]
    return "_".join([prefix, *(part for part in parts if part), digest, target.isa])


def scalar_of(node: Node, index: int) -> float | int | bool | None:
    """Return input `index` as a number where it is a constant of one element, else None."""
    value = node.input(index)
    if value is None or value.constant is None or value.constant.size != 1:
        return None
    item: float | int | bool = value.constant.numpy().reshape(()).item()
    return item


def is_data(op_type: str, index: int, number: float, kind: Type) -> bool:
    """Return whether a constant of one element is data of a kernel rather than part of its code.

    Scales and zero points are, and what floats are added to or multiplied by: models have one for each layer. Numbers of a few bits
    (1, 0.5, -2) are written by architectures, not learned; they stay in the code, where multiplying by them may be free.
    """
    if op_type in QUANTIZATION or op_type in QLINEAR:
        return index > 0
    is_short = abs(number) <= _MOST_IN_CODE and float(number * _STEPS).is_integer()
    return op_type in _LEARNED and kind in (F32, F64) and not is_short


_LEARNED = frozenset(("Add", "Div", "Mul", "Sub"))
_STEPS, _MOST_IN_CODE = 16.0, 4.0
"""A number of a few bits is a multiple of 1 / _STEPS, and at most _MOST_IN_CODE: so few that one kernel for each is no matter."""


def _plain(name: str) -> Build:
    return lambda node, operands: OPERATORS[name](*[operand for operand in operands if operand is not None])


def _with(name: str, **defaults: float) -> Build:
    """Return an operator with float attributes, each with the standard's default."""
    return lambda node, operands: OPERATORS[name](operands[0], **{key: node.number(key, value) for key, value in defaults.items()})


def _folded(name: str) -> Build:
    """Return a variadic operator as a chain of binary ones."""

    def build(node: Node, operands: Operands) -> ElementExpr:
        result, *rest = (operand for operand in operands if operand is not None)
        for operand in rest:
            result = OPERATORS[name](result, operand)
        return result

    return build


def _mean(node: Node, operands: Operands) -> ElementExpr:
    return _folded("add")(node, operands) * (1.0 / len(operands))


def _clip(node: Node, operands: Operands) -> ElementExpr:
    """Clip; limits that are inputs and left out are the greatest finite numbers of the type."""
    x, limits = _given(operands, 0), Clip.of(node).limits
    if limits is not None:
        return OPERATORS["clip"](x, *limits)
    largest = _LARGEST.get(node.inputs[0].dtype) if node.inputs[0] is not None else None
    low, high = (operands[index] if len(operands) > index else None for index in (1, 2))
    return OPERATORS["clip"](x, _or_limit(low, largest, -1), _or_limit(high, largest, 1))


def _or_limit(limit: ElementExpr | None, largest: float | None, sign: int) -> ElementExpr | float | None:
    return sign * largest if limit is None and largest is not None else limit


def _cast(node: Node, operands: Operands) -> ElementExpr:
    kind, x = element_type(node.outputs[0].dtype), _given(operands, 0)
    if kind is None:
        raise TypeError(f"{x.type.name} is not converted to {node.outputs[0].dtype}")
    return x.to(kind)


def _bit_shift(node: Node, operands: Operands) -> ElementExpr:
    """Return x shifted by y places; by a number that is negative or too large only copies of what moves in are left."""
    x, y = _given(operands, 0), _given(operands, 1)
    direction = node.text("direction", "")
    if direction not in ("LEFT", "RIGHT"):
        raise TypeError(f"direction={direction!r}, expected LEFT or RIGHT")
    if direction == "LEFT" or x.type.kind is not Kind.SIGNED:
        return OPERATORS["shift_left" if direction == "LEFT" else "shift_right"](x, y)
    last = x.type.bits - 1
    places = OPERATORS["select"]((y >= 0) & (y <= last), y, constant(last, x.type))
    return OPERATORS["shift_right"](x, places)


def _celu(node: Node, operands: Operands) -> ElementExpr:
    alpha = node.number("alpha", 1.0)
    if alpha == 0 or not math.isfinite(alpha):
        raise TypeError(f"alpha={alpha}, expected a finite number other than 0")
    return OPERATORS["celu"](operands[0], alpha=alpha)


def _gelu(node: Node, operands: Operands) -> ElementExpr:
    names = {"none": "gelu", "tanh": "gelu_tanh"}
    approximation = node.text("approximate", "none")
    if approximation not in names:
        raise TypeError(f"approximate={approximation!r}, expected none or tanh")
    return OPERATORS[names[approximation]](operands[0])


def _mod(node: Node, operands: Operands) -> ElementExpr:
    return OPERATORS["remainder" if node.flag("fmod") else "modulo"](*operands)


def _logical(primitive: str) -> Build:
    return lambda node, operands: ElementExpr(
        primitive, BOOL, tuple(operand.to(BOOL) for operand in operands if operand is not None)
    )


def _not(node: Node, operands: Operands) -> ElementExpr:
    return _given(operands, 0).eq(constant(False, BOOL))


def _is_infinite(node: Node, operands: Operands) -> ElementExpr:
    return OPERATORS["is_infinite"](
        operands[0], negative=node.flag("detect_negative", True), positive=node.flag("detect_positive", True)
    )


def _pow(node: Node, operands: Operands) -> ElementExpr:
    """Raise to a power; small whole powers are multiplied out; one of another type than the base is taken in a type for both."""
    base, power, number = _given(operands, 0), _given(operands, 1), scalar_of(node, 1)
    if number in _SMALL_POWERS and (base.type.is_float or power.type.is_integer):
        return functools.reduce(ElementExpr.__mul__, [base] * int(number))
    if not base.type.is_float and power.type.is_integer:
        return _integer_power(base, power)
    if power.type == base.type:
        return OPERATORS["power"](base, power if number is None else number)
    return ElementExpr("power", F64, (base.to(F64), power.to(F64))).to(base.type)


def _integer_power(base: ElementExpr, power: ElementExpr) -> ElementExpr:
    """Compute in the wider type, with the power's sign; 0 to a negative power is the least integer of the base."""
    wide = power.type if power.type.bits >= base.type.bits else Type(base.type.element, base.type.bits, power.type.kind)
    found = ElementExpr("power", wide, (base.to(wide), power.to(wide))).to(base.type)
    if wide.bits == base.type.bits or wide.kind is Kind.UNSIGNED:
        return found
    least = constant(-(2 ** (base.type.bits - 1)), base.type)
    return OPERATORS["select"](base.eq(0) & (power < 0), least, found)


def _selu(node: Node, operands: Operands) -> ElementExpr:
    view = Selu.of(node)
    return OPERATORS["selu"](operands[0], alpha=view.alpha, gamma=view.gamma)


def _shrink(node: Node, operands: Operands) -> ElementExpr:
    return OPERATORS["shrink"](operands[0], bias=node.number("bias", 0.0), threshold=node.number("lambd", 0.5))


def _swiglu(node: Node, operands: Operands) -> ElementExpr:
    gate, linear = (value.shape if value is not None else None for value in node.inputs[:2])
    if gate is None or gate != linear:
        raise TypeError(f"SwiGLU of inputs of shapes {gate} and {linear}, which are not known to be one")
    return OPERATORS["swish"](operands[0], node.number("alpha", 1.0)) * _given(operands, 1)


def _where(node: Node, operands: Operands) -> ElementExpr:
    if _given(operands, 0).type != BOOL:
        raise TypeError("a condition that is not of type bool")
    return OPERATORS["select"](*operands)


def _given(operands: Operands, index: int) -> ElementExpr:
    found = operands[index]
    if found is None:
        raise TypeError(f"input {index} is left out")
    return found


ELEMENTWISE: Mapping[str, Build] = {
    **{
        name: _plain(name.lower())
        for name in (
            "Abs",
            "Acos",
            "Acosh",
            "Add",
            "Asin",
            "Asinh",
            "Atan",
            "Atanh",
            "Ceil",
            "Cos",
            "Cosh",
            "Div",
            "Erf",
            "Exp",
            "Floor",
            "Log",
            "Mul",
            "Neg",
            "Reciprocal",
            "Relu",
            "Round",
            "Sigmoid",
            "Sign",
            "Sin",
            "Sinh",
            "Softplus",
            "Softsign",
            "Sqrt",
            "Sub",
            "Tan",
            "Tanh",
            "Mish",
        )
    },
    "And": _logical("and"),
    "BitShift": _bit_shift,
    "BitwiseAnd": _plain("and"),
    "BitwiseNot": _plain("not"),
    "BitwiseOr": _plain("or"),
    "BitwiseXor": _plain("xor"),
    "Cast": _cast,
    "Celu": _celu,
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
    "Selu": _selu,
    "Shrink": _shrink,
    "Sum": _folded("add"),
    "SwiGLU": _swiglu,
    "Swish": _with("swish", alpha=1.0),
    "ThresholdedRelu": _with("thresholded_relu", alpha=1.0),
    "Where": _where,
    "Xor": _logical("xor"),
    **QUANTIZATION,
}
"""Operator -> what it computes."""

MICROSOFT_ELEMENTWISE = frozenset((*QLINEAR, *QUANTIZATION))
"""Operators of com.microsoft that are element-wise."""

_LARGEST: Mapping[DataType | None, float] = {
    DataType.FLOAT16: 65504.0,
    DataType.BFLOAT16: float.fromhex("0x1.FEp127"),
    DataType.FLOAT: float.fromhex("0x1.FFFFFEp127"),
    DataType.DOUBLE: sys.float_info.max,
}
"""The greatest finite number of each type of float."""

_SMALL_POWERS = (1, 2, 3, 4)

_TYPED = frozenset(("Cast", *QUANTIZATION, *QLINEAR))
"""Operators whose entry gives the type of the output itself."""
_MIXED = frozenset(("Pow", *QUANTIZATION, *QLINEAR))
"""Operators whose operands may be of different types."""
_FLOATS = frozenset((Kind.FLOAT, Kind.HALF, Kind.BFLOAT))
_BOOLS = frozenset((Kind.BOOL,))
_INTEGERS = frozenset((Kind.SIGNED, Kind.UNSIGNED))
_NUMBERS = _FLOATS | _INTEGERS

_DEFINED_FOR: Mapping[str, frozenset[Kind]] = {
    **dict.fromkeys(
        (
            "Abs",
            "Add",
            "Clip",
            "Div",
            "Greater",
            "GreaterOrEqual",
            "Less",
            "LessOrEqual",
            "Max",
            "Min",
            "Mod",
            "Mul",
            "Neg",
            "PRelu",
            "Pow",
            "Relu",
            "Sign",
            "Sub",
            "Sum",
        ),
        _NUMBERS,
    ),
    **dict.fromkeys(("And", "Not", "Or", "Xor"), _BOOLS),
    **dict.fromkeys(("BitShift", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor"), _INTEGERS),
    **dict.fromkeys(("Cast", "Equal", "Where"), _NUMBERS | _BOOLS),
    **dict.fromkeys(QUANTIZATION, _NUMBERS),
    **dict.fromkeys(QLINEAR, _NUMBERS | _BOOLS),
}
"""The types of elements that an operator takes; floats where it is not listed."""


def argument_of(index: int, dtype: DataType) -> ElementExpr:
    """Return argument `index` of a kernel, an element of `dtype`; raises TypeError for a type that kernels do not compute with."""
    kind = element_type(dtype)
    if kind is None:
        raise TypeError(f"kernels do not compute with {dtype}")
    return argument(index, kind)
