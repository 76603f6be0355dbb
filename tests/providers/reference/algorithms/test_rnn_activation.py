"""Each activation against its formula, and how attributes choose them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.rnn_activation import choose_activations, sigmoid

X = np.array([-3.0, -0.5, -0.0, 0.0, 0.25, 0.5, 2.0])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Relu", lambda x: np.maximum(x, 0)),
        ("Tanh", np.tanh),
        ("Sigmoid", lambda x: 1 / (1 + np.exp(-x))),
        ("Affine", lambda x: 0.5 * x + 0.25),
        ("LeakyRelu", lambda x: np.where(x < 0, 0.5 * x, x)),
        ("ThresholdedRelu", lambda x: np.where(x >= 0.5, x, 0)),
        ("ScaledTanh", lambda x: 0.5 * np.tanh(0.25 * x)),
        ("HardSigmoid", lambda x: np.clip(0.5 * x + 0.25, 0, 1)),
        ("Elu", lambda x: np.where(x < 0, 0.5 * np.expm1(x), x)),
        ("Softsign", lambda x: x / (1 + np.abs(x))),
        ("Softplus", lambda x: np.log1p(np.exp(x))),
        ("softPLUS", lambda x: np.log1p(np.exp(x))),
    ],
)
def test_every_activation_is_the_function_of_its_name(name: str, expected: Callable[[Array], Array]) -> None:
    """It works in place, and the case of the name does not matter."""
    (function,) = choose_activations("RNN", "forward", (name,), 1, (0.5,), (0.25,))[0]
    x = X.copy()
    function(x)
    np.testing.assert_allclose(x, expected(X), rtol=1e-12, atol=1e-12)


def test_alpha_is_consumed_only_by_functions_that_take_one() -> None:
    """The only alpha goes to LeakyRelu of the second direction, since Tanh has none."""
    _, (leaky,) = choose_activations("RNN", "bidirectional", ("Tanh", "LeakyRelu"), 1, (0.5,), ())
    x = X.copy()
    leaky(x)
    np.testing.assert_array_equal(x, np.where(X < 0, 0.5 * X, X))


@pytest.mark.parametrize(
    ("name", "at_minus_one"), [("LeakyRelu", -0.01), ("Elu", np.expm1(-1.0)), ("HardSigmoid", 0.3), ("Affine", -1.0)]
)
def test_defaults_are_those_of_the_operators(name: str, at_minus_one: float) -> None:
    """Without alpha and beta the values of the ONNX operator of that name hold."""
    (function,) = choose_activations("RNN", "forward", (name,), 1, (), ())[0]
    x = np.array([-1.0])
    function(x)
    np.testing.assert_allclose(x, at_minus_one)


def test_sigmoid_reaches_its_limits() -> None:
    """Far out it is exactly 0 and 1; NaN stays NaN."""
    x = np.array([-1e4, 1e4, np.nan], np.float32)
    with np.errstate(over="ignore"):
        sigmoid(x)
    np.testing.assert_array_equal(x, [0, 1, np.nan])


def test_too_few_activations_are_an_error() -> None:
    """Two directions of an LSTM take six."""
    with pytest.raises(InvalidArgument, match="takes 6"):
        choose_activations("LSTM", "bidirectional", ("Sigmoid", "Tanh", "Tanh"), 3, (), ())


def test_an_unknown_activation_is_an_error() -> None:
    """The message lists the known ones."""
    with pytest.raises(InvalidArgument, match="'Cosine' is unknown; expected one of affine"):
        choose_activations("RNN", "forward", ("Cosine",), 1, (), ())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_column_of_a_matrix_is_changed_in_place(dtype: type) -> None:
    """As the gates of one hidden unit are: elements lie apart, and there is one to a row."""
    gates = np.arange(12, dtype=dtype).reshape(3, 4)
    sigmoid(gates[:, 0:1])
    np.testing.assert_allclose(gates[:, 0], 1 / (1 + np.exp(-np.array([0.0, 4.0, 8.0]))), rtol=1e-6)
    np.testing.assert_array_equal(gates[:, 1:], np.arange(12).reshape(3, 4)[:, 1:])
