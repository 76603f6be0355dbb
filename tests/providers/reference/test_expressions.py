"""Expressions by NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.custom_operators import mine_session

import sardonyx
from sardonyx.codegen.emit.expr import OPERATORS, PRIMITIVES, ElementExpr, argument, constant, quotient, round_saturated
from sardonyx.codegen.emit.types import BOOL, F32, I8, I32, U8
from sardonyx.errors import InvalidArgument
from sardonyx.providers.cpu.provider import NAME
from sardonyx.providers.reference.expressions import evaluate_expression

_BINARY = ("add", "sub", "mul", "div", "remainder", "min", "max", "power", "lt", "le", "gt", "ge", "eq", "ne")
_INTEGER = ("and", "or", "xor", "not", "shift_left", "shift_right")
_UNARY = sorted(PRIMITIVES - {*_BINARY, *_INTEGER, "cast", "multiply_add", "quotient", "round_saturated", "select"})


def _number(function: Any, *arrays: Any) -> Any:
    return evaluate_expression(function, arrays).tolist()


@pytest.mark.parametrize("name", [*_UNARY, *_BINARY])
def test_floats_are_computed_as_compiled_kernels_do(name: str) -> None:
    """Every primitive of floats, also of infinities, NaN and both zeros."""
    operator = sardonyx.expression_op("mine", "P")(lambda x, y: OPERATORS[name](x, *([y] if name in _BINARY else [])))
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, 2.5, -2.5, 30.0, -30.0]
    x = np.float32([*special, *np.linspace(-2, 2, 50)])
    y = np.roll(x, 3)
    text = "bool" if name in ("lt", "le", "gt", "ge", "eq", "ne", "is_nan") else "float"
    session = mine_session(f"(x: float[n], y: float[n]) -> (z: {text}[n]) {{\nz = mine.P(x, y)\n}}", operator, providers=[NAME])
    expected = session.run(None, {"x": x, "y": y})[0]
    with np.errstate(all="ignore"):
        made = evaluate_expression(operator(argument(0, F32), argument(1, F32)), [x, y])
    assert made.dtype == expected.dtype
    np.testing.assert_allclose(made, expected, rtol=2e-6, atol=3e-6)


def test_integers_divide_towards_zero_and_by_zero_to_zero() -> None:
    """As the kernel compiler defines it."""
    x, y = argument(0, I32), argument(1, I32)
    with np.errstate(all="ignore"):
        assert _number(x / y, np.int32([7, -7, 7, -7, 5]), np.int32([2, 2, -2, -2, 0])) == [3, -3, -3, 3, 0]
        assert _number(OPERATORS["remainder"](x, y), np.int32([7, -7]), np.int32([2, 2])) == [1, -1]


def test_bits_and_shifts() -> None:
    """A shift by the width or more gives 0."""
    x, y = argument(0, U8), argument(1, U8)
    assert _number(OPERATORS["shift_left"](x, y), np.uint8([3, 3, 3]), np.uint8([1, 7, 8])) == [6, 128, 0]
    assert _number(OPERATORS["shift_right"](x, y), np.uint8([128, 128]), np.uint8([7, 9])) == [1, 0]
    assert _number((x & y) | (x ^ y), np.uint8([12]), np.uint8([10])) == [14]
    assert _number(~x, np.uint8([1])) == [254]


def test_conversions_truncate_and_ask_for_nonzero() -> None:
    """Floats to integers, and anything to bool."""
    x = argument(0, F32)
    assert _number(x.to(I8), np.float32([1.9, -1.9])) == [1, -1]
    assert _number(x.to(BOOL), np.float32([0.0, 0.5])) == [False, True]


def test_a_choice_takes_either_side() -> None:
    """By the condition of each element."""
    x = argument(0, F32)
    assert _number(OPERATORS["select"](x < 0, constant(7, F32), x), np.float32([-1, 2])) == [7, 2]


def test_a_product_and_a_sum_are_rounded_once() -> None:
    """Of float32: 2^-24 beside 1 survives the product; of integers it is the sum."""
    x, y = argument(0, F32), argument(1, I32)
    almost = np.float32(1 + 2**-12)
    assert _number(OPERATORS["multiply_add"](x, x, -(1.0 + 2**-11)), np.array([almost])) == [2**-24]
    assert _number(OPERATORS["multiply_add"](y, y, 1), None, np.int32([3])) == [10]


@pytest.mark.parametrize(("zero", "found"), [(0, [0, 2, 255, 0, 0]), (10, [10, 12, 255, 0, 0])])
def test_rounding_saturates(zero: int, found: list[int]) -> None:
    """Ties go to even before the zero point is added; NaN is the least number."""
    expr = round_saturated(argument(0, F32), constant(zero, I32), U8)
    assert _number(expr, np.float32([0.5, 1.5, np.inf, -1e9, np.nan])) == found


def test_a_quotient_is_what_it_says() -> None:
    """By one divisor, whose inverse is not needed here."""
    expr = quotient(argument(0, F32), constant(0.25, F32), constant(4.0, F32))
    assert _number(expr, np.float32([0.5, -3, np.inf])) == [2, -12, np.inf]


def test_an_argument_that_is_left_out_cannot_be_read() -> None:
    """The message names it."""
    with pytest.raises(InvalidArgument, match="reads input 0, which is left out"):
        evaluate_expression(ElementExpr("argument", F32, (), 0), [None])
