"""Machine code that computes sizes: a list of instructions on integers, each of which has a register for its result.

    registers = sizes of the inputs | constants | a result for each instruction
    instruction = operation, left register, right register

An instruction may be a condition. Where one does not hold, where a divisor is 0, or where a number gets beyond 62 bits, the
computation ends and says so; whoever asked then computes the sizes in another way. Results and conditions are those of Python's
integers: quotients are rounded towards minus infinity, remainders have the divisor's sign.
"""

from __future__ import annotations

from sardonyx.codegen.emit.builder import Function, Variable
from sardonyx.codegen.emit.module import Address, Module
from sardonyx.codegen.emit.types import BOOL, F64, I64
from sardonyx.codegen.emit.values import Register

__all__ = ["CONDITIONS", "INSTRUCTION_WORDS", "OPERATIONS", "Instruction", "write_replay"]

Instruction = tuple[str, int, int]
"""An operation and its two registers."""
CONDITIONS = ("==", "!=", "<", "<=")
OPERATIONS = ("+", "-", "*", "//", "%", "&", "<<", ">>", "float", *CONDITIONS)
"""What instructions do; the number of one is its place. The result of a condition is not used; that of "float" is the bits of the
left operand as a float64, with which nothing more is computed."""
INSTRUCTION_WORDS = 3

_MOST_BITS = 62
_PLAIN = Address(I64, unique=False)


def write_replay(module: Module) -> Function:
    """Write (registers, number of the first result, instructions, their number) -> whether all results are computed."""
    with module.function("replay", _PLAIN, _PLAIN, I64, I64, returns=BOOL) as b:
        registers, code = b.addresses
        first, count = b.arguments
        with b.loop(0, count) as number:
            instruction = code.at(number * INSTRUCTION_WORDS)
            left, right = (registers.load(instruction.load(place)) for place in (1, 2))
            result, fits = b.variable(left), b.variable(b.const(BOOL, True))
            with b.switch(instruction.load()) as operation:
                for place, sign in enumerate(OPERATIONS):
                    with operation.case(place):
                        _write(b, sign, (left, right), result, fits)
            is_float = instruction.load().eq(OPERATIONS.index("float"))
            is_small = (result.value < 1 << _MOST_BITS) & (result.value > -(1 << _MOST_BITS))
            with b.when(~(fits.value & (is_small | is_float))):
                b.give(b.const(BOOL, False))
            registers.store(result.value, first + number)
        b.give(b.const(BOOL, True))
    return b


def _write(b: Function, sign: str, operands: tuple[Register, Register], result: Variable, fits: Variable) -> None:
    """Write what one operation does: its result, or that it has none. Operands are within 62 bits."""
    left, right = operands
    match sign:
        case "+":
            result.set(left + right)
        case "-":
            result.set(left - right)
        case "&":
            result.set(left & right)
        case "*":
            fits.set(b.abs(left.to(F64) * right.to(F64)) < 2.0 ** (_MOST_BITS - 1))
            result.set(left * right)
        case "<<":
            moves = b.min(b.max(right, 0), _MOST_BITS - 1)
            result.set(left << moves)
            fits.set(right.eq(moves) & (result.value >> moves).eq(left))
        case ">>":
            fits.set(right >= 0)
            result.set(left >> b.min(b.max(right, 0), _MOST_BITS))
        case "//" | "%":
            fits.set(right.ne(0))
            divisor = b.select(fits.value, right, 1)
            rest = left % divisor
            is_off = rest.ne(0) & ((rest ^ divisor) < 0)
            if sign == "//":
                result.set(left // divisor - b.select(is_off, b.const(I64, 1), 0))
            else:
                result.set(rest + b.select(is_off, divisor, 0))
        case "float":
            result.set(left.to(F64).bits_as(I64))
        case "==":
            fits.set(left.eq(right))
        case "!=":
            fits.set(left.ne(right))
        case "<":
            fits.set(left < right)
        case "<=":
            fits.set(left <= right)
