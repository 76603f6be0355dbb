"""Facts about one step of the optimizers."""

import functools

import numpy as np
import pytest
from support.run_op import run_op

from sardonyx.errors import InvalidArgument

run_training = functools.partial(run_op, domain="ai.onnx.preview.training")
R, T0, T2 = np.array(0.1), np.array(0), np.array(2)
X, G, V = (np.array([value, -value]) for value in (1.0, 0.5, 0.25))
H = np.array([0.125, 0.0625])


def test_adagrad_adds_up_squares():
    """The rate decays with the count, the step with the root of the squares."""
    new, squares = run_training("Adagrad", R, T2, X, G, H, decay_factor=0.5, norm_coefficient=0.1, epsilon=1e-3)
    gradient = G + 0.1 * X
    np.testing.assert_allclose(squares, H + gradient**2)
    np.testing.assert_allclose(new, X - 0.05 * gradient / (np.sqrt(squares) + 1e-3))


@pytest.mark.parametrize("T", [T0, T2])
def test_adam_corrects_the_rate_after_the_first_step(T):
    """At T = 0 the rate is taken as it is."""
    new, mean, squares = run_training("Adam", R, T, X, G, V, H, alpha=0.9, beta=0.8, norm_coefficient_post=0.25)
    np.testing.assert_allclose(mean, 0.9 * V + 0.1 * G)
    np.testing.assert_allclose(squares, 0.8 * H + 0.2 * G**2)
    rate = 0.1 * (np.sqrt(1 - 0.64) / (1 - 0.81) if T > 0 else 1)
    np.testing.assert_allclose(new, 0.75 * (X - rate * mean / (np.sqrt(squares) + 1e-6)))


@pytest.mark.parametrize(("T", "scale"), [(T0, 1.0), (T2, 0.5)])
@pytest.mark.parametrize("mode", ["standard", "nesterov"])
def test_momentum_has_two_modes(mode, T, scale):
    """Nesterov's step looks ahead; at T = 0 the gradient counts whole."""
    new, velocity = run_training("Momentum", R, T, X, G, V, alpha=0.9, beta=0.5, norm_coefficient=0.0, mode=mode)
    np.testing.assert_allclose(velocity, 0.9 * V + scale * G)
    np.testing.assert_allclose(new, X - 0.1 * (velocity if mode == "standard" else G + 0.9 * velocity))


def test_tensors_are_grouped_and_keep_their_types():
    """Two tensors come as X1 X2 G1 G2 V1 V2 and go as X1 X2 V1 V2."""
    small = [part.astype(np.float32) for part in (X, G, V)]
    inputs = [part for pair in zip((X, G, V), small, strict=True) for part in pair]
    outputs = run_training("Momentum", R, T2, *inputs, alpha=0.9, beta=0.5, norm_coefficient=0.1, mode="standard")
    assert [part.dtype for part in outputs] == [np.float64, np.float32] * 2
    np.testing.assert_allclose(outputs[0], outputs[1], rtol=1e-6)


def test_what_does_not_fit_is_rejected():
    """A tensor without its gradient, an unknown mode, a vector of rates."""
    attributes = {"alpha": 0.9, "beta": 0.5, "norm_coefficient": 0.0, "mode": "standard"}
    for arguments, changed in (((R, T0, X, G), {}), ((R, T0, X, G, V), {"mode": "fast"}), ((X, T0, X, G, V), {}), ((R, T0), {})):
        with pytest.raises(InvalidArgument):
            run_training("Momentum", *arguments, **(attributes | changed))


@pytest.mark.parametrize(("op_type", "states"), [("Adagrad", 1), ("Adam", 2)])
def test_gradient_and_state_have_the_shape_of_the_values(op_type, states):
    """Nothing is broadcast."""
    with pytest.raises(InvalidArgument, match=r"have shapes \[\(2,\), \(1,\)"):
        run_training(op_type, R, T2, X, G[:1], *[H] * states)
