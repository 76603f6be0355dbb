"""Quantize once what is quantized twice in a row.

    DQ(Q(DQ(Q(x))))            ->      DQ(Q(x))      for equal types, scales and zero points

The numbers are the same: what is quantized a second time is a number that one of the integers stands for.

Left alone:
    pairs of two scales: one pair in their place rounds otherwise, and elements would be up to a step of the coarser pair apart
    types other than int8, uint8, int16 and uint16, scales by axis or block
    an intermediate result that has other users
"""

from __future__ import annotations

from sardonyx.dtypes import DataType
from sardonyx.ir import Node, Value
from sardonyx.optimize.helpers.quantized import Scale, scale_of
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


def _check(match: Match) -> str | None:
    first, second = (_scale_of_pair(match, name) for name in ("first", "second"))
    if isinstance(first, str) or isinstance(second, str):
        return first if isinstance(first, str) else str(second)
    return None if first.equals(second) else "the pairs have two scales, zero points or types"


def _scale_of_pair(match: Match, name: str) -> Scale | str:
    made, read = _known(match.node(f"{name}/quantize")), _known(match.node(f"{name}/dequantize"))
    if made is None or read is None or not made.equals(read):
        return f"the {name} pair has no one scale of 8 or 16 bits"
    return made


def _known(node: Node) -> Scale | None:
    scale = scale_of(node)
    return scale if scale is not None and scale.is_single and scale.dtype in _TYPES and float(scale.scale) > 0 else None


def _replace(op: Builder, match: Match, learned: None) -> Value:
    quantize, dequantize = match.node("first/quantize"), match.root
    middle = op.QuantizeLinear(match["x"], *quantize.inputs[1:], _attributes=quantize.attributes, _version=quantize.version)
    return op.DequantizeLinear(middle, *dequantize.inputs[1:], _attributes=dequantize.attributes, _version=dequantize.version)


MERGE_QUANTIZATIONS = Rule(
    "merge_quantizations",
    _pattern,
    _replace,
    _check,
    opt_out="session.disable_double_qdq_remover",
    aliases=("DoubleQDQPairsRemover",),
)
