"""Drop limits that quantization sets anyway.

    Q(Clip(x, low, high))           ->      Q(x)      for limits at or beyond the ends of what the integers can hold
    Q(Relu(x))                      ->      Q(x)      for a zero point that is the least integer

Saturation sets the same limits. NaN, which Clip and Relu keep, is quantized as it was.

Left alone: narrower limits; limits that are no constants, or attributes (opset 6); scales by axis or block; Clip and Relu that
have other users.
"""

from __future__ import annotations

import math

from sardonyx.ir import Value
from sardonyx.ops.views.activation import Clip
from sardonyx.optimize.contract import Level
from sardonyx.optimize.helpers.quantized import limits_of, quantized, scale_of
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["DROP_CLIP_BEFORE_QUANTIZATION", "DROP_RELU_BEFORE_QUANTIZATION"]


def _clipped(op: PatternBuilder, x: Term) -> Term:
    return quantized(op, op.Clip(x, op.optional_constant("low"), op.optional_constant("high"), _as="clip"), "y")


def _rectified(op: PatternBuilder, x: Term) -> Term:
    return quantized(op, op.Relu(x, _as="clip"), "y")


def _check(match: Match) -> str | None:
    if Clip.of(match.node("clip")).has_limits:
        return "the limits are attributes"
    ends = _ends(match)
    if ends is None:
        return "there is no single scale"
    low, high = _limits(match)
    return None if low <= ends[0] and high >= ends[1] else f"limits {low} and {high} within {ends[0]} and {ends[1]}"


def _ends(match: Match) -> tuple[float, float] | None:
    """Return the numbers of the least and the greatest integer."""
    scale = scale_of(match.node("y/quantize"))
    if scale is None or not scale.is_single or not float(scale.scale) > 0:
        return None
    low, high = limits_of(scale.dtype)
    return float((low - scale.zero) * scale.scale), float((high - scale.zero) * scale.scale)


def _limits(match: Match) -> tuple[float, float]:
    if match.node("clip").op_type == "Relu":
        return 0.0, math.inf
    low, high = match.constant("low", 1), match.constant("high", 1)
    return (-math.inf if low is None else float(low.reshape(()))), (math.inf if high is None else float(high.reshape(())))


def _replace(op: Builder, match: Match, learned: None) -> Value:
    return op.QuantizeLinear(match["x"], *match.root.inputs[1:], _attributes=match.root.attributes, _version=match.root.version)


DROP_CLIP_BEFORE_QUANTIZATION = Rule(
    "drop_clip_before_quantization",
    _clipped,
    _replace,
    _check,
    Level.EXTENDED,
    aliases=(
        "ClipQuantFusion",
        "ClipQuantRewrite",
    ),
    summary="Remove a Clip whose limits the QuantizeLinear after it sets anyway.",
)
DROP_RELU_BEFORE_QUANTIZATION = Rule(
    "drop_relu_before_quantization",
    _rectified,
    _replace,
    _check,
    Level.EXTENDED,
    aliases=(
        "ReluQuantFusion",
        "ReluQuantRewrite",
    ),
    summary="Remove a Relu before a QuantizeLinear that can hold nothing below 0.",
)
