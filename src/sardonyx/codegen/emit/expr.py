"""Element-wise expressions: what is computed for one element, without saying on which machine.

    x, bias = argument(0, F32), argument(1, F32)
    gelu = OPERATORS["gelu"](x + bias)
    number(gelu)                     the steps in order, each one once

A tree is built by operators and by the functions in `OPERATORS`, and is never changed. Its leaves are arguments, constants, and
numbers that come with a call (`scalars`); its inner nodes are primitives, of which a printer (LLVM in `expr_llvm`) knows each.
Every other operator is written here in primitives, once, for all printers. Meaning follows NumPy: NaN passes through min and max,
rounding is to even, integer arithmetic wraps around.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from sardonyx.codegen.emit.types import BOOL, F32, F64, Kind, Type
from sardonyx.lazy_dataclasses import dataclass

__all__ = [
    "OPERATORS",
    "PRIMITIVES",
    "ElementExpr",
    "Like",
    "Number",
    "NumberedPrimitive",
    "argument",
    "constant",
    "has_primitive",
    "number",
    "quotient",
    "rebuild",
    "round_saturated",
    "substitute",
]

Number: TypeAlias = int | float | bool


@dataclass(frozen=True, slots=True, eq=False)
class ElementExpr:
    """One node of a tree."""

    primitive: str
    """What it computes: a leaf (`argument`, `constant`, `scalar`, `parameter`), or a name in PRIMITIVES."""
    type: Type
    """The scalar type of the result."""
    operands: tuple[ElementExpr, ...] = ()
    """What it computes from."""
    value: Number = 0
    """The number of an argument or parameter, or the constant or scalar."""

    __array_ufunc__ = None
    """NumPy computes with arrays only: operators beside its numbers are those here, its functions raise TypeError."""

    def __add__(self, other: Like) -> ElementExpr:
        """Return the sum."""
        return _same("add", self, other)

    def __radd__(self, other: Number) -> ElementExpr:
        """Return the sum."""
        return _same("add", _like(other, self), self)

    def __sub__(self, other: Like) -> ElementExpr:
        """Return the difference."""
        return _same("sub", self, other)

    def __rsub__(self, other: Number) -> ElementExpr:
        """Return the difference."""
        return _same("sub", _like(other, self), self)

    def __mul__(self, other: Like) -> ElementExpr:
        """Return the product."""
        return _same("mul", self, other)

    def __rmul__(self, other: Number) -> ElementExpr:
        """Return the product."""
        return _same("mul", _like(other, self), self)

    def __truediv__(self, other: Like) -> ElementExpr:
        """Return the quotient; of integers truncated towards zero, and 0 for a divisor of 0."""
        return _same("div", self, other)

    def __rtruediv__(self, other: Number) -> ElementExpr:
        """Return the quotient."""
        return _same("div", _like(other, self), self)

    def __neg__(self) -> ElementExpr:
        """Return the negation."""
        return _same("neg", self)

    def __and__(self, other: Like) -> ElementExpr:
        """Return the bitwise and."""
        return _same("and", self, other)

    def __or__(self, other: Like) -> ElementExpr:
        """Return the bitwise or."""
        return _same("or", self, other)

    def __xor__(self, other: Like) -> ElementExpr:
        """Return the bitwise exclusive or."""
        return _same("xor", self, other)

    def __invert__(self) -> ElementExpr:
        """Return the bitwise negation."""
        return _same("not", self)

    def __lt__(self, other: Like) -> ElementExpr:
        """Return whether less."""
        return _relation("lt", self, other)

    def __le__(self, other: Like) -> ElementExpr:
        """Return whether less or equal."""
        return _relation("le", self, other)

    def __gt__(self, other: Like) -> ElementExpr:
        """Return whether greater."""
        return _relation("gt", self, other)

    def __ge__(self, other: Like) -> ElementExpr:
        """Return whether greater or equal."""
        return _relation("ge", self, other)

    def __pow__(self, other: Like) -> ElementExpr:
        """Return the power."""
        return power(self, other)

    def __abs__(self) -> ElementExpr:
        """Return the absolute value."""
        return _same("abs", self)

    def __bool__(self) -> bool:
        """Raise TypeError: an expression stands for every element, so Python cannot choose by it."""
        raise TypeError("an expression has no truth value, as it stands for every element; choose by where(condition, yes, no)")

    def eq(self, other: Like) -> ElementExpr:
        """Return whether equal."""
        return _relation("eq", self, other)

    def ne(self, other: Like) -> ElementExpr:
        """Return whether not equal."""
        return _relation("ne", self, other)

    def to(self, kind: Type) -> ElementExpr:
        """Return the value converted to another type: float to integer truncates, to bool asks whether it is not 0."""
        return self if kind == self.type else ElementExpr("cast", kind, (self,))


Like: TypeAlias = ElementExpr | int | float | bool
"""An expression, or a number that takes the type of the expression beside it."""

_ARITHMETIC = (
    "add",
    "sub",
    "mul",
    "div",
    "remainder",
    "neg",
    "abs",
    "min",
    "max",
    "and",
    "or",
    "xor",
    "not",
    "shift_left",
    "shift_right",
    "select",
    "multiply_add",
)
_EXTREMES = ("max", "min")
_RELATIONS = ("lt", "le", "gt", "ge", "eq", "ne", "is_nan")
_ROUNDINGS = ("floor", "ceil", "trunc", "round", "sqrt")
_FUNCTIONS = (
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cos",
    "cosh",
    "erf",
    "exp",
    "expm1",
    "gelu",
    "gelu_tanh",
    "log",
    "log1p",
    "power",
    "sigmoid",
    "sin",
    "sinh",
    "softplus",
    "tan",
    "tanh",
)

PRIMITIVES = frozenset(("cast", "quotient", "round_saturated", *_ARITHMETIC, *_RELATIONS, *_ROUNDINGS, *_FUNCTIONS))
"""What a printer must know. `remainder` has the sign of the dividend; shifts by the width or more give 0; `multiply_add` of x, y
and z is x y + z, rounded once where the processor does that; `quotient` and `round_saturated` are the functions of that name."""


def argument(index: int, kind: Type) -> ElementExpr:
    """Return the element of argument `index`."""
    return ElementExpr("argument", kind, (), index)


def constant(value: Number, kind: Type) -> ElementExpr:
    """Return a number of type `kind`."""
    return ElementExpr("constant", kind, (), value)


@dataclass(frozen=True, slots=True)
class NumberedPrimitive:
    """One primitive of a numbered expression; operands are numbers of earlier steps."""

    primitive: str
    type: Type
    operands: tuple[int, ...]
    value: str
    """The constant or argument number, spelled so that equal values are equal text (-0.0 and 0.0 are not)."""
    expr: ElementExpr
    """A node that this step computes."""

    @property
    def key(self) -> tuple[str, Type, tuple[int, ...], str]:
        """What two steps share if they compute the same."""
        return self.primitive, self.type, self.operands, self.value


def number(outputs: Sequence[ElementExpr]) -> tuple[list[NumberedPrimitive], list[int]]:
    """Order the nodes of some trees so that operands come first and equal nodes once.

    Returns:
        The steps, and for each output the number of its step.
    """
    steps: list[NumberedPrimitive] = []
    by_key: dict[tuple[str, Type, tuple[int, ...], str], int] = {}
    by_node: dict[int, int] = {}
    for node in _operands_first(outputs):
        operands = tuple(by_node[id(operand)] for operand in node.operands)
        step = NumberedPrimitive(node.primitive, node.type, operands, repr(node.value), node)
        if step.key not in by_key:
            by_key[step.key] = len(steps)
            steps.append(step)
        by_node[id(node)] = by_key[step.key]
    return steps, [by_node[id(output)] for output in outputs]


def substitute(expr: ElementExpr, arguments: Mapping[int, ElementExpr]) -> ElementExpr:
    """Return the tree with arguments replaced: how a chain of operators becomes one expression.

    Raises:
        TypeError: a replacement has another type than the argument.
    """

    def replace(node: ElementExpr) -> ElementExpr:
        replacement = arguments.get(int(node.value)) if node.primitive == "argument" else None
        if replacement is not None and replacement.type != node.type:
            raise TypeError(f"argument {node.value} is {node.type}, its replacement is {replacement.type}")
        return node if replacement is None else replacement

    return rebuild(expr, replace)


def rebuild(expr: ElementExpr, replace: Callable[[ElementExpr], ElementExpr]) -> ElementExpr:
    """Return the tree with each node replaced, operands first: `replace` gets a node whose operands are replaced already."""
    if not expr.operands:
        return replace(expr)
    made: dict[int, ElementExpr] = {}
    for node in _operands_first([expr]):
        operands = tuple([made[id(operand)] for operand in node.operands])
        unchanged = all(map(operator.is_, operands, node.operands))
        made[id(node)] = replace(node if unchanged else _with_operands(node, operands))
    return made[id(expr)]


def has_primitive(expr: ElementExpr, primitive: str) -> bool:
    """Return whether a node of the tree is this primitive."""
    if not expr.operands:
        return expr.primitive == primitive
    return any(node.primitive == primitive for node in _operands_first([expr]))


def _with_operands(node: ElementExpr, operands: tuple[ElementExpr, ...]) -> ElementExpr:
    if node.primitive in _EXTREMES:
        return _same(node.primitive, *operands)
    return ElementExpr(node.primitive, node.type, operands, node.value)


def _operands_first(outputs: Sequence[ElementExpr]) -> Iterator[ElementExpr]:
    """Yield each node once, after its operands; without recursion, since chains may be long."""
    seen: set[int] = set()
    stack = list(reversed(outputs))
    while stack:
        node = stack[-1]
        waiting = [operand for operand in node.operands if id(operand) not in seen]
        if waiting and id(node) not in seen:
            waiting.reverse()
            stack += waiting
            continue
        stack.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node


def _like(value: Like, other: ElementExpr) -> ElementExpr:
    return value if isinstance(value, ElementExpr) else constant(value, other.type)


def _same(primitive: str, first: ElementExpr, *rest: Like) -> ElementExpr:
    """Return a primitive whose operands and result have one type."""
    operands = (first, *[_like(value, first) for value in rest])
    kind = first.type
    if any(operand.type is not kind and operand.type != kind for operand in operands):
        raise TypeError(f"{primitive} of {', '.join(f'{o.type} ({o.type.kind.value})' for o in operands)}: convert with .to()")
    if primitive in _EXTREMES and any(operand.primitive == "constant" and math.isnan(operand.value) for operand in operands):
        return constant(math.nan, first.type)
    return ElementExpr(primitive, first.type, operands)


def _relation(primitive: str, first: ElementExpr, *rest: Like) -> ElementExpr:
    return ElementExpr(primitive, BOOL, _same(primitive, first, *rest).operands)


def _primitive(name: str) -> Callable[..., ElementExpr]:
    def build(first: ElementExpr, *rest: Like) -> ElementExpr:
        return _relation(name, first, *rest) if name in _RELATIONS else _same(name, first, *rest)

    return build


def select(condition: ElementExpr, yes: Like, no: Like) -> ElementExpr:
    """Return `yes` where `condition` holds, else `no`; one of them is an expression."""
    if not isinstance(yes, ElementExpr):
        if not isinstance(no, ElementExpr):
            raise TypeError("select needs an expression on one side to know its type")
        yes = _like(yes, no)
    first, second = _same("select", yes, no).operands
    return ElementExpr("select", first.type, (condition, first, second))


def quotient(x: ElementExpr, divisor: ElementExpr, inverse: ElementExpr) -> ElementExpr:
    """Return float32 x / divisor, for rounding it to an integer of 16 bits at most: exact there, and near it elsewhere.

    Args:
        x: what is divided.
        divisor: one number for all elements, which `is_fit_divisor`.
        inverse: 1 / divisor in float32.
    """
    return ElementExpr("quotient", x.type, (x, divisor, inverse))


def round_saturated(x: ElementExpr, zero: ElementExpr, kind: Type) -> ElementExpr:
    """Return float32 x rounded to nearest, ties to even, plus `zero` (int32), saturated to `kind` of 8 or 16 bits.

    NaN becomes the least number. The limits less the zero point are operands too: where that is a number, so are they.
    """
    span = 1 << kind.bits
    low = -span // 2 if kind.kind is Kind.SIGNED else 0
    limits = (_less(limit, zero) for limit in (low, low + span - 1))
    return ElementExpr("round_saturated", kind, (x, zero, *limits))


def _less(limit: int, zero: ElementExpr) -> ElementExpr:
    if zero.primitive in ("constant", "scalar"):
        return ElementExpr(zero.primitive, F32, (), limit - zero.value)
    return constant(limit, F32) - zero.to(F32)


def clip(x: ElementExpr, low: Like | None = None, high: Like | None = None) -> ElementExpr:
    """Return the value moved into [low, high]; `high` wins where they cross."""
    raised = x if low is None else _same("max", x, low)
    return raised if high is None else _same("min", raised, high)


def sign(x: ElementExpr) -> ElementExpr:
    """Return -1, 0 or 1; NaN stays."""
    signed = select(x > 0, 1, select(x < 0, constant(-1, x.type), constant(0, x.type))) if _has_sign(x) else (x.ne(0)).to(x.type)
    return select(_relation("is_nan", x), x, signed) if x.type.is_float else signed


def _has_sign(x: ElementExpr) -> bool:
    return x.type.kind.value in ("float", "signed")


def modulo(x: ElementExpr, y: Like) -> ElementExpr:
    """Return the remainder with the sign of the divisor, also of a zero, as Python's %; 0 for an integer divisor of 0."""
    divisor = _like(y, x)
    rest = _same("remainder", x, divisor)
    if not _has_sign(x):
        return rest
    if x.type.is_float:
        zero = select(divisor < 0, constant(-0.0, x.type), constant(0.0, x.type))
        rest = select(rest.eq(0), zero, rest)
    return select(rest.ne(0) & (rest < 0).ne(divisor < 0), rest + divisor, rest)


