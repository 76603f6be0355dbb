"""Facts about activation functions."""

import math

import ml_dtypes
import numpy as np
import pytest
from support.run_op import run_op

from sardonyx.errors import InvalidArgument


def _sigmoid(x):
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


def _elu(x, alpha=1.0):
    return x if x >= 0 else alpha * math.expm1(x)


FUNCTIONS = {
    "Celu": (lambda x: max(0, x) + min(0, 0.5 * math.expm1(min(x, 1) / 0.5)), {"alpha": 0.5}),
    "Elu": (lambda x: _elu(x, 0.7), {"alpha": 0.7}),
    "Gelu": (lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2, {}),
    "HardSigmoid": (lambda x: max(0, min(1, 0.3 * x + 0.4)), {"alpha": 0.3, "beta": 0.4}),
    "HardSwish": (lambda x: x * max(0, min(1, x / 6 + 0.5)), {}),
    "LeakyRelu": (lambda x: x if x >= 0 else 0.1 * x, {"alpha": 0.1}),
    "Mish": (lambda x: x * math.tanh(math.log1p(math.exp(min(x, 700)))), {}),
    "Relu": (lambda x: max(x, 0), {}),
    "Selu": (lambda x: 1.0507010221481323 * _elu(x, 1.6732631921768188), {}),
    "Sigmoid": (_sigmoid, {}),
    "Softplus": (lambda x: max(x, 0) + math.log1p(math.exp(-abs(x))), {}),
    "Softsign": (lambda x: x / (1 + abs(x)), {}),
    "Swish": (lambda x: x * _sigmoid(1.5 * x), {"alpha": 1.5}),
    "ThresholdedRelu": (lambda x: x if x > 0.5 else 0, {"alpha": 0.5}),
}
TOLERANCE = {np.float64: 1e-14, np.float32: 2e-6, np.float16: 2e-3, ml_dtypes.bfloat16: 8e-3}


@pytest.mark.parametrize("dtype", TOLERANCE, ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_of_each_float_type(name, dtype):
    """Each activation agrees with its formula in every float type, and keeps type and shape."""
    function, attributes = FUNCTIONS[name]
    x = np.array([[-20.0, -3.5, -1.0, -0.25], [0.0, 0.6, 2.5, 30.0]]).astype(dtype)
    y = run_op(name, x, **attributes)
    assert (y.dtype, y.shape) == (dtype, x.shape)
    expected = [function(value) for value in x.astype(np.float64).flat]
    np.testing.assert_allclose(y.astype(np.float64).ravel(), expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] / 8)


@pytest.mark.parametrize("name", [*FUNCTIONS, "Clip"])
def test_nan_stays_nan(name):
    """NaN passes through every activation but ThresholdedRelu, which compares."""
    y = run_op(name, np.array([np.nan], np.float32))
    assert bool(np.isnan(y[0])) is (name != "ThresholdedRelu")


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in ("Mish", "Swish", "Gelu", "HardSwish", "Softsign")])
def test_infinities_have_limits(name):
    """Activations that have a limit at infinity reach it without warning or NaN."""
    assert not np.isnan(run_op(name, np.array([-np.inf, np.inf], np.float32))).any()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_empty_and_strided_inputs(name):
    """A tensor without elements and a strided view are as good as any."""
    assert run_op(name, np.zeros((2, 0), np.float32)).shape == (2, 0)
    x = np.linspace(-3, 3, 24, dtype=np.float32).reshape(4, 6)
    np.testing.assert_array_equal(run_op(name, x[::2, ::3]), run_op(name, x[::2, ::3].copy()))


def test_leaky_relu_multiplies_only_what_is_negative():
    """An infinite slope is no factor of the rest, which would make NaN of 0."""
    np.testing.assert_array_equal(run_op("LeakyRelu", np.array([-1, 0, 1], np.float32), alpha=np.inf), [-np.inf, 0, 1])


def test_sigmoid_does_not_overflow():
    """Far out, Sigmoid is exactly 0 and 1."""
    np.testing.assert_array_equal(run_op("Sigmoid", np.array([-1e4, 1e4], np.float32)), [0, 1])


def test_relu_takes_integers():
    """Relu-14 takes signed integers."""
    y = run_op("Relu", np.array([-2, 3], np.int8))
    assert y.dtype == np.int8
    np.testing.assert_array_equal(y, [0, 3])


def test_selu_1_has_rounder_constants():
    """Selu-1 scales by 1.0507, Selu-6 by more digits of it."""
    x = np.array([1.0])
    assert float(run_op("Selu", x, version=1)[0]) == 1.0507
    assert float(run_op("Selu", x, version=6)[0]) == 1.0507010221481323


def test_gelu_by_tanh():
    """approximate="tanh" takes the formula with tanh."""
    x = np.array([-1.2, 0.7])
    expected = 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    np.testing.assert_allclose(run_op("Gelu", x, approximate="tanh"), expected, rtol=1e-14)


def test_gelu_refuses_another_approximation():
    """An unknown approximation is refused by name."""
    with pytest.raises(InvalidArgument, match="approximate='sigmoid'"):
        run_op("Gelu", np.ones(1, np.float32), approximate="sigmoid")


