"""Expressions that also fold the row of an element: sums, means and extremes along the last axis.

    m = fold_row("row_max", x)
    e = exp(x - m)
    e / fold_row("row_sum", e)                    a softmax

A fold is a node of the tree like any other, and has one value for all elements of a row. No printer knows it: `split_rows` makes of
the tree what is folded, in order, and what is left to do for each element.
"""

from __future__ import annotations

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.expr import ElementExpr, NumberedPrimitive, argument, number, rebuild, substitute

__all__ = ["ROW_FOLDS", "RowFold", "SplitRows", "fold_row", "folds_rows", "read_back", "split_rows"]

ROW_FOLDS = ("row_max", "row_mean", "row_min", "row_sum")
"""The ways to fold; NaN passes through each."""


def fold_row(way: str, x: ElementExpr) -> ElementExpr:
    """Fold the elements of x along the row.

    Raises:
        TypeError: x is no expression, or holds no floats.
    """
    if not isinstance(x, ElementExpr):
        raise TypeError(f"{way} folds an expression along its row, got {x!r}")
    if not x.type.is_float:
        raise TypeError(f"{way} of {x.type} ({x.type.kind.value}): convert with .to(F32) first")
    return ElementExpr(way, x.type, (x,))


@dataclasses.dataclass(frozen=True, slots=True)
class RowFold:
    """Something that is folded."""

    way: str
    """How: one of ROW_FOLDS."""
    expr: ElementExpr
    """What, of the arguments and of the folds before it."""


@dataclasses.dataclass(frozen=True, slots=True)
class SplitRows:
    """An expression in steps."""

    folds: tuple[RowFold, ...]
    """What is folded, in order; fold k is argument `first + k` of what comes later."""
    result: ElementExpr
    """What is computed for each element then."""


def folds_rows(expr: ElementExpr) -> bool:
    """Return whether a row is folded anywhere in the tree."""
    return any(step.primitive in ROW_FOLDS for step in number([expr])[0])


def split_rows(expr: ElementExpr, first: int) -> SplitRows:
    """Split a tree into folds and what is computed for each element; the folds become arguments from `first` on."""
    folds: list[RowFold] = []
    places: dict[tuple[object, ...], ElementExpr] = {}

    def replace(node: ElementExpr) -> ElementExpr:
        if node.primitive not in ROW_FOLDS:
            return node
        (operand,) = node.operands
        key = (node.primitive, *_keys(number([operand])[0]))
        if key not in places:
            places[key] = argument(first + len(folds), node.type)
            folds.append(RowFold(node.primitive, operand))
        return places[key]

    result = rebuild(expr, replace)
    return SplitRows(tuple(folds), result)


def read_back(result: ElementExpr, folded: ElementExpr) -> ElementExpr | None:
    """Return `result` as an expression of what was `folded`, which takes the place of argument 0; None where it reads more of that.

    So what a fold computed is stored, and read instead of computed again.
    """
    steps, (whole, place) = number([result, folded])
    made: list[ElementExpr] = []
    for index, step in enumerate(steps):
        operands = tuple(made[operand] for operand in step.operands)
        copied = ElementExpr(step.primitive, step.type, operands, step.expr.value)
        made.append(argument(_STORED, step.type) if index == place else copied)
    reads = {int(step.expr.value) for step in number([made[whole]])[0] if step.primitive == "argument"}
    return substitute(made[whole], {_STORED: argument(0, folded.type)}) if _STORED in reads and 0 not in reads else None


_STORED = -1
"""The argument for what was stored, until it becomes argument 0."""


def _keys(steps: list[NumberedPrimitive]) -> list[object]:
    return [step.key for step in steps]
