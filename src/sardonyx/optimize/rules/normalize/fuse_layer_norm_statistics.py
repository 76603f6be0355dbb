"""Replace a batch normalization by the statistics of its own input by LayerNormalization.

    g = Reshape(x, (1, N, D, 1))                                  x is (…, D), of N rows
    mean = ReduceMean(g, (0, 2, 3))
    variance = Div(ReduceSumSquare(Sub(g, mean), (0, 2, 3)), D)
    n = BatchNormalization(g, 1, 0, Squeeze(mean), variance)
    y = Reshape(n, shape of x)                         ->      y = LayerNormalization(x, 1) {epsilon}

That is how Keras computes it. Scale and bias follow, and join the normalization (fuse_layer_norm.py).

Left alone:
    a first Reshape of another kind, or whose sizes are not known
    a scale and a bias of the batch normalization that are not 1 and 0
    statistics over other axes, and a divisor other than D
    values between that have other users
"""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.ir import Node, Value
from sardonyx.ir.shape import product
from sardonyx.ops.views.normalize import epsilon_of
from sardonyx.ops.views.reduce import Reduce
from sardonyx.optimize.bounds import bounds_of
from sardonyx.optimize.contract import Level
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["FUSE_LAYER_NORM_STATISTICS"]

_ALL_BUT_ROWS = (0, 2, 3)


def _pattern(op: PatternBuilder, x: Term, scale: Term, bias: Term, size: Term) -> Term:
    rows = op.Reshape(x, op.rest("target"), _as="rows")
    mean = op.ReduceMean(rows, op.rest("mean_axes"), _as="mean")
    squares = op.ReduceSumSquare(op.Sub(rows, mean), op.rest("square_axes"), _as="squares")
    variance = op.Div(squares, op.constant(size))
    means = op.any_of(op.Squeeze(mean, op.rest("left_out")), op.Reshape(mean, op.rest("left_out")))
    normalized = op.BatchNormalization(rows, scale, bias, means, variance, training_mode=_is_off, _as="normalized")
    return op.Reshape(normalized, op.rest("back"))


def _is_off(mode: int | None) -> bool:
    return not mode


def _check(match: Match) -> str | int:
    x, rows, overridable = match["x"], match.node("rows").output, match.place.overridable
    if x.dtype is not DataType.FLOAT or not x.shape or match.outputs[0].shape != x.shape:
        return f"x is {x.dtype} {x.shape}, the result {match.outputs[0].shape}; expected float of the same shape"
    *outer, D = x.shape
    if not isinstance(D, int) or rows.shape != (1, product(tuple(outer)), D, 1):
        return f"{x.shape} is reshaped to {rows.shape}, which are not its rows"
    if bounds_of(match["scale"], overridable) != (1, 1) or bounds_of(match["bias"], overridable) != (0, 0):
        return "the rows have a scale or bias of their own"
    if any(_places(match, match.node(name)) != _ALL_BUT_ROWS for name in ("mean", "squares")):
        return "the statistics are not those of rows"
    divisor = match.constant("size", 1)
    is_mean = divisor is not None and divisor.size == 1 and float(divisor.reshape(())) == D
    return D if is_mean else "the squares are not divided by D"


def _places(match: Match, node: Node) -> tuple[int, ...] | None:
    return Reduce.of(node, match.inputs(node)).places(4)


def _replace(op: Builder, match: Match, size: int) -> Value:
    epsilon = epsilon_of(match.node("normalized"))
    return op.LayerNormalization(match["x"], np.ones(size, np.float32), axis=-1, epsilon=epsilon)


FUSE_LAYER_NORM_STATISTICS = Rule("fuse_layer_norm_statistics", _pattern, _replace, _check, Level.EXTENDED)