def test_celu_refuses_a_zero_alpha():
    """alpha=0 would divide by zero."""
    with pytest.raises(InvalidArgument, match="alpha=0"):
        run_op("Celu", np.ones(1, np.float32), alpha=0.0)


def test_prelu_broadcasts_the_slope():
    """Since opset 7 the slope broadcasts to the input."""
    x = np.array([[-1.0, 2.0, -3.0]], np.float32)
    np.testing.assert_array_equal(run_op("PRelu", x, np.array([0.5, 0.5, 2], np.float32)), [[-0.5, 2, -6]])


def test_prelu_reads_the_slope_of_negative_elements_alone():
    """A slope that is not finite changes nothing where the input is positive; NaN stays NaN."""
    x = np.array([2.0, 0.0, -1.0, np.nan], np.float32)
    y = run_op("PRelu", x, np.array([np.inf, np.nan, np.inf, 1.0], np.float32))
    np.testing.assert_array_equal(y, [2, 0, -np.inf, np.nan])


def test_prelu_takes_integers():
    """PRelu-9 takes integers."""
    y = run_op("PRelu", np.array([-2, 3], np.int32), np.array([4], np.int32))
    assert y.dtype == np.int32
    np.testing.assert_array_equal(y, [-8, 3])


def test_prelu_1_has_a_slope_per_channel():
    """Before opset 7 a slope of shape (C) belongs to axis 1."""
    x = -np.ones((1, 2, 3), np.float32)
    np.testing.assert_array_equal(run_op("PRelu", x, np.array([1, 2], np.float32), version=6), [[[-1] * 3, [-2] * 3]])


@pytest.mark.parametrize("shape", [(2,), (2, 1, 3)])
def test_prelu_refuses_a_slope_that_does_not_broadcast(shape):
    """The slope must broadcast to the input, not the input to the slope."""
    with pytest.raises(InvalidArgument, match="slope of shape"):
        run_op("PRelu", np.ones((1, 3), np.float32), np.ones(shape, np.float32))


def test_clip_1_and_6_take_attributes():
    """Before opset 11 the limits are attributes; opset 6 has float32's range as the default."""
    x = np.array([-5.0, 0.5, 5.0, np.inf], np.float32)
    np.testing.assert_array_equal(run_op("Clip", x, version=1, max=1.0), [-5, 0.5, 1, 1])
    np.testing.assert_array_equal(run_op("Clip", x, version=6, min=0.0), [0, 0.5, 5, np.finfo(np.float32).max])


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.int8, np.uint64])
def test_clip_takes_limits_as_inputs(dtype):
    """Since opset 11 the limits are optional scalars of the input's type."""
    x = np.array([1, 5, 9]).astype(dtype)
    y = run_op("Clip", x, np.array(2, dtype), np.array(6, dtype))
    assert y.dtype == dtype
    np.testing.assert_array_equal(y, np.array([2, 5, 6]).astype(dtype))
    np.testing.assert_array_equal(run_op("Clip", x, None, np.array(6, dtype)), np.array([1, 5, 6]).astype(dtype))
    np.testing.assert_array_equal(run_op("Clip", x), x)


def test_clip_gives_max_where_min_is_greater():
    """With min above max every element becomes max."""
    x = np.array([-1.0, 1, 9], np.float32)
    np.testing.assert_array_equal(run_op("Clip", x, np.float32(5), np.float32(2)), [2, 2, 2])


def test_clip_refuses_a_limit_of_several_elements():
    """A limit must be a scalar."""
    with pytest.raises(InvalidArgument, match=r"min has shape \(2,\)"):
        run_op("Clip", np.ones(3, np.float32), np.zeros(2, np.float32))


def test_shrink_of_floats_and_integers():
    """Shrink moves what is beyond lambd towards zero by bias, and clears the rest; integers truncate."""
    np.testing.assert_allclose(run_op("Shrink", np.array([-2.0, -0.1, 0.5, 2], np.float32), lambd=1.0, bias=1.5), [-0.5, 0, 0, 0.5])
    y = run_op("Shrink", np.array([-4, 1, 4], np.int16), lambd=1.5, bias=1.5)
    assert y.dtype == np.int16
    np.testing.assert_array_equal(y, [-2, 0, 2])


def test_swiglu_gates_the_second_input():
    """SwiGLU is Swish(A) B, rounded once in narrow types."""
    a, b = np.array([1.0, -2.0], np.float16), np.array([3.0, 0.5], np.float16)
    y = run_op("SwiGLU", a, b, alpha=1.0)
    assert y.dtype == np.float16
    np.testing.assert_allclose(y, [3 * _sigmoid(1), -_sigmoid(-2)], rtol=1e-3)


def test_swiglu_does_not_broadcast():
    """Inputs of two shapes are refused."""
    with pytest.raises(InvalidArgument, match="nothing is broadcast"):
        run_op("SwiGLU", np.ones((2, 3), np.float32), np.ones((1, 3), np.float32))


def test_elu_of_an_infinite_alpha_leaves_what_is_positive():
    """And 0, which it is not multiplied with."""
    assert run_op("Elu", np.float32([-1.0, 0.0, 1.0]), alpha=np.inf).tolist() == [-np.inf, 0.0, 1.0]
