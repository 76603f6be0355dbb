"""One step of the optimizers of ai.onnx.preview.training.

Inputs come as the learning rate R, the update count T, then groups of as many tensors each: the values X, their gradients
G, and the optimizer's state. Outputs are the new values and the new state, group by group. Each tensor is computed in its
own type. Gradient has no kernel: what it computes is another graph, which only the graph around it can tell.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.dimensions import as_int
from sardonyx.providers.reference.registry import Call, kernel

__all__: list[str] = []

_TRAINING = "ai.onnx.preview.training"


def _grouped(inputs: Sequence[Array], groups: int) -> list[tuple[Array, ...]]:
    """Return for each optimized tensor its entry of every group."""
    count, rest = divmod(len(inputs), groups)
    if rest or not count:
        raise InvalidArgument(f"{len(inputs)} tensors follow R and T; expected {groups} for each tensor that is optimized")
    grouped = [tuple(inputs[k::count]) for k in range(count)]
    for tensors in grouped:
        if any(tensor.shape != tensors[0].shape for tensor in tensors):
            shapes = [tensor.shape for tensor in tensors]
            raise InvalidArgument(f"a tensor, its gradient and its state have shapes {shapes}; expected one shape")
    return grouped


def _ungrouped(results: Sequence[tuple[Array, ...]]) -> tuple[Array, ...]:
    return tuple(part for group in zip(*results, strict=True) for part in group)


def _rate(R: Array) -> float:
    if R.size != 1:
        raise InvalidArgument(f"R has shape {R.shape}; expected one learning rate")
    return float(R.reshape(-1)[0])


def _regularized(X: Array, G: Array, norm_coefficient: float) -> Array:
    result: Array = G + X.dtype.type(norm_coefficient) * X if norm_coefficient else G
    return result


@kernel("Adagrad", domain=_TRAINING)
def adagrad(
    _node: Call,
    R: Array,
    T: Array,
    *inputs: Array,
    decay_factor: float = 0.0,
    epsilon: float = 1e-6,
    norm_coefficient: float = 0.0,
) -> tuple[Array, ...]:
    """Step by R / (1 + T * decay) * G / (sqrt(H) + epsilon), H the sum of squared gradients. ONNX Adagrad-1."""
    rate = _rate(R) / (1 + as_int(T, "T") * decay_factor)
    results = []
    for X, G, H in _grouped(inputs, 3):
        gradient = _regularized(X, G, norm_coefficient)
        squares = H + gradient * gradient
        step = X.dtype.type(rate) * gradient / (np.sqrt(squares) + X.dtype.type(epsilon))
        results.append((X - step, squares))
    return _ungrouped(results)


@kernel("Adam", domain=_TRAINING)
def adam(
    _node: Call,
    R: Array,
    T: Array,
    *inputs: Array,
    alpha: float = 0.9,
    beta: float = 0.999,
    epsilon: float = 1e-6,
    norm_coefficient: float = 0.0,
    norm_coefficient_post: float = 0.0,
) -> tuple[Array, ...]:
    """Step by R' * V / (sqrt(H) + epsilon), V and H running means of gradients and their squares. ONNX Adam-1.

    R' corrects for the first steps: R * sqrt(1 - beta**T) / (1 - alpha**T) from T = 1 on.
    """
    rate, updates = _rate(R), as_int(T, "T")
    if updates > 0:
        rate *= (1 - beta**updates) ** 0.5 / (1 - alpha**updates)
    results = []
    for X, G, V, H in _grouped(inputs, 4):
        real = X.dtype.type
        gradient = _regularized(X, G, norm_coefficient)
        mean = real(alpha) * V + real(1 - alpha) * gradient
        squares = real(beta) * H + real(1 - beta) * gradient * gradient
        moved = X - real(rate) * mean / (np.sqrt(squares) + real(epsilon))
        results.append((real(1 - norm_coefficient_post) * moved, mean, squares))
    return _ungrouped(results)


@kernel("Momentum", domain=_TRAINING)
def momentum(
    _node: Call, R: Array, T: Array, *inputs: Array, alpha: float, beta: float, norm_coefficient: float, mode: str
) -> tuple[Array, ...]:
    """Step by R times the momentum V' = alpha * V + beta * G, beta being 1 at T = 0; or by Nesterov's look-ahead of it.

    ONNX Momentum-1.
    """
    if mode not in ("standard", "nesterov"):
        raise InvalidArgument(f"mode={mode!r}; expected 'standard' or 'nesterov'")
    rate = _rate(R)
    scale = beta if as_int(T, "T") > 0 else 1.0
    results = []
    for X, G, V in _grouped(inputs, 3):
        real = X.dtype.type
        gradient = _regularized(X, G, norm_coefficient)
        velocity = real(alpha) * V + real(scale) * gradient
        direction = gradient + real(alpha) * velocity if mode == "nesterov" else velocity
        results.append((X - real(rate) * direction, velocity))
    return _ungrouped(results)
