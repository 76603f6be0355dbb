"""Add a number to a matrix product behind it.

    Gemm(a, b, c) {beta}, with c of one element      ->      Add(Gemm(a, b), c * beta)

since kernels add rows, columns and matrices in their store, and an element-wise operator behind a product joins it. 16-bit types
are computed in float and rounded once.

Left alone:
    c of more than one element, or of an unknown number; a product of a single column, whose row is one element
    types other than these and float and double
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
_KEPT = ("alpha", "transA", "transB")
_C_IS_OPTIONAL, _SHAPES_MAY_DIFFER = 11, 7
"""From these versions of ai.onnx on: of Gemm, and of Add and Mul."""


def _pattern(op: PatternBuilder, a: Term, b: Term, c: Term) -> Term:
    return op.Gemm(a, b, c)


def _check(match: Match) -> str | None:
    c, result = match["c"].shape, match.root.output.shape
    if c is None or any(dim != 1 for dim in c) or len(c) > 2:
        return f"c is {c}, expected one element"
    if result is None or len(result) != 2 or result[1] == 1:
        return f"the product is {result}, to which c may be a row"
    return None if match["a"].dtype in (*_KINDS, *_HALVES) else f"it is of {match['a'].dtype}"


def _replace(op: Builder, match: Match, learned: None) -> Value:
    dtype = match["a"].dtype or DataType.FLOAT
    a, b, c = (_wide(op, match[name]) for name in "abc")
    beta = match.root.number("beta", 1.0)
    kept = {name: match.root.attributes[name] for name in _KEPT if name in match.root.attributes}
    product = op.Gemm(a, b, _attributes=kept, _version=max(op.version(), _C_IS_OPTIONAL))
    version = max(op.version(), _SHAPES_MAY_DIFFER)
    scaled = c if beta == 1 else op.Mul(c, _KINDS.get(dtype, np.float32)(beta), _version=version)
    total = op.Add(product, scaled, _version=version)
    return op.Cast(total, to=int(dtype)) if dtype in _HALVES else total


def _wide(op: Builder, value: Value) -> Value:
    return op.Cast(value, to=int(DataType.FLOAT)) if value.dtype in _HALVES else value


EXPAND_GEMM_SCALAR = Rule("expand_gemm_scalar", _pattern, _replace, _check, takes_apart=standard("Gemm"), takes_legal_apart=True)
