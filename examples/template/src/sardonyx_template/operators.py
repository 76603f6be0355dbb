"""Operators of the domain `template`."""

from __future__ import annotations

import numpy as np

import sardonyx
from sardonyx import expr
from sardonyx.dtypes import Array

__all__ = ["OPERATORS"]


@sardonyx.op("template", "Normalize", types={"x": ["float", "double"]}, shape=lambda x: x)
def normalize(x: Array, *, axis: int = -1, epsilon: float = 1e-12) -> Array:
    """Divide rows by their Euclidean length; a row of zeros stays."""
    length = np.sqrt((x * x).sum(axis, keepdims=True))
    return x / np.maximum(length, x.dtype.type(epsilon))


@sardonyx.expression_op("template", "SquaredRelu")
def squared_relu(x: expr.ElementExpr, *, scale: float = 1.0) -> expr.ElementExpr:
    """Square what is above 0; the rest is 0."""
    return scale * expr.maximum(x, 0) ** 2


OPERATORS = [normalize, squared_relu]
