"""Write a softmax of com.microsoft that takes a bias as what ai.onnx has for it.

    BiasSoftmax(x, bias) {axis = last}      ->      Softmax(x + bias) {axis = last}

so that any provider computes it, and attention is found in it.

Left alone:
    types other than float: half types round the sum once more
    other axes than the last; a bias whose rows repeat as no sum repeats them, or whose shape is not known
"""

from __future__ import annotations

from sardonyx.dtypes import DataType
from sardonyx.ir import Value
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.rules.attention.fuse_bias_softmax import repeats_inner, repeats_outer
from sardonyx.optimize.target import microsoft
from sardonyx.optimize.terms import Term

__all__ = ["EXPAND_BIAS_SOFTMAX"]


def _pattern(op: PatternBuilder, x: Term, bias: Term) -> Term:
    return op.BiasSoftmax(x, bias, _domain="com.microsoft")


def _check(match: Match) -> str | None:
    x, bias = match["x"].shape, match["bias"].shape
    if match["x"].dtype is not DataType.FLOAT:
        return f"it is of {match['x'].dtype}, expected float"
    if not x or not bias or match.root.integer("axis", 1) not in (-1, len(x) - 1):
        return f"the axis is {match.root.integer('axis', 1)}, expected the last of {x}"
    repeats = repeats_inner if match.root.flag("is_inner_broadcast") else repeats_outer
    return None if repeats(x, bias) else f"a sum does not repeat rows of shape {bias} so"


def _replace(op: Builder, match: Match, learned: None) -> Value:
    return op.Softmax(op.Add(match["x"], match["bias"]), axis=len(match["x"].shape or ()) - 1)


EXPAND_BIAS_SOFTMAX = Rule(
    "expand_bias_softmax", _pattern, _replace, _check, takes_apart=microsoft("BiasSoftmax"), takes_legal_apart=True
)
