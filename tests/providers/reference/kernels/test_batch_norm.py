"""Facts about batch normalization in each opset."""

import ml_dtypes
import numpy as np
import pytest
from support.run_op import run_op

from sardonyx.errors import InvalidArgument

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(2, 3, size=(4, 3, 5))
SCALE, BIAS, MEAN = RANDOM.normal(size=(3, 3))
VARIANCE = RANDOM.uniform(0.5, 2, size=3)


def _expected(mean, variance):
    column = (slice(None), None)
    return (X - mean[column]) / np.sqrt(variance[column] + 1e-5) * SCALE[column] + BIAS[column]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize(
    ("version", "attributes"), [(1, {"is_test": 1}), (6, {"is_test": 1}), (7, {}), (9, {}), (14, {}), (15, {})]
)
def test_inference_uses_the_statistics_given(version, attributes, dtype):
    """Every version agrees in inference."""
    y = run_op("BatchNormalization", *(p.astype(dtype) for p in (X, SCALE, BIAS, MEAN, VARIANCE)), version=version, **attributes)[0]
    assert y.dtype == dtype
    tolerance = {8: 1e-12, 4: 1e-5, 2: 5e-2}[y.itemsize]
    np.testing.assert_allclose(y.astype(np.float64), _expected(MEAN, VARIANCE), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    ("version", "attributes", "outputs"),
    [(6, {}, 5), (7, {}, 5), (9, {}, 5), (14, {"training_mode": 1}, 3), (15, {"training_mode": 1}, 3)],
)
def test_training_uses_the_statistics_of_the_batch(version, attributes, outputs):
    """In training the batch's mean and population variance serve, and running ones are returned."""
    results = run_op(
        "BatchNormalization", X, SCALE, BIAS, MEAN, VARIANCE, version=version, outputs=outputs, momentum=0.75, **attributes
    )
    mean, variance = X.mean(axis=(0, 2)), X.var(axis=(0, 2))
    expected = [_expected(mean, variance), MEAN * 0.75 + mean * 0.25, VARIANCE * 0.75 + variance * 0.25, mean, variance]
    assert len(results) == outputs
    for got, want in zip(results, expected, strict=False):
        np.testing.assert_allclose(got, want, rtol=1e-12)


def test_running_statistics_keep_their_own_type():
    """BatchNormalization-15 takes X in float16 with statistics in float32, and returns those in float32."""
    x, scale = X.astype(np.float16), SCALE.astype(np.float16)
    y, mean, variance = run_op(
        "BatchNormalization", x, scale, scale, MEAN.astype(np.float32), VARIANCE.astype(np.float32), training_mode=1
    )
    assert (y.dtype, mean.dtype, variance.dtype) == (np.float16, np.float32, np.float32)


def test_without_spatial_each_activation_has_statistics():
    """Up to opset 8, spatial=0 takes parameters of shape (C, ...)."""
    mean, ones = X.mean(axis=0), np.ones((3, 5))
    y = run_op("BatchNormalization", X, ones, ones, mean, ones, version=7, spatial=0, epsilon=0.0)[0]
    np.testing.assert_allclose(y, X - mean + 1, atol=1e-12)


def test_one_axis_is_one_channel():
    """X of shape (N) has a single channel."""
    one = np.ones(1)
    y = run_op("BatchNormalization", np.array([1.0, 3.0]), one, one, one, one, epsilon=0.0)[0]
    np.testing.assert_array_equal(y, [1, 3])


def test_statistics_of_another_length_are_refused():
    """The message names the parameter and both shapes."""
    with pytest.raises(InvalidArgument, match=r"mean has shape \(2,\); expected \(3,\)"):
        run_op("BatchNormalization", X, SCALE, BIAS, MEAN[:2], VARIANCE)
