"""Sizes computed by a list of instructions, against Python's integers."""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Callable, Sequence

import pytest

from sardonyx.codegen.emit.module import Address, Module
from sardonyx.codegen.emit.types import I64
from sardonyx.codegen.float_words import float_word
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.run.replay import CONDITIONS, OPERATIONS, Instruction, write_replay
from sardonyx.codegen.target import available_levels, host_target

Replay = Callable[[Sequence[int], Sequence[Instruction]], "list[int] | None"]

NUMBERS = (0, 1, -1, 2, 3, -3, 7, 8, -8, 61, 62, 63, 64, 1 << 20, -(1 << 31), (1 << 31) + 1, (1 << 61) - 1, -(1 << 61))
COMPUTED: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "&": operator.and_,
    "<<": lambda left, right: left << min(right, 99),
    ">>": operator.rshift,
}
HELD: dict[str, Callable[[int, int], bool]] = {"==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le}


@pytest.fixture(scope="module", params=available_levels())
def replay(request: pytest.FixtureRequest) -> Replay:
    """The machine code as a function of registers and instructions, which returns the results."""
    engine = Engine(host_target(request.param))
    module = Module(engine.target)
    inner = write_replay(module)
    with module.function("entry", *[Address(I64, unique=False)] * 2, I64, I64, returns=I64, export=True) as b:
        b.give(b.call(inner, *b.addresses, *b.arguments).to(I64))
    engine.add(module)
    entry = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(
        engine.address("entry")
    )

    def run(registers: Sequence[int], code: Sequence[Instruction]) -> list[int] | None:
        words = (ctypes.c_int64 * (len(registers) + len(code)))(*registers)
        flat = [word for sign, *places in code for word in (OPERATIONS.index(sign), *places)]
        instructions = (ctypes.c_int64 * len(flat))(*flat)
        done = entry(ctypes.addressof(words), ctypes.addressof(instructions), len(registers), len(code))
        return list(words)[len(registers) :] if done & 1 else None

    run.engine = engine  # type: ignore[attr-defined]  # which holds the code
    return run


@pytest.mark.parametrize("sign", COMPUTED)
def test_a_result_is_that_of_python_or_none_where_it_is_too_large(replay: Replay, sign: str) -> None:
    """Also where Python has none: of a division by zero, of a shift by less than nothing."""
    answers = 0
    for left in NUMBERS:
        for right in NUMBERS:
            try:
                expected = COMPUTED[sign](left, right)
            except (ZeroDivisionError, ValueError):
                expected = 1 << 80
            found = replay([left, right], [(sign, 0, 1)])
            assert found in (None, [expected])
            assert found is not None or abs(expected) >= 1 << 60 or (sign == "<<" and right > 61)
            answers += found is not None
    assert answers > len(NUMBERS) ** 2 / 4


@pytest.mark.parametrize("number", [0, 1, 2, -3, (1 << 53) + 1])
def test_a_number_becomes_the_bits_of_a_float(replay: Replay, number: int) -> None:
    """As float64 rounds it."""
    assert replay([number], [("float", 0, 0)]) == [float_word(number)]


@pytest.mark.parametrize("sign", CONDITIONS)
def test_a_condition_that_does_not_hold_ends_the_computation(replay: Replay, sign: str) -> None:
    """One that holds does not."""
    for left in NUMBERS:
        for right in NUMBERS:
            found = replay([left, right], [(sign, 0, 1), ("-", 0, 0)])
            assert (found is not None) == HELD[sign](left, right)
            assert found is None or found[1] == 0


def test_instructions_use_the_results_of_earlier_ones(replay: Replay) -> None:
    """Each has the register behind the one before."""
    assert replay([10, 3, 7], [("*", 0, 1), ("+", 3, 2), ("<", 1, 4), ("//", 4, 1), ("%", 4, 0)]) == [30, 37, 3, 12, 7]


def test_no_instructions_are_done_at_once(replay: Replay) -> None:
    """Where sizes are only compared elsewhere."""
    assert replay([1], []) == []
