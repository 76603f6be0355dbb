"""Expressions that fold rows, and how they are split into steps."""

from __future__ import annotations

import pytest

from sardonyx.codegen.emit.expr import OPERATORS, argument, number
from sardonyx.codegen.emit.row_expr import ROW_FOLDS, fold_row, folds_rows, read_back, split_rows
from sardonyx.codegen.emit.types import F32, I64

X, BIAS = argument(0, F32), argument(1, F32)
E = OPERATORS["exp"](X - fold_row("row_max", X))


def primitives(expr: object) -> list[str]:
    return [step.primitive for step in number([expr])[0]]  # type: ignore[list-item]  # test data


@pytest.mark.parametrize("way", ROW_FOLDS)
def test_a_fold_is_a_node_of_the_tree(way: str) -> None:
    """It has the type of what it folds."""
    made = fold_row(way, X)
    assert (made.primitive, made.type) == (way, F32)
    assert folds_rows(made * 2)
    assert not folds_rows(X * 2)


def test_folds_of_integers_are_refused() -> None:
    """Their sums would overflow."""
    with pytest.raises(TypeError, match=r"row_sum of i64.*convert with \.to\(F32\) first"):
        fold_row("row_sum", argument(0, I64))


def test_folds_of_numbers_are_refused() -> None:
    """They have no row."""
    with pytest.raises(TypeError, match="row_sum folds an expression along its row, got 1.0"):
        fold_row("row_sum", 1.0)  # type: ignore[arg-type]  # which is the point


def test_a_tree_is_split_into_folds_in_order() -> None:
    """Each reads those before it, as arguments behind the operator's own."""
    split = split_rows(E / fold_row("row_sum", E), 2)
    assert [fold.way for fold in split.folds] == ["row_max", "row_sum"]
    assert primitives(split.folds[1].expr) == ["argument", "argument", "sub", "exp"]
    reads = {step.expr.value for step in number([split.result])[0] if step.primitive == "argument"}
    assert reads == {0, 2, 3}


def test_equal_folds_are_one() -> None:
    """However often they are written."""
    split = split_rows(fold_row("row_mean", X * BIAS) + fold_row("row_mean", X * BIAS), 2)
    assert len(split.folds) == 1


def test_what_was_folded_can_be_read_back() -> None:
    """A softmax needs its input no more once the exponentials are stored; where the input is needed, nothing is read back."""
    split = split_rows(E / fold_row("row_sum", E), 1)
    again = read_back(split.result, split.folds[1].expr)
    assert again is not None
    assert primitives(again) == ["argument", "argument", "div"]
    assert read_back(split.result * X, split.folds[1].expr) is None
    assert read_back(BIAS * 2, split.folds[1].expr) is None
