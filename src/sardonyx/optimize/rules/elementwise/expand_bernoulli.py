"""Write coins as even numbers that are compared.

    Bernoulli(x) {dtype, seed}      ->      Cast(RandomUniformLike(x) {dtype, seed} < Cast(x)) {to}

drawn and compared in double, so that a seed gives the coins that it gave.

Left alone:
    an input, or a result, whose type is not known
"""

from __future__ import annotations

from sardonyx.dtypes import DataType
from sardonyx.ir import Value
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import standard
from sardonyx.optimize.terms import Term

__all__ = ["EXPAND_BERNOULLI"]


def _pattern(op: PatternBuilder, x: Term) -> Term:
    return op.Bernoulli(x)


def _check(match: Match) -> str | DataType:
    x, result = match["x"].dtype, match.root.output.dtype
    if x is None or result is None:
        return f"the types {x} and {result}"
    return result


def _replace(op: Builder, match: Match, result: DataType) -> Value:
    x, seed = match["x"], match.root.number("seed")
    chosen = {} if seed is None else {"seed": seed}
    even = op.RandomUniformLike(x, dtype=int(DataType.DOUBLE), **chosen)
    share = x if x.dtype is DataType.DOUBLE else op.Cast(x, to=int(DataType.DOUBLE))
    return op.Cast(op.Less(even, share), to=int(result))


EXPAND_BERNOULLI = Rule(
    "expand_bernoulli",
    _pattern,
    _replace,
    _check,
    takes_apart=standard("Bernoulli"),
    summary="Write Bernoulli as a comparison with even random numbers.",
)
