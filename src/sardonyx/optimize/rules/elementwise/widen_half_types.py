"""Compute in float32 what is taken apart, and would be rounded once more for each part, in half types.

    y = GatedAdd(x, z, gate)   in float16      ->      Cast(GatedAdd(Cast(x), Cast(z), Cast(gate)))

and so BiasAdd and ScaledSiLU of com.microsoft, GlobalLpPool and MeanVarianceNormalization: rules that take them apart know
float32, and results are rounded once.

Left alone:
    other types; inputs of several types
"""

from __future__ import annotations

from sardonyx.dtypes import DataType
from sardonyx.ir import Value
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import microsoft, standard
from sardonyx.optimize.terms import Term

__all__ = ["WIDEN_HALF_TYPES"]

_MICROSOFT = "com.microsoft"
_CONTRIB = ("BiasAdd", "GatedAdd", "ScaledSiLU")
_STANDARD = ("GlobalLpPool", "MeanVarianceNormalization")
_HALF = (DataType.FLOAT16, DataType.BFLOAT16)
_CASTS_EACH = 13
"""From this version on Cast knows bfloat16."""


def _pattern(op: PatternBuilder) -> Term:
    own = [op.node(name, op.rest("inputs"), _domain=_MICROSOFT) for name in _CONTRIB]
    return op.any_of(*own, *(op.node(name, op.rest("inputs")) for name in _STANDARD))


def _check(match: Match) -> str | DataType:
    """Return the type of the inputs."""
    found = {value.dtype for value in match.rest("inputs") if value is not None}
    half = next((dtype for dtype in _HALF if found == {dtype}), None)
    return "its inputs are of no half type" if half is None else half


def _replace(op: Builder, match: Match, half: DataType) -> Value:
    node, version = match.root, max(op.version(), _CASTS_EACH)
    wide = [None if value is None else op.Cast(value, to=int(DataType.FLOAT), _version=version) for value in match.rest("inputs")]
    made = op.node(node.op_type, *wide, _domain=node.domain, _attributes=node.attributes, _version=node.version)
    return op.Cast(made, to=int(half), _version=version)


WIDEN_HALF_TYPES = Rule(
    "widen_half_types",
    _pattern,
    _replace,
    _check,
    takes_apart=microsoft(*_CONTRIB) | standard(*_STANDARD),
    summary="Compute GatedAdd, BiasAdd, ScaledSiLU, GlobalLpPool and MeanVarianceNormalization of half types in float32.",
)