def is_infinite(x: ElementExpr, *, negative: bool = True, positive: bool = True) -> ElementExpr:
    """Return whether x is an infinity of one of the signs asked for."""
    sides = [x.eq(value) for wanted, value in ((negative, -math.inf), (positive, math.inf)) if wanted]
    if not sides:
        return constant(False, BOOL)
    return sides[0] if len(sides) == 1 else sides[0] | sides[1]


def power(x: ElementExpr, y: Like) -> ElementExpr:
    """Raise x to the power of y; small whole powers and roots are multiplied out, integers go through float64."""
    if not x.type.is_float:
        exponent = y.to(F64) if isinstance(y, ElementExpr) else y
        return power(x.to(F64), exponent).to(x.type)
    simple = None if isinstance(y, ElementExpr) else _SIMPLE_POWERS.get(float(y))
    return simple(x) if simple else _same("power", x, y)


def _square(x: ElementExpr) -> ElementExpr:
    return x * x


_SIMPLE_POWERS: Mapping[float, Callable[[ElementExpr], ElementExpr]] = {
    1.0: lambda x: x,
    2.0: _square,
    3.0: lambda x: _square(x) * x,
    4.0: lambda x: _square(_square(x)),
    -1.0: lambda x: 1 / x,
}


def elu(x: ElementExpr, alpha: float = 1.0) -> ElementExpr:
    """Keep x, but take alpha (e^x - 1) below 0."""
    return select(x < 0, _same("expm1", x) * alpha, x)


