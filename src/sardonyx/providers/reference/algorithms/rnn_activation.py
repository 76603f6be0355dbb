"""The activation functions of RNN, GRU and LSTM, and how a node's attributes choose them.

    f, g, h = choose_activations("LSTM", "forward", ("Sigmoid", "Tanh", "Tanh"), 3, alphas=(), betas=())[0]
    f(buffer)       applies Sigmoid in place

The names are matched without regard to case, as ONNX Runtime does. `activation_alpha` and `activation_beta` hold values only for
the functions that take them, in the order of the functions; a function that finds its list used up takes its default.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.ops.views import rnn

__all__ = ["Activation", "choose_activations", "sigmoid"]

_ZERO, _ONE = np.zeros((), np.float32), np.ones((), np.float32)
"""As arrays: converting a number costs as much as the addition of a short row."""

Activation = Callable[[Array], object]
"""Applies the function to a float array in place."""


def sigmoid(x: Array) -> None:
    """Replace `x` by 1 / (1 + exp(-x)); exact limits 0 and 1 where exp overflows (ignore the warning around the loop)."""
    np.subtract(_ZERO, x, out=x)  # np.negative of NumPy 2.4 reads a strided column as if it were dense where out is strided too
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


_FUNCTIONS: Mapping[str, Callable[..., None]] = {
    "relu": _relu,
    "tanh": _tanh,
    "sigmoid": sigmoid,
    "softsign": _softsign,
    "softplus": _softplus,
    "affine": _affine,
    "leakyrelu": _leaky_relu,
    "thresholdedrelu": _thresholded_relu,
    "scaledtanh": _scaled_tanh,
    "hardsigmoid": _hard_sigmoid,
    "elu": _elu,
}
"""Name -> the function, which takes `alpha` and `beta` by keyword where it has them."""


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
    used = names[: directions * per_direction]
    unknown = next((name for name in used if name.lower() not in _FUNCTIONS), None)
    if unknown is not None:
        raise InvalidArgument(f"activation {unknown!r} is unknown; expected one of {', '.join(sorted(_FUNCTIONS))} in any case")
    bound = [_bind(chosen) for chosen in rnn.choose_activations(used, alphas, betas)]
    return [bound[start : start + per_direction] for start in range(0, len(bound), per_direction)]


def _bind(chosen: rnn.Activation) -> Activation:
    numbers = {name: number for name, number in (("alpha", chosen.alpha), ("beta", chosen.beta)) if number is not None}
    function = _FUNCTIONS[chosen.name]
    return functools.partial(function, **numbers) if numbers else function
