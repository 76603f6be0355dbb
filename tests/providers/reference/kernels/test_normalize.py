"""Facts about normalization of rows, groups and neighbourhoods."""

import ml_dtypes
import numpy as np
import pytest
from support.run_op import run_op

from sardonyx.errors import InvalidArgument

FLOATS = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16]
RTOL = {8: 1e-10, 4: 1e-5, 2: 2e-2}


def _random(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def _standardize(x, axes, epsilon=1e-5):
    centred = x - x.mean(axis=axes, keepdims=True)
    return centred / np.sqrt(np.square(centred).mean(axis=axes, keepdims=True) + epsilon)


def _close(y, expected, dtype):
    assert y.dtype == dtype
    tolerance = RTOL[y.itemsize]
    np.testing.assert_allclose(y.astype(np.float64), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("axis", [-1, 1, 0])
def test_layer_normalization(axis, dtype):
    """Rows are normalized over the axis and those after it, then scaled and shifted."""
    x, shape = _random(2, 3, 5).astype(dtype), (2, 3, 5)[axis:]
    scale, bias = _random(*shape, seed=1).astype(dtype), _random(*shape, seed=2).astype(dtype)
    y, mean, inverse = run_op("LayerNormalization", x, scale, bias, axis=axis)
    exact, axes = x.astype(np.float64), tuple(range(axis % 3, 3))
    _close(y, _standardize(exact, axes) * scale.astype(np.float64) + bias.astype(np.float64), dtype)
    kept = (2, 3, 5)[: axis % 3] + (1,) * len(axes)
    assert (mean.shape, inverse.shape, mean.dtype, inverse.dtype) == (kept, kept, np.float32, np.float32)
    np.testing.assert_allclose(mean, exact.mean(axis=axes, keepdims=True), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(inverse, 1 / np.sqrt(exact.var(axis=axes, keepdims=True) + 1e-5), rtol=1e-5)


@pytest.mark.parametrize("shape", [(), (1,), (5,), (3, 1), (2, 3, 5)])
def test_layer_normalization_broadcasts_scale_and_bias(shape):
    """Scale and bias broadcast to the input, whatever the axis."""
    x, scale = _random(2, 3, 5), _random(*shape, seed=1)
    y = run_op("LayerNormalization", x, scale, scale)[0]
    _close(y, _standardize(x, 2) * scale + scale, np.float64)


def test_layer_normalization_in_many_blocks():
    """More rows than a block holds, in a strided view, without bias."""
    x = _random(100, 600).astype(np.float32).T[::2]
    y = run_op("LayerNormalization", x, np.ones(100, np.float32))[0]
    _close(y, _standardize(x.astype(np.float64), 1), np.float32)


def test_layer_normalization_of_nothing():
    """No rows give no rows."""
    assert run_op("LayerNormalization", np.zeros((0, 4), np.float32), np.ones(4, np.float32))[0].shape == (0, 4)


def test_layer_normalization_keeps_accuracy_far_from_zero():
    """A mean of 1000 costs no more digits than float32 has at 1000."""
    x = (_random(4, 256) + 1000).astype(np.float32)
    y = run_op("LayerNormalization", x, np.ones(256, np.float32))[0]
    np.testing.assert_allclose(y, _standardize(x.astype(np.float64), 1), atol=2e-4)


@pytest.mark.parametrize(("name", "extra"), [("LayerNormalization", 1), ("RMSNormalization", 0)])
def test_a_scale_that_does_not_broadcast_is_refused(name, extra):
    """The message names both shapes; an unknown stash_type is refused too."""
    x = np.ones((2, 3), np.float32)
    with pytest.raises(InvalidArgument, match=r"Scale of shape \(2,\)"):
        run_op(name, x, np.ones(2, np.float32))
    with pytest.raises(InvalidArgument, match="stash_type=7"):
        run_op(name, x, np.ones(3, np.float32), *[None] * extra, stash_type=7)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("axis", [-1, 1])
def test_rms_normalization(axis, dtype):
    """Rows are divided by their root mean square and scaled."""
    x, scale = _random(2, 3, 5).astype(dtype), _random(5, seed=1).astype(dtype)
    y = run_op("RMSNormalization", x, scale, axis=axis)
    exact, axes = x.astype(np.float64), tuple(range(axis % 3, 3))
    root = np.sqrt(np.square(exact).mean(axis=axes, keepdims=True) + 1e-5)
    _close(y, exact / root * scale.astype(np.float64), dtype)


def test_rms_normalization_has_the_type_of_its_scale():
    """X of float16 and a scale of float32 give float32."""
    y = run_op("RMSNormalization", np.ones((1, 4), np.float16), np.ones(4, np.float32))
    assert y.dtype == np.float32


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (2, 3, 7), (1, 3, 200, 200)])
def test_instance_normalization(shape, dtype):
    """Each channel of each instance is normalized, then scaled and shifted per channel."""
    x = _random(*shape).astype(dtype)
    scale, bias = _random(3, seed=1).astype(dtype), _random(3, seed=2).astype(dtype)
    y = run_op("InstanceNormalization", x, scale, bias)
    parameters = [p.astype(np.float64).reshape(3, *[1] * (len(shape) - 2)) for p in (scale, bias)]
    expected = _standardize(x.astype(np.float64), tuple(range(2, len(shape)))) * parameters[0] + parameters[1]
    _close(y, expected, dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_group_normalization(dtype):
    """Groups of channels are normalized; scale and bias are per channel since opset 21, per group before."""
    x = _random(2, 6, 4).astype(dtype)
    scale, bias = _random(6, seed=1).astype(dtype), _random(6, seed=2).astype(dtype)
    normal = _standardize(x.astype(np.float64).reshape(2, 3, 8), 2).reshape(2, 6, 4)
    y = run_op("GroupNormalization", x, scale, bias, num_groups=3)
    _close(y, normal * scale.astype(np.float64)[:, None] + bias.astype(np.float64)[:, None], dtype)
    y = run_op("GroupNormalization", x, scale[:3], bias[:3], num_groups=3, version=18)
    each = [p[:3].astype(np.float64).repeat(2)[:, None] for p in (scale, bias)]
    _close(y, normal * each[0] + each[1], dtype)


@pytest.mark.parametrize(("groups", "length"), [(4, 6), (0, 6), (3, 3)])
def test_group_normalization_refuses_what_does_not_fit(groups, length):
    """The number of groups divides the channels, and there is a scale for each channel."""
    with pytest.raises(InvalidArgument, match=r"num_groups|scale has shape"):
        run_op("GroupNormalization", np.ones((1, 6, 2)), np.ones(length), np.ones(length), num_groups=groups)


@pytest.mark.parametrize("dtype", FLOATS)
def test_mean_variance_normalization(dtype):
    """Over axes 0, 2, 3 by default; 1e-9 is added to the deviation, as ONNX's function body does."""
    x = _random(2, 3, 4, 5).astype(dtype)
    exact = x.astype(np.float64)
    deviation = exact.std(axis=(0, 2, 3), keepdims=True) + 1e-9
    _close(run_op("MeanVarianceNormalization", x), (exact - exact.mean(axis=(0, 2, 3), keepdims=True)) / deviation, dtype)


def test_mean_variance_normalization_may_only_take_the_mean_off():
    """As an experiment of ai.onnx, before opset 9; nothing of no elements is asked for its mean."""
    x = _random(2, 3, 4, 5).astype(np.float32)
    found = run_op("MeanVarianceNormalization", x, version=8, across_channels=1, normalize_variance=0)
    _close(found, x.astype(np.float64) - x.astype(np.float64).mean(), np.float32)
    assert run_op("MeanVarianceNormalization", x[:0]).shape == (0, 3, 4, 5)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("p", [1, 2])
def test_lp_normalization(p, dtype):
    """Columns have a p-norm of one, but a column of zeros stays zero."""
    x = _random(4, 3).astype(dtype)
    x[:, 1] = 0
    y = run_op("LpNormalization", x, axis=0, p=p)
    norm = np.linalg.norm(x.astype(np.float64), p, axis=0)
    _close(y, x.astype(np.float64) / np.where(norm == 0, 1, norm), dtype)


def test_lp_normalization_refuses_another_norm():
    """Only 1 and 2 are norms here."""
    with pytest.raises(InvalidArgument, match="p=3"):
        run_op("LpNormalization", np.ones((2, 2)), p=3)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 100, 1 << 60])
