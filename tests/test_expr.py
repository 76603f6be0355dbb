"""The functions of expressions that users write."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from sardonyx import expr
from sardonyx.codegen.emit.expr import argument, number

X = argument(0, expr.F32)
_TAKES_TWO = ("maximum", "minimum", "power")
_FUNCTIONS = [name for name in expr.__all__ if inspect.isfunction(getattr(expr, name)) and name not in (*_TAKES_TWO, "where")]


@pytest.mark.parametrize("name", _FUNCTIONS)
def test_a_function_of_one_expression_is_an_expression(name: str) -> None:
    """Of the same type, or bool."""
    made = getattr(expr, name)(X)
    assert isinstance(made, expr.ElementExpr)
    assert made.type in (expr.F32, expr.BOOL)
    assert getattr(expr, name).__doc__


@pytest.mark.parametrize(("name", "primitive"), [("maximum", "max"), ("minimum", "min"), ("power", "power")])
def test_a_function_of_two_takes_numbers_too(name: str, primitive: str) -> None:
    """A number has the type of the expression."""
    assert getattr(expr, name)(X, 2.5).primitive == primitive


def test_clip_moves_into_limits() -> None:
    """Either may be left out."""
    steps, _ = number([expr.clip(X, 0, 6)])
    assert [step.primitive for step in steps] == ["argument", "constant", "max", "constant", "min"]
    assert expr.clip(X) is X


@pytest.mark.parametrize("condition", [True, X])
def test_where_takes_a_condition(condition: Any) -> None:
    """A Python bool, as `x == 0` gives, and a number are none."""
    assert expr.where(X < 0, 0, X).primitive == "select"
    with pytest.raises(TypeError, match=r"where takes a condition such as x < 0 or x\.eq\(0\)"):
        expr.where(condition, 0, X)
