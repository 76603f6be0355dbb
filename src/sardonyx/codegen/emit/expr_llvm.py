"""Print element-wise expressions into the body of a kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sardonyx.codegen.emit import mathlib
from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.division import refined_quotient
from sardonyx.codegen.emit.expr import PRIMITIVES, ElementExpr, NumberedPrimitive, number
from sardonyx.codegen.emit.integer_power import integer_power
from sardonyx.codegen.emit.module import Kernel
from sardonyx.codegen.emit.narrow import from_narrow, rounded_to_odd, to_narrow
from sardonyx.codegen.emit.remainders import float_remainder, integer_quotient
from sardonyx.codegen.emit.saturate import round_clipped
from sardonyx.codegen.emit.types import F16, F32, F64, I32, Kind, Type
from sardonyx.codegen.emit.values import Register

__all__ = ["PRINTERS", "write_expressions", "write_invariants"]


Known = Sequence["Register | None"]
"""Values of the steps of some expressions, in order; None where one is not computed yet."""


def write_expressions(
    b: Function, outputs: Sequence[ElementExpr], arguments: Sequence[Register], known: Known = ()
) -> list[Register]:
    """Write what computes `outputs` from `arguments`, all of one number of lanes; equal parts are computed once.

    Args:
        b: the function to write into.
        outputs: the expressions.
        arguments: their arguments.
        known: what `write_invariants` computed of them before.
    """
    steps, results = number(outputs)
    lanes = max((argument.type.lanes for argument in arguments), default=1)
    values: list[Register] = []
    for index, step in enumerate(steps):
        value = known[index] if known else None
        values.append(_write(b, step, steps, values, arguments, lanes) if value is None else value)
    return [values[result] for result in results]


def write_invariants(b: Function, outputs: Sequence[ElementExpr], arguments: Known, lanes: int) -> list[Register | None]:
    """Write those steps of `outputs` that read no argument but the given ones, before a loop in which the others change.

    Args:
        b: the function to write into.
        outputs: the expressions.
        arguments: their arguments, None for those that change.
        lanes: how many lanes the values have.
    """
    values: list[Register | None] = []
    steps = number(outputs)[0]
    for step in steps:
        if step.primitive == "argument":
            given = arguments[int(step.expr.value)]
            values.append(None if given is None else given.splat(lanes))
        elif all(values[operand] is not None for operand in step.operands):
            values.append(_write(b, step, steps, values, (), lanes))
        else:
            values.append(None)
    return values


def _write(
    b: Function,
    step: NumberedPrimitive,
    steps: Sequence[NumberedPrimitive],
    values: Known,
    arguments: Sequence[Register],
    lanes: int,
) -> Register:
    if step.primitive == "argument":
        return arguments[int(step.expr.value)].splat(lanes)
    if step.primitive == "constant":
        return b.const(step.type.vector(lanes), step.expr.value)
    if step.primitive == "parameter":
        return _scalar(b, int(step.expr.value), step.type).splat(lanes)
    operands = _known(values, step.operands)
    if step.primitive == "cast":
        before = steps[step.operands[0]]
        if before.primitive == "round_saturated" and step.type.bits >= I32.bits:
            return round_clipped(b, *_known(values, before.operands)).to(step.type)
        return _cast(b, operands[0], step.type)
    if step.primitive == "round_saturated":
        return round_clipped(b, *operands).to(step.type)
    return PRINTERS[step.primitive](b, *operands)


def _known(values: Known, operands: Sequence[int]) -> list[Register]:
    return [value for operand in operands if (value := values[operand]) is not None]


def _scalar(b: Function, index: int, kind: Type) -> Register:
    if not isinstance(b, Kernel):
        raise TypeError(f"{b.symbol} is no kernel, so it has no scalars")
    return b.scalar(index, kind)


def _cast(b: Function, x: Register, kind: Type) -> Register:
    """Convert by value; a float that meets a small integer goes through int32, and keeps its low bits as the processor does."""
    if x.type.scalar == kind:
        return x
    if x.type.is_narrow:
        return _cast(b, from_narrow(b, x), kind)
    if kind.is_narrow:
        return to_narrow(b, rounded_to_odd(b, x) if kind == F16 and x.type.scalar == F64 else x.to(F32), kind)
    if x.type.is_float and kind.is_integer and kind.bits < 32:
        return x.to(I32).to(kind)
    return x.to(kind)


def _divide(b: Function, x: Register, y: Register) -> Register:
    if x.type.is_float:
        return x / y
    zero = y.eq(0)
    return b.select(zero, x.like(0), integer_quotient(b, x, _safe_divisor(b, x, y)))


def _remainder(b: Function, x: Register, y: Register) -> Register:
    if x.type.is_float:
        return float_remainder(b, x, y)
    divisor = _safe_divisor(b, x, y)
    return b.select(y.eq(0), x.like(0), x - integer_quotient(b, x, divisor) * divisor)


def _safe_divisor(b: Function, x: Register, y: Register) -> Register:
    """Return the divisor, but 1 where the processor would trap: for 0, and for the least integer by -1, which wraps to itself."""
    traps = y.eq(0)
    if x.type.kind is Kind.SIGNED:
        traps = traps | (y.eq(-1) & x.eq(-(2 ** (x.type.bits - 1))))
    return b.select(traps, y.like(1), y)


def _maximum(b: Function, x: Register, y: Register) -> Register:
    if y.is_constant or not x.type.is_float:
        return b.max(y, x)
    return b.select(b.is_nan(x), x, b.max(x, y))


def _minimum(b: Function, x: Register, y: Register) -> Register:
    if y.is_constant or not x.type.is_float:
        return b.min(y, x)
    return b.select(b.is_nan(x), x, b.min(x, y))


def _shift_left(b: Function, x: Register, y: Register) -> Register:
    width = x.type.bits
    return b.select(_within(y, width), x << b.select(_within(y, width), y, y.like(0)), x.like(0))


def _shift_right(b: Function, x: Register, y: Register) -> Register:
    width = x.type.bits
    return b.select(_within(y, width), x >> b.select(_within(y, width), y, y.like(0)), x.like(0))


def _within(y: Register, width: int) -> Register:
    small = y < width
    return small & (y >= 0) if y.type.kind is Kind.SIGNED else small


def _math(name: str) -> Callable[[Function, Register], Register]:
    return lambda b, x: b.call_math(name, x) if x.type.is_float else x


def _function(name: str) -> Callable[[Function, Register], Register]:
    return lambda b, x: mathlib.FUNCTIONS[name](b, x)


PRINTERS: Mapping[str, Callable[..., Register]] = {
    **{name: _function(name) for name in mathlib.FUNCTIONS},
    "abs": lambda b, x: b.abs(x),
    "add": lambda b, x, y: x + y,
    "and": lambda b, x, y: x & y,
    "ceil": _math("ceil"),
    "div": _divide,
    "eq": lambda b, x, y: x.eq(y),
    "floor": _math("floor"),
    "ge": lambda b, x, y: x >= y,
    "gt": lambda b, x, y: x > y,
    "is_nan": lambda b, x: b.is_nan(x),
    "le": lambda b, x, y: x <= y,
    "lt": lambda b, x, y: x < y,
    "max": _maximum,
    "min": _minimum,
    "mul": lambda b, x, y: x * y,
    "multiply_add": lambda b, x, y, z: b.fma(x, y, z) if x.type.is_float else x * y + z,
    "ne": lambda b, x, y: x.ne(y),
    "neg": lambda b, x: -x,
    "not": lambda b, x: ~x,
    "or": lambda b, x, y: x | y,
    "power": lambda b, x, y: mathlib.power(b, x, y) if x.type.is_float else integer_power(b, x, y),
    "quotient": refined_quotient,
    "remainder": _remainder,
    "round": lambda b, x: b.round_even(x) if x.type.is_float else x,
    "select": lambda b, condition, yes, no: b.select(condition, yes, no),
    "shift_left": _shift_left,
    "shift_right": _shift_right,
    "sqrt": lambda b, x: b.sqrt(x),
    "sub": lambda b, x, y: x - y,
    "trunc": _math("trunc"),
    "xor": lambda b, x, y: x ^ y,
}
"""How each primitive is written."""

assert PRINTERS.keys() | {"cast", "round_saturated"} == PRIMITIVES