def test_lrn_sums_neighbouring_channels(size):
    """The window runs from floor((size - 1) / 2) channels before to ceil((size - 1) / 2) after; a huge one costs nothing."""
    x = _random(2, 6, 3)
    before, after = (size - 1) // 2, size // 2
    total = np.stack([np.square(x[:, max(0, c - before) : c + after + 1]).sum(axis=1) for c in range(6)], axis=1)
    y = run_op("LRN", x, size=size, alpha=0.3, beta=0.6, bias=1.5)
    np.testing.assert_allclose(y, x / (1.5 + 0.3 / size * total) ** 0.6, rtol=1e-12)


def test_lrn_refuses_an_empty_window():
    """The size is positive."""
    with pytest.raises(InvalidArgument, match="size=0"):
        run_op("LRN", np.ones((1, 2, 3)), size=0)


@pytest.mark.parametrize("shape", [(0, 4, 3), (2, 4, 0), (2, 0, 3)])
def test_empty_tensors_stay_empty(shape):
    """No instance, no pixel, or no channel: nothing to normalize."""
    channels = np.ones(shape[1], np.float32)
    x = np.zeros(shape, np.float32)
    assert run_op("InstanceNormalization", x, channels, channels).shape == shape
    assert run_op("LayerNormalization", x, np.ones(shape[2], np.float32))[0].shape == shape
    assert run_op("LRN", x, size=3).shape == shape


@pytest.mark.parametrize(("x_type", "scale_type"), [(np.float16, np.float32), (np.float32, np.float16), (np.float64, np.float32)])
def test_layer_normalization_before_the_standard_has_the_type_of_its_scale(x_type, scale_type):
    """In operator sets before 17, x may have another type than scale and bias; nothing is rounded to a narrower one before."""
    x, scale, bias = _random(3, 8).astype(x_type), _random(8, seed=1).astype(scale_type), _random(8, seed=2).astype(scale_type)
    y, mean, inverse = run_op("LayerNormalization", x, scale, bias, version=12, outputs=3)
    expected = _standardize(x.astype(np.float64), (1,)) * scale.astype(np.float64) + bias
    assert (y.dtype, mean.dtype, inverse.dtype) == (scale_type, np.float32, np.float32)
    np.testing.assert_allclose(
        y, expected, **({"rtol": 1e-3, "atol": 2e-3} if scale_type is np.float16 else {"rtol": 1e-5, "atol": 1e-5})
    )
