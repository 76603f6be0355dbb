"""Quantize once what is quantized twice in a row.

    DQ2(Q2(DQ1(Q1(x))))            ->      DQ(Q(x))      for the range that both pairs can hold, in as many steps

Where both pairs are equal the numbers are the same; else they differ by up to a step of the coarser pair, as x is rounded once
and not twice.

Left alone:
    a pair within which type or scale changes
    types other than int8, uint8, int16 and uint16, two pairs of different types, scales by axis or block
    ranges that have no more than one number in common
    an intermediate result that has other users
"""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.ir import Node, Value
from sardonyx.optimize.helpers.quantized import Scale, limits_of, scale_of
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["MERGE_QUANTIZATIONS"]

_TYPES = (DataType.INT8, DataType.UINT8, DataType.INT16, DataType.UINT16)


def _pair(op: PatternBuilder, x: Term, name: str) -> Term:
    scales = [op.constant(f"{name}_{way}_scale") for way in ("in", "out")]
    zeros = [op.optional_constant(f"{name}_{way}_zero") for way in ("in", "out")]
    middle = op.QuantizeLinear(x, scales[0], zeros[0], _as=f"{name}/quantize")
    return op.DequantizeLinear(middle, scales[1], zeros[1], _as=f"{name}/dequantize")


def _pattern(op: PatternBuilder, x: Term) -> Term:
    return _pair(op, _pair(op, x, "first"), "second")


def _check(match: Match) -> str | tuple[float, int]:
    first, second = (_scale_of_pair(match, name) for name in ("first", "second"))
    if isinstance(first, str) or isinstance(second, str):
        return first if isinstance(first, str) else str(second)
    if first.dtype is not second.dtype:
        return f"the pairs are of {first.dtype} and {second.dtype}"
    if first.equals(second):
        return float(first.scale), int(first.zero)
    return _common(first, second)


def _scale_of_pair(match: Match, name: str) -> Scale | str:
    made, read = _known(match.node(f"{name}/quantize")), _known(match.node(f"{name}/dequantize"))
    if made is None or read is None or not made.equals(read):
        return f"the {name} pair has no one scale of 8 or 16 bits"
    return made


def _known(node: Node) -> Scale | None:
    scale = scale_of(node)
    return scale if scale is not None and scale.is_single and scale.dtype in _TYPES and float(scale.scale) > 0 else None


def _common(first: Scale, second: Scale) -> str | tuple[float, int]:
    low, high = limits_of(first.dtype)
    lowest = max(float((low - scale.zero) * scale.scale) for scale in (first, second))
    highest = min(float((high - scale.zero) * scale.scale) for scale in (first, second))
    if not lowest < highest or lowest > 0 or highest < 0:
        return f"the ranges have only [{lowest}, {highest}] in common"
    step = float(np.float32((highest - lowest) / (high - low)))
    return (step, int(np.clip(np.rint(low - lowest / step), low, high))) if step > 0 else "the common range is too small"


def _replace(op: Builder, match: Match, learned: tuple[float, int]) -> Value:
    step, zero = learned
    node = match.node("first/quantize")
    scale = op.constant(np.array(step, np.float32))
    zero_point = op.constant(np.array(zero, node.output.dtype.numpy if node.output.dtype else np.uint8))
    middle = op.QuantizeLinear(match["x"], scale, zero_point, _attributes=node.attributes, _version=node.version)
    return op.DequantizeLinear(middle, scale, zero_point, _version=match.root.version)


MERGE_QUANTIZATIONS = Rule(
    "merge_quantizations",
    _pattern,
    _replace,
    _check,
    tolerance=0.02,
    opt_out="session.disable_double_qdq_remover",
    aliases=("DoubleQDQPairsRemover",),
)
