"""Compute Gelu by the hyperbolic tangent, where a user asks for it.

    Gelu(x)            ->      Gelu(x) {approximate = "tanh"}

Results differ by up to 5e-4: the session option `optimization.enable_gelu_approximation` asks for it, as in onnxruntime. A model
that is saved has it as com.microsoft.FastGelu where its operator set has no Gelu.

Left alone: types other than float and float16, which are for more exact numbers; Gelu that is approximated already.
"""

from __future__ import annotations

from sardonyx.ir import Value
from sardonyx.optimize.contract import Level
from sardonyx.optimize.helpers.activation import fused_type_reason
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import OptIn
from sardonyx.optimize.terms import Term

__all__ = ["APPROXIMATE_GELU"]


def _pattern(op: PatternBuilder, x: Term) -> Term:
    return op.Gelu(x, approximate="none")


def _check(match: Match) -> str | None:
    return fused_type_reason(match["x"])


def _replace(op: Builder, match: Match, learned: None) -> Value:
    return op.Gelu(match["x"], approximate="tanh")


APPROXIMATE_GELU = Rule(
    "approximate_gelu",
    _pattern,
    _replace,
    _check,
    Level.EXTENDED,
    tolerance=0.01,
    opt_in=OptIn("optimization.enable_gelu_approximation", "1", "results differ by up to 5e-4"),
    aliases=("GeluApproximation",),
)
