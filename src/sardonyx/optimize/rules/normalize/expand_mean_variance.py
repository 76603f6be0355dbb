"""Write normalizations by mean and deviation, and norms of whole images, as reductions.

    MeanVarianceNormalization(x) {axes}      ->      c = Sub(x, ReduceMean(x, axes))
                                                     Div(c, Add(Sqrt(ReduceMean(Mul(c, c), axes)), 1e-9))
    GlobalLpPool(x) {p = 1}                  ->      ReduceL1(x, axes of the image)
    GlobalLpPool(x) {p = 2}                  ->      ReduceL2(x, axes of the image)

whose kernels all providers have.

Left alone:
    types other than float and double; an image whose rank is not known
    a MeanVarianceNormalization that does not divide, as before opset 9 one may
    another p
"""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.ir import Value
from sardonyx.ops.views.normalize import MeanVariance
from sardonyx.ops.views.pool import Norm
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import standard
from sardonyx.optimize.terms import Term

__all__ = ["EXPAND_GLOBAL_LP_POOL", "EXPAND_MEAN_VARIANCE"]

_KINDS = (DataType.FLOAT, DataType.DOUBLE)
_EPSILON = 1e-9
_AXES_ARE_INPUTS = 18
"""From this version of ai.onnx on all reductions have their axes as an input."""


def _pattern(op: PatternBuilder, x: Term) -> Term:
    return op.MeanVarianceNormalization(x)


def _check(match: Match) -> str | tuple[int, ...]:
    x = match["x"]
    if x.dtype not in _KINDS or x.shape is None:
        return "it is not of float or double, of known rank"
    view = MeanVariance.of(match.root)
    return view.axes_of(len(x.shape)) if view.divides else "it does not divide by the deviation"


def _replace(op: Builder, match: Match, axes: tuple[int, ...]) -> Value:
    x = match["x"]
    centred = op.Sub(x, _reduced(op, "ReduceMean", x, axes))
    deviation = op.Sqrt(_reduced(op, "ReduceMean", op.Mul(centred, centred), axes))
    epsilon = np.array(_EPSILON, np.float64 if x.dtype is DataType.DOUBLE else np.float32)
    return op.Div(centred, op.Add(deviation, epsilon))


def _reduced(op: Builder, operator: str, x: Value, axes: tuple[int, ...]) -> Value:
    return op.node(operator, x, np.array(axes, np.int64), keepdims=1, _version=max(op.version(), _AXES_ARE_INPUTS))


def _pool_pattern(op: PatternBuilder, x: Term) -> Term:
    return op.GlobalLpPool(x)


def _check_pool(match: Match) -> str | None:
    x, order = match["x"], Norm.of(match.root).order
    if x.dtype not in _KINDS or x.shape is None or len(x.shape) < 3:
        return "it is no image of float or double, of known rank"
    return f"p={order} is neither 1 nor 2" if order not in (1, 2) else None


def _replace_pool(op: Builder, match: Match, learned: None) -> Value:
    x = match["x"]
    axes = tuple(range(2, len(x.shape or ())))
    return _reduced(op, "ReduceL1" if Norm.of(match.root).order == 1 else "ReduceL2", x, axes)


EXPAND_MEAN_VARIANCE = Rule(
    "expand_mean_variance",
    _pattern,
    _replace,
    _check,
    takes_apart=standard("MeanVarianceNormalization"),
    summary="Write MeanVarianceNormalization as reductions.",
)
EXPAND_GLOBAL_LP_POOL = Rule(
    "expand_global_lp_pool",
    _pool_pattern,
    _replace_pool,
    _check_pool,
    takes_apart=standard("GlobalLpPool"),
    summary="Write GlobalLpPool as a reduction.",
)
