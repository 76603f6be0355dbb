"""Replace a choice that is written as products with 0 and 1 by Where.

    Add(Mul(Cast(c), x), Mul(Cast(Not(c)), y))       ->      Where(c, x, y)

as tf2onnx writes a choice among values of different ranks.

Left alone:
    types other than float and double, values that are cast to another type than the result's
    the product with x where it has other users; that with y stays for them

A number that is not chosen is taken to be finite: an infinite one would make the sum NaN.
"""

from __future__ import annotations

from sardonyx.dtypes import DataType
from sardonyx.ir import Value
from sardonyx.ops.schemas import find_schema
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["FUSE_SELECT"]

_KINDS = (DataType.FLOAT, DataType.DOUBLE)


def _pattern(op: PatternBuilder, condition: Term, x: Term, y: Term) -> Term:
    chosen = op.Mul(op.Cast(condition, _shared=True), x)
    others = op.Mul(op.Cast(op.Not(condition, _shared=True), _shared=True), y, _shared=True)
    return op.Add(chosen, others)


def _check(match: Match) -> str | None:
    kinds = {match["x"].dtype, match["y"].dtype, match.outputs[0].dtype}
    if match["condition"].dtype is not DataType.BOOL or len(kinds) > 1 or match.outputs[0].dtype not in _KINDS:
        return f"it chooses by {match['condition'].dtype} among {match['x'].dtype} and {match['y'].dtype}"
    return "the opset has no Where" if find_schema("", "Where", match.root.version) is None else None


def _replace(op: Builder, match: Match, learned: None) -> Value:
    return op.Where(match["condition"], match["x"], match["y"])


FUSE_SELECT = Rule("fuse_select", _pattern, _replace, _check)
