"""Write Dropout as what it does: nothing, or a choice by random numbers in training.

    Dropout(x)                          ->      Identity(x)
    y, mask = Dropout(x, r, true)       ->      mask = RandomUniformLike(x) {double} >= r
                                                y = Where(mask, x / (1 - r), 0)

Where the flag of training is computed, mask is true and y is x if it is false.

Left alone:
    a mask without training, which `expand_dropout_mask` knows, and one in the type of x; training before opset 12
    a ratio that is computed: one that is no share is an error of the run
    a seed, whose numbers are those of NumPy's Mersenne Twister, as the standard's cases have them
    types other than float and double in training
"""

from __future__ import annotations

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import DataType
from sardonyx.ir import Value
from sardonyx.ops.views.inputs import COMPUTED
from sardonyx.ops.views.random import Dropout
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import standard
from sardonyx.optimize.terms import Term

__all__ = ["EXPAND_DROPOUT", "EXPAND_DROPOUT_TRAINING"]

_KINDS = {DataType.FLOAT: np.float32, DataType.DOUBLE: np.float64}


@dataclasses.dataclass(frozen=True, slots=True)
class _Coins:
    """What is left out in training."""

    ratio: float
    """Which share of elements."""
    is_certain: bool
    """Whether it trains whatever a run says."""


def _pattern(op: PatternBuilder, x: Term) -> Term:
    return op.Dropout(x, op.optional("ratio"), op.optional("training"))


def _training_pattern(op: PatternBuilder, x: Term) -> tuple[Term, ...]:
    return op.outputs(_pattern(op, x), 2)


def _check(match: Match) -> str | _Coins | None:
    if Dropout.of(match.root, match.inputs(match.root)).is_training is False:
        return None
    return _check_training(match)


def _check_training(match: Match) -> str | _Coins:
    view, x = Dropout.of(match.root, match.inputs(match.root)), match["x"]
    if not view.trains_by_input or view.is_training is False:
        return "it does not train, or not by an input"
    if x.dtype not in _KINDS:
        return f"it is of {x.dtype}"
    if match.root.integer("seed") is not None:
        return "a seed"
    given = match.get("ratio")
    ratio = np.float64(0.5) if given is None else match.constant("ratio", 1)
    if ratio is None or ratio.size != 1 or not 0 <= float(ratio.reshape(())) < 1:
        return "its ratio is computed, or no share"
    return _Coins(float(ratio.reshape(())), view.is_training is not COMPUTED)


def _replace(op: Builder, match: Match, coins: _Coins | None) -> Value:
    return op.Identity(match["x"]) if coins is None else _replace_training(op, match, coins)[0]


def _replace_training(op: Builder, match: Match, coins: _Coins) -> tuple[Value, Value]:
    x, training = match["x"], match.get("training")
    kind = _KINDS[x.dtype or DataType.FLOAT]
    drawn = op.RandomUniformLike(x, dtype=int(DataType.DOUBLE))
    mask = op.Not(op.Less(drawn, np.float64(coins.ratio)))
    y = op.Where(mask, op.Div(x, kind(1 - coins.ratio)), kind(0))
    if coins.is_certain or training is None:
        return y, mask
    return op.Where(training, y, x), op.Or(mask, op.Not(training))


EXPAND_DROPOUT = Rule(
    "expand_dropout",
    _pattern,
    _replace,
    _check,
    takes_apart=standard("Dropout"),
    summary="Write Dropout whose mask is not read as Identity, or in training as a choice by random numbers.",
)
EXPAND_DROPOUT_TRAINING = Rule(
    "expand_dropout_training",
    _training_pattern,
    _replace_training,
    _check_training,
    takes_apart=standard("Dropout"),
    summary="Write Dropout that trains, and whose mask is read, as a choice by random numbers.",
)
