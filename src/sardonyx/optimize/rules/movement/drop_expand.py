"""Remove an Expand whose result is broadcast all the same.

    Mul(x, Expand(s, shape))           ->      Mul(x, s)                          for x of the result's shape
    Where(c, Expand(s, shape), y)      ->      Where(c, s, y)                     likewise, where c or y has it

Left alone: operands that are not known to have the result's shape. The Expand stays where it has other users.
"""

from __future__ import annotations

from sardonyx.ir import Value
from sardonyx.ops.views.binary import Broadcast
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["DROP_EXPAND"]

_BINARY = (
    "Add",
    "And",
    "Div",
    "Equal",
    "Greater",
    "GreaterOrEqual",
    "Less",
    "LessOrEqual",
    "Max",
    "Min",
    "Mod",
    "Mul",
    "Or",
    "Pow",
    "Sub",
    "Xor",
)


def _pattern(op: PatternBuilder, x: Term, y: Term, s: Term) -> Term:
    expanded = op.Expand(s, op.rest("shape"), _shared=True, _as="expand")
    left = (op.node(name, expanded, x, _ordered=True) for name in _BINARY)
    right = (op.node(name, x, expanded, _ordered=True) for name in (*_BINARY, "PRelu"))
    choices = (op.Where(x, expanded, y), op.Where(x, y, expanded), op.Where(expanded, x, y))
    return op.any_of(*left, *right, *choices)


def _check(match: Match) -> str | None:
    if not Broadcast.of(match.root).is_numpy:
        return "the operator does not broadcast yet"
    expanded, result = match.node("expand").output, match.outputs[0].shape
    others = [value for value in match.root.inputs if value is not None and value is not expanded]
    if result is None or match["s"].shape is None or all(value.shape != result for value in others):
        return f"no other operand is known to have the result's shape {result}"
    return None


def _replace(op: Builder, match: Match, learned: None) -> Value:
    root, expanded = match.root, match.node("expand").output
    inputs = (match["s"] if value is expanded else value for value in root.inputs)
    return op.node(root.op_type, *inputs, _attributes=root.attributes, _version=root.version)


DROP_EXPAND = Rule("drop_expand", _pattern, _replace, _check)
