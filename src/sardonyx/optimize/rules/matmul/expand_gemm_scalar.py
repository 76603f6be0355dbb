"""Add a number to a matrix product behind it.

    Gemm(a, b, c) {beta}, with c of one element      ->      Add(Gemm(a, b), c * beta)

since kernels add rows, columns and matrices in their store, and an element-wise operator behind a product joins it. 16-bit types
are computed in float and rounded once.

Left alone:
    c of more than one element, or of an unknown number; a product of a single column, whose row is one element
    types other than these and float and double; versions before 7, where `broadcast` says what c is
"""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.ir import Value
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import standard
from sardonyx.optimize.terms import Term

__all__ = ["EXPAND_GEMM_SCALAR"]

_HALVES = (DataType.FLOAT16, DataType.BFLOAT16)
_KINDS = {DataType.FLOAT: np.float32, DataType.DOUBLE: np.float64}
_BROADCASTS = 7


def _pattern(op: PatternBuilder, a: Term, b: Term, c: Term) -> Term:
    return op.Gemm(a, b, c)


def _check(match: Match) -> str | None:
    c, result = match["c"].shape, match.root.output.shape
    if c is None or any(dim != 1 for dim in c) or len(c) > 2:
        return f"c is {c}, expected one element"
    if result is None or len(result) != 2 or result[1] == 1:
        return f"the product is {result}, to which c may be a row"
    if match.root.version < _BROADCASTS or match["a"].dtype not in (*_KINDS, *_HALVES):
        return f"it is of {match['a'].dtype}, or of a version before {_BROADCASTS}"
    return None


def _replace(op: Builder, match: Match, learned: None) -> Value:
    dtype = match["a"].dtype or DataType.FLOAT
    a, b, c = (_wide(op, match[name]) for name in "abc")
    beta = match.root.number("beta", 1.0)
    kept = {name: value for name, value in match.root.attributes.items() if name != "beta"}
    total = op.Add(op.Gemm(a, b, _attributes=kept), c if beta == 1 else op.Mul(c, _KINDS.get(dtype, np.float32)(beta)))
    return op.Cast(total, to=int(dtype)) if dtype in _HALVES else total


def _wide(op: Builder, value: Value) -> Value:
    return op.Cast(value, to=int(DataType.FLOAT)) if value.dtype in _HALVES else value


EXPAND_GEMM_SCALAR = Rule("expand_gemm_scalar", _pattern, _replace, _check, takes_apart=standard("Gemm"), takes_legal_apart=True)
