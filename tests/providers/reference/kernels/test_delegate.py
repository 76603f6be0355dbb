"""Standard operators run from another kernel."""

from __future__ import annotations

import numpy as np
import pytest

from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.kernels.delegate import activate, run_standard

X = np.array([-2.0, -0.25, 0.0, 3.0], np.float32)


def test_run_standard_takes_the_newest_meaning_or_an_older_one() -> None:
    """Softmax flattens to a matrix before opset 13 and not since."""
    x = np.zeros((2, 2, 2), np.float32)
    assert run_standard("Softmax", x, axis=1)[0, 0, 0] == 0.5
    assert run_standard("Softmax", x, version=11, axis=1)[0, 0, 0] == 0.25


def test_run_standard_returns_all_outputs() -> None:
    """An operator with several outputs gives a tuple."""
    values, indices = run_standard("TopK", X, np.array([1]), outputs=2)
    assert (values[0], indices[0]) == (3, 3)


@pytest.mark.parametrize(
    ("name", "parameters", "expected"),
    [
        ("", (), X),
        ("Relu", (), np.maximum(X, 0)),
        ("LeakyRelu", (0.5,), np.where(X < 0, X / 2, X)),
        ("Clip", (-1.0, 1.0), np.clip(X, -1, 1)),
        ("HardSigmoid", (0.25, 0.5), np.clip(X / 4 + 0.5, 0, 1)),
    ],
)
def test_activate(name: str, parameters: tuple[float, ...], expected: np.ndarray) -> None:
    """Parameters become the attributes of the activation in their order."""
    np.testing.assert_array_equal(activate(X, name, parameters), expected)


def test_an_unknown_activation_is_an_error() -> None:
    """The message lists the known ones."""
    with pytest.raises(InvalidArgument, match="'Cosine'; expected Clip or one of Elu"):
        activate(X, "Cosine", ())
