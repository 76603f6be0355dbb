"""Remove the reshapes around a transpose that merge dimensions and split them again.

    Reshape(Transpose(Reshape(x, [B * H, S, D])) {perm = [0, 2, 1]}, [B, H, D, S])      ->      Transpose(x) {perm = [0, 1, 3, 2]}

for x (B, H, S, D), as exporters write what swaps the last two of many dimensions. A Reshape stays where x has other dimensions of 1
than the result.

Left alone:
    reshapes that the transpose parts, dimensions that are not known to be the same before and after
    values between that have other users
"""

from __future__ import annotations

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.ir import Value
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term
from sardonyx.optimize.transposes.permutation import Permutation, identity, permutation_of
from sardonyx.optimize.transposes.reshape import numbers_for, transpose_later

__all__ = ["SKIP_RESHAPES_AROUND_TRANSPOSE"]


@dataclasses.dataclass(frozen=True, slots=True)
class _Plan:
    """One transpose in place of three nodes."""

    numbers: list[int] | None
    """The shape for a Reshape in front; None where there is none."""
    permutation: Permutation
    """Which dimensions it moves."""


def _pattern(op: PatternBuilder, x: Term) -> Term:
    merged = op.Reshape(x, op.rest("merged"))
    return op.Reshape(op.Transpose(merged, perm=op.attribute("perm"), _as="transpose"), op.rest("split"))


def _check(match: Match) -> str | _Plan:
    x, result, node = match["x"].shape, match.outputs[0].shape, match.node("transpose")
    permutation = permutation_of(node)
    later = None if permutation is None else transpose_later(node.output.shape, result, permutation)
    if x is None or later is None:
        return f"{node.output.shape} is not known to become {result} so that the transpose can come behind"
    shape, _, behind = later
    if [dim for dim in x if dim != 1] != [dim for dim in shape if dim != 1]:
        return f"{x} is not known to be {shape} before the transpose"
    numbers = numbers_for(x, shape)
    return _Plan(None if x == shape else numbers, behind) if numbers is not None else f"{shape} cannot be said to a Reshape of {x}"


def _replace(op: Builder, match: Match, plan: _Plan) -> Value:
    x = match["x"] if plan.numbers is None else op.Reshape(match["x"], np.array(plan.numbers, np.int64))
    return x if plan.permutation == identity(len(plan.permutation)) else op.Transpose(x, perm=plan.permutation)


SKIP_RESHAPES_AROUND_TRANSPOSE = Rule("skip_reshapes_around_transpose", _pattern, _replace, _check)
