"""Write what com.microsoft has for moving and making tensors as what ai.onnx has for it.

    Trilu(x, k?), GatherND(x, places)      ->      the same of ai.onnx
    ExpandDims(x, axis)                    ->      Unsqueeze(x, axis)
    Range(start, limit, delta?)            ->      Range of scalars, with steps of 1 by default
    Pad(x, pads, value?)                   ->      Pad, with pads in one dimension and a scalar
    values, places, counts = Unique(x)     ->      Unique(x) {sorted = 0}

Left alone:
    an axis that is no constant, and numbers of more than one element, or whose type or shape is not known
"""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.ir import Value
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import microsoft
from sardonyx.optimize.terms import Term

__all__ = ["EXPAND_MICROSOFT_MOVEMENT", "EXPAND_MICROSOFT_UNIQUE"]

_MICROSOFT = "com.microsoft"
_OPERATORS = ("ExpandDims", "GatherND", "Pad", "Range", "Trilu")
_SCALARS = {"Range": (0, 1, 2), "Pad": (2,)}
"""Operator -> the inputs that are one number."""


def _pattern(op: PatternBuilder) -> Term:
    return op.any_of(*(op.node(name, op.rest("inputs"), _domain=_MICROSOFT) for name in _OPERATORS))


def _check(match: Match) -> str | None:
    node, inputs = match.root, match.rest("inputs")
    numbers = [inputs[place] for place in _SCALARS.get(node.op_type, ()) if place < len(inputs)]
    if any(value is not None and (value.dtype is None or value.shape not in ((), (1,))) for value in numbers):
        return "one of its numbers has more than one element, or is of unknown type or shape"
    if node.op_type == "GatherND" and (inputs[1] is None or inputs[1].dtype is None):
        return "the type of the places is not known"
    axis = inputs[1] if node.op_type == "ExpandDims" else None
    if axis is not None and (axis.constant is None or axis.constant.size != 1):
        return "the axis is no constant of one element"
    return None


def _replace(op: Builder, match: Match, learned: None) -> Value:
    node, inputs = match.root, list(match.rest("inputs"))
    for place in _SCALARS.get(node.op_type, ()):
        value = inputs[place] if place < len(inputs) else None
        if value is not None and value.shape == (1,):
            inputs[place] = op.Reshape(value, np.array([], np.int64))
    if node.op_type == "GatherND":
        places = inputs[1]
        return op.GatherND(inputs[0], places if places is None or places.dtype is DataType.INT64 else op.Cast(places, to=7))
    if node.op_type == "ExpandDims":
        axis = inputs[1].constant if inputs[1] is not None else None
        return op.Unsqueeze(inputs[0], np.array([0 if axis is None else int(axis.numpy().reshape(()))], np.int64), _version=13)
    if node.op_type == "Pad":
        return op.Pad(inputs[0], op.Reshape(inputs[1], np.array([-1], np.int64)), *inputs[2:3], mode=node.text("mode", "constant"))
    if node.op_type == "Range" and (len(inputs) < 3 or inputs[2] is None):
        first = inputs[0]
        dtype = np.int64 if first is None or first.dtype is None else first.dtype.numpy
        return op.Range(*inputs[:2], np.ones((), dtype))
    return op.node(node.op_type, *inputs, _attributes=node.attributes)


def _unique_pattern(op: PatternBuilder, x: Term) -> tuple[Term, ...]:
    return op.outputs(op.Unique(x, _domain=_MICROSOFT), 3)


def _check_unique(match: Match) -> str | None:
    shape = match["x"].shape
    return None if shape is not None and len(shape) == 1 else "it is not known to have one dimension"


def _replace_unique(op: Builder, match: Match, learned: None) -> tuple[Value, ...]:
    values, _, places, counts = op.outputs("Unique", 4, match["x"], sorted=0)
    return values, places, counts


EXPAND_MICROSOFT_MOVEMENT = Rule(
    "expand_microsoft_movement",
    _pattern,
    _replace,
    _check,
    takes_apart=microsoft(*_OPERATORS),
    summary="Write Trilu, GatherND, ExpandDims, Range and Pad of com.microsoft as those of ai.onnx.",
)
EXPAND_MICROSOFT_UNIQUE = Rule(
    "expand_microsoft_unique",
    _unique_pattern,
    _replace_unique,
    _check_unique,
    takes_apart=microsoft("Unique"),
    summary="Write Unique of com.microsoft as that of ai.onnx.",
)