def selu(x: ElementExpr, alpha: float = 1.67326319217681884765625, gamma: float = 1.05070102214813232421875) -> ElementExpr:
    """Scale elu by gamma."""
    return elu(x, alpha) * gamma


def celu(x: ElementExpr, alpha: float = 1.0) -> ElementExpr:
    """Keep x, but take alpha (e^(x / alpha) - 1) below 0."""
    return select(x < 0, _same("expm1", x / alpha) * alpha, x)


def hard_sigmoid(x: ElementExpr, alpha: float = 0.2, beta: float = 0.5) -> ElementExpr:
    """Move alpha x + beta into [0, 1]."""
    return clip(x * alpha + beta, 0, 1)


def shrink(x: ElementExpr, bias: float = 0.0, threshold: float = 0.5) -> ElementExpr:
    """Move x towards 0 by `bias` where |x| is above the threshold, else 0."""
    zero = constant(0, x.type)
    return select(x < -threshold, x + bias, select(x > threshold, x - bias, zero))


def swish(x: ElementExpr, alpha: float = 1.0) -> ElementExpr:
    """Multiply x by sigmoid(alpha x)."""
    return x * _same("sigmoid", x if alpha == 1.0 else x * alpha)


OPERATORS: Mapping[str, Callable[..., ElementExpr]] = {
    **{name: _primitive(name) for name in sorted(PRIMITIVES - {"cast", "select", "power"})},
    "cast": lambda x, kind: x.to(kind),
    "celu": celu,
    "clip": clip,
    "elu": elu,
    "hard_sigmoid": hard_sigmoid,
    "hard_swish": lambda x: x * hard_sigmoid(x, 1 / 6, 0.5),
    "is_infinite": is_infinite,
    "leaky_relu": lambda x, alpha=0.01: select(x < 0, x * alpha, x),
    "mish": lambda x: x * _same("tanh", _same("softplus", x)),
    "modulo": modulo,
    "power": power,
    "prelu": lambda x, slope: select(x < 0, x * slope, x),
    "reciprocal": lambda x: 1 / x,
    "relu": lambda x: _same("max", x, 0),
    "reverse_sqrt": lambda x: 1 / _same("sqrt", x),
    "select": select,
    "selu": selu,
    "shrink": shrink,
    "sign": sign,
    "softsign": lambda x: x / (_same("abs", x) + 1),
    "swish": swish,
    "thresholded_relu": lambda x, alpha=1.0: select(x > alpha, x, constant(0, x.type)),
}
"""Every element-wise operator by its name: a function from expressions (and numbers) to an expression."""
