"""Losses."""

from __future__ import annotations

from sardonyx.ir import Shape
from sardonyx.ops.fact import Fact, ShapeCall, shape_function, tensor

__all__: list[str] = []


@shape_function("NegativeLogLikelihoodLoss")
def negative_log_likelihood_loss(
    call: ShapeCall, x: Fact, target: Fact, weight: Fact | None = None, *, reduction: str = "mean"
) -> Fact:
    """Return a scalar, or without reduction one loss per target."""
    return tensor(x.dtype, _loss(target, reduction))


@shape_function("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy_loss(
    call: ShapeCall, x: Fact, target: Fact, weight: Fact | None = None, *, reduction: str = "mean"
) -> tuple[Fact, ...]:
    """Return the same, and the logarithms of the probabilities in the scores' shape."""
    return tensor(x.dtype, _loss(target, reduction)), tensor(x.dtype, x.shape)


def _loss(target: Fact, reduction: str) -> Shape | None:
    return target.shape if reduction == "none" else ()
