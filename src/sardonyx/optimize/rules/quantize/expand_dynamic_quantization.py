"""Compute the range of a tensor, and quantize by it, with operators of their own.

    y, scale, zero = DynamicQuantizeLinear(x)
        ->      low, high = Min(ReduceMin(x), 0), Max(ReduceMax(x), 0)
                scale = (high - low) / 255, or 1 where that is 0
                zero = Cast(Clip(Round(-low / scale), 0, 255))
                y = QuantizeLinear(x, scale, zero)

for providers that compute element-wise operators in the epilogues of others, and no DynamicQuantizeLinear. x of another type than
float32 is cast to it first. Results are the same.

Left alone: x of unknown rank, or without elements, of which there is no least; a scale of another type than float32.
"""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.ir import Value
from sardonyx.optimize.helpers.quantized import QUANTIZATION
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import microsoft, standard
from sardonyx.optimize.terms import Term

__all__ = ["EXPAND_DYNAMIC_QUANTIZATION"]

_STEPS = 255


def _pattern(op: PatternBuilder, x: Term) -> tuple[Term, ...]:
    return op.outputs(op.DynamicQuantizeLinear(x), 3)


def _check(match: Match) -> str | None:
    shape, scale = match["x"].shape, match.outputs[1].dtype
    if scale not in (None, DataType.FLOAT):
        return f"the scale is a {scale}"
    return "the shape is unknown, or has a 0" if shape is None or 0 in shape else None


def _replace(op: Builder, match: Match, learned: None) -> tuple[Value, ...]:
    x, zero, one = match["x"], np.zeros((), np.float32), np.ones((), np.float32)
    if x.dtype is not DataType.FLOAT:
        x = op.Cast(x, to=int(DataType.FLOAT))
    low = op.Min(op.ReduceMin(x, keepdims=0), zero)
    width = op.Sub(op.Max(op.ReduceMax(x, keepdims=0), zero), low)
    scale = op.Where(op.Greater(width, zero), op.Div(width, np.float32(_STEPS)), one)
    place = op.Clip(op.Round(op.Div(op.Neg(low), scale)), zero, np.float32(_STEPS))
    zero_point = op.Cast(place, to=int(DataType.UINT8))
    return op.QuantizeLinear(x, scale, zero_point), scale, zero_point


EXPAND_DYNAMIC_QUANTIZATION = Rule(
    "expand_dynamic_quantization",
    _pattern,
    _replace,
    _check,
    integer_steps=1,
    takes_apart=standard("DynamicQuantizeLinear") | microsoft("DynamicQuantizeMatMul") | QUANTIZATION,
)
