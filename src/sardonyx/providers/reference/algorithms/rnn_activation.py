"""The activation functions of RNN, GRU and LSTM, and how a node's attributes choose them.

    f, g, h = choose_activations("LSTM", "forward", ("Sigmoid", "Tanh", "Tanh"), 3, alphas=(), betas=())[0]
    f(buffer)       applies Sigmoid in place

The names are matched without regard to case, as ONNX Runtime does. `activation_alpha` and `activation_beta` hold values only for
the functions that take them, in the order of the functions; a function that finds its list used up takes its default.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument

__all__ = ["Activation", "choose_activations", "sigmoid"]

_ONE = np.ones((), np.float32)
"""As an array: converting a number costs as much as the addition of a short row."""

Activation = Callable[[Array], object]
"""Applies the function to a float array in place."""


def sigmoid(x: Array) -> None:
    """Replace `x` by 1 / (1 + exp(-x)); exact limits 0 and 1 where exp overflows (ignore the warning around the loop)."""
    np.negative(x, out=x)
    np.exp(x, out=x)
    np.add(x, _ONE, out=x)
    np.reciprocal(x, out=x)


def _tanh(x: Array) -> None:
    np.tanh(x, out=x)


def _relu(x: Array) -> None:
    np.maximum(x, 0, out=x)


def _softsign(x: Array) -> None:
    x /= 1 + np.abs(x)


def _softplus(x: Array) -> None:
    np.logaddexp(x, 0, out=x)


def _affine(x: Array, *, alpha: float, beta: float) -> None:
    x *= alpha
    x += beta


def _leaky_relu(x: Array, *, alpha: float) -> None:
    np.multiply(x, alpha, out=x, where=x < 0)


def _thresholded_relu(x: Array, *, alpha: float) -> None:
    x[x < alpha] = 0


def _scaled_tanh(x: Array, *, alpha: float, beta: float) -> None:
    x *= beta
    np.tanh(x, out=x)
    x *= alpha


def _hard_sigmoid(x: Array, *, alpha: float, beta: float) -> None:
    x *= alpha
    x += beta
    np.clip(x, 0, 1, out=x)


def _elu(x: Array, *, alpha: float) -> None:
    np.copyto(x, alpha * np.expm1(np.minimum(x, 0)), where=x < 0)


@dataclasses.dataclass(frozen=True, slots=True)
class _Entry:
    function: Callable[..., None]
    """The function; takes `alpha` and `beta` by keyword where the defaults below are numbers."""
    alpha: float | None = None
    """The default of alpha, None where the function has none."""
    beta: float | None = None
    """The default of beta, None where the function has none."""


_TABLE = {
    "relu": _Entry(_relu),
    "tanh": _Entry(_tanh),
    "sigmoid": _Entry(sigmoid),
    "softsign": _Entry(_softsign),
    "softplus": _Entry(_softplus),
    "affine": _Entry(_affine, 1.0, 0.0),
    "leakyrelu": _Entry(_leaky_relu, 0.01),
    "thresholdedrelu": _Entry(_thresholded_relu, 1.0),
    "scaledtanh": _Entry(_scaled_tanh, 1.0, 1.0),
    "hardsigmoid": _Entry(_hard_sigmoid, 0.2, 0.5),
    "elu": _Entry(_elu, 1.0),
}


def choose_activations(
    op_type: str,
    direction: str,
    names: Sequence[str],
    per_direction: int,
    alphas: Sequence[float],
    betas: Sequence[float],
) -> list[list[Activation]]:
    """Return the activations of each direction in order.

    `names` may hold more than a single direction needs (RNN's default has two).
    """
    directions = 2 if direction == "bidirectional" else 1
    if len(names) < directions * per_direction:
        raise InvalidArgument(
            f"activations {list(names)} has {len(names)} entries; {op_type} with direction {direction} takes "
            f"{directions * per_direction}: give {per_direction} for each direction"
        )
    alpha_values, beta_values = iter(alphas), iter(betas)
    bound = [_bind(name, alpha_values, beta_values) for name in names[: directions * per_direction]]
    return [bound[start : start + per_direction] for start in range(0, len(bound), per_direction)]


def _bind(name: str, alphas: Iterator[float], betas: Iterator[float]) -> Activation:
    entry = _TABLE.get(name.lower())
    if entry is None:
        raise InvalidArgument(f"activation {name!r} is unknown; expected one of {', '.join(sorted(_TABLE))} in any case")
    chosen = {}
    if entry.alpha is not None:
        chosen["alpha"] = next(alphas, entry.alpha)
    if entry.beta is not None:
        chosen["beta"] = next(betas, entry.beta)
    return functools.partial(entry.function, **chosen) if chosen else entry.function
