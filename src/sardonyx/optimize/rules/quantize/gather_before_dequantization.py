"""Gather from a quantized table before dequantizing instead of after.

    Gather(DQ(table), indices)              ->      DQ(Gather(table, indices))           for a constant table

so that a large table of embeddings stays as small as it is stored. The numbers are the same.

Left alone: scales by axis or block, which go with the table's axes; tables that are no constants; tables of fewer than 8 bits or of
float8, which Gather does not take.
"""

from __future__ import annotations

from sardonyx.dtypes import DataType
from sardonyx.ir import Value
from sardonyx.optimize.helpers.quantized import dequantized, scale_of
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["GATHER_BEFORE_DEQUANTIZATION"]


def _pattern(op: PatternBuilder, indices: Term) -> Term:
    return op.Gather(dequantized(op, "table", "table"), indices)


def _check(match: Match) -> str | None:
    scale = scale_of(match.node("table/dequantize"))
    if scale is None or not scale.is_single:
        return "there is no single scale"
    return None if scale.dtype in _GATHERED else f"Gather takes no tables of {scale.dtype}"


_GATHERED = frozenset((DataType.INT8, DataType.UINT8, DataType.INT16, DataType.UINT16, DataType.INT32))


def _replace(op: Builder, match: Match, learned: None) -> Value:
    dequantize = match.node("table/dequantize")
    found = op.Gather(match["table"], match["indices"], _attributes=match.root.attributes, _version=match.root.version)
    return op.DequantizeLinear(found, *dequantize.inputs[1:], _attributes=dequantize.attributes, _version=dequantize.version)


GATHER_BEFORE_DEQUANTIZATION = Rule("gather_before_dequantization", _pattern, _replace, _check)
