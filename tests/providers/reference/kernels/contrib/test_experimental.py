"""Operators that ai.onnx had as experiments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.run_op import run_op

from sardonyx.errors import InvalidArgument

X = np.arange(2 * 3 * 4 * 5, dtype=np.float32).reshape(2, 3, 4, 5) / 40


def run(op_type: str, *inputs: Any, **attributes: Any) -> Any:
    """Run an operator of opset 9."""
    return run_op(op_type, *inputs, version=9, **attributes)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
def test_elements_are_computed_one_by_one(dtype: type) -> None:
    """In float32 for half types; the type stays."""
    x = X.astype(dtype)
    wide = X.astype(np.float64)
    cases = {
        "Affine": ({"alpha": 2.0, "beta": 0.5}, 2 * wide + 0.5),
        "Scale": ({"scale": 3.0}, 3 * wide),
        "ScaledTanh": ({"alpha": 2.0, "beta": 0.5}, 2 * np.tanh(wide / 2)),
        "ParametricSoftplus": ({"alpha": 2.0, "beta": 0.5}, 2 * np.log1p(np.exp(wide / 2))),
        "ImageScaler": ({"scale": 2.0, "bias": [1.0, 2.0, 3.0]}, 2 * wide + np.array([1, 2, 3])[:, None, None]),
    }
    for name, (attributes, expected) in cases.items():
        found = run(name, x, **attributes)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, expected, rtol=2e-3 if dtype == np.float16 else 1e-5)


def test_a_softplus_of_large_numbers_is_finite() -> None:
    """It is alpha beta x there."""
    assert run("ParametricSoftplus", np.array([1e4, -1e4], np.float32), alpha=1.0, beta=1.0).tolist() == [1e4, 0]


def test_a_crop_takes_a_part() -> None:
    """By its border, or from (top, left) on."""
    np.testing.assert_array_equal(run("Crop", X, border=[1, 1, 1, 0]), X[:, :, 1:, 1:4])
    np.testing.assert_array_equal(run("Crop", X, border=[1, 2, 0, 0], scale=[2, 3]), X[:, :, 2:4, 1:4])


@pytest.mark.parametrize(
    "attributes", [{"border": [3, 0, 3, 0]}, {"border": [-1, 0, 0, 0]}, {"border": [0, 0, 0, 0], "scale": [5, 1]}]
)
def test_a_crop_stays_within_the_image(attributes: Any) -> None:
    """Anything else is refused."""
    with pytest.raises(InvalidArgument, match="reach outside"):
        run("Crop", X, **attributes)


def test_biases_are_one_per_channel() -> None:
    """Another number is refused."""
    with pytest.raises(InvalidArgument, match="2 biases"):
        run("ImageScaler", X, bias=[1.0, 2.0])


def test_a_dynamic_slice_is_a_slice() -> None:
    """With all axes where none are named."""
    np.testing.assert_array_equal(run("DynamicSlice", X, np.array([1]), np.array([-1]), np.array([3])), X[..., 1:-1])
    np.testing.assert_array_equal(run("DynamicSlice", X[0, 0], np.array([0, 1]), np.array([-1, 1000])), X[0, 0, :-1, 1:])
