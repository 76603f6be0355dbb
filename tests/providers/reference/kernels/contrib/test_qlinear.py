"""Each QLinear operator against dequantize, compute, quantize in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.run_op import run_op

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument

TYPES = [np.uint8, np.int8]


def run(op_type: str, *inputs: Any, **options: Any) -> Any:
    return run_op(op_type, *inputs, domain="com.microsoft", **options)


def draw(dtype: Any, *shape: int, seed: int = 0) -> Array:
    limits = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(limits.min, limits.max + 1, shape).astype(dtype)


def scale(value: float) -> Array:
    return np.array(value, np.float32)


def quantize(x: Array, step: float, zero: int, dtype: Any) -> Array:
    limits = np.iinfo(dtype)
    return np.clip(np.rint(x / step + zero), limits.min, limits.max).astype(dtype)


def look_up(x: Array, step: float, zero: int, dtype: Any) -> Array:
    """Return what a table holds for numbers: rounded before the zero point is added."""
    limits = np.iinfo(dtype)
    return np.clip(np.rint(x / step) + zero, limits.min, limits.max).astype(dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("op_type", "function"), [("QLinearAdd", np.add), ("QLinearMul", np.multiply)])
def test_binary_operators_broadcast(dtype: Any, op_type: str, function: Callable[..., Array]) -> None:
    """Each operand has a scale and a zero point of its own."""
    a, b = draw(dtype, 2, 3, 4, seed=1), draw(dtype, 4, seed=2)
    y = run(op_type, a, scale(0.5), dtype(3), b, scale(0.25), dtype(7), scale(0.75), dtype(5))
    numbers = function((a.astype(np.float64) - 3) * 0.5, (b.astype(np.float64) - 7) * 0.25)
    np.testing.assert_array_equal(y, quantize(numbers, 0.75, 5, dtype))


@pytest.mark.parametrize("dtype", TYPES)
def test_unary_operators_are_tables(dtype: Any) -> None:
    """LeakyRelu and Sigmoid, on every number that there is, and on a view; half-way goes to the even before the zero point is added."""
    x = np.arange(256, dtype=np.uint8).view(dtype).reshape(16, 16).T
    numbers = (x.astype(np.float64) - 4) * 0.125
    y = run("QLinearLeakyRelu", x, scale(0.125), dtype(4), scale(0.25), dtype(1), alpha=0.5)
    np.testing.assert_array_equal(y, look_up(np.where(numbers < 0, numbers / 2, numbers), 0.25, 1, dtype))
    y = run("QLinearSigmoid", x, scale(0.125), dtype(4), scale(1 / 128), dtype(0))
    np.testing.assert_array_equal(y, look_up(1 / (1 + np.exp(-numbers)), 1 / 128, 0, dtype))


@pytest.mark.parametrize(("opset", "axes"), [(13, (1,)), (11, (1, 2))])
def test_QLinearSoftmax_flattens_before_opset_13(opset: int, axes: tuple[int, ...]) -> None:
    """Axis 1 alone, or it and all behind it."""
    x = draw(np.uint8, 2, 3, 4)
    y = run("QLinearSoftmax", x, scale(0.125), np.uint8(9), scale(1 / 256), np.uint8(0), axis=1, opset=opset)
    weights = np.exp((x.astype(np.float64) - 9) * 0.125)
    np.testing.assert_array_equal(y, quantize(weights / weights.sum(axes, keepdims=True), 1 / 256, 0, np.uint8))


def test_QLinearConcat_brings_its_inputs_to_one_scale() -> None:
    """Inputs come as tensor, scale, zero point."""
    a, b = draw(np.int8, 2, 3, seed=1), draw(np.int8, 2, 1, seed=2)
    y = run("QLinearConcat", scale(0.5), np.int8(1), a, scale(0.25), np.int8(0), b, scale(0.5), np.int8(1), axis=1)
    np.testing.assert_array_equal(y, np.concatenate([look_up(a * 0.25, 0.5, 1, np.int8), b], axis=1))


def test_QLinearConcat_gives_the_type_of_its_own_zero_point() -> None:
    """Whatever the types of its inputs."""
    a, b = draw(np.uint8, 2, 3, seed=1), draw(np.int8, 2, 1, seed=2)
    y = run("QLinearConcat", scale(0.5), np.int8(1), a, scale(0.25), np.uint8(128), b, scale(0.5), np.int8(1), axis=1)
    np.testing.assert_array_equal(y, np.concatenate([look_up((a.astype(np.float64) - 128) * 0.25, 0.5, 1, np.int8), b], axis=1))


def test_QLinearWhere_brings_both_sides_to_one_scale() -> None:
    """The side with the result's own scale passes unchanged."""
    x, y = draw(np.uint8, 2, 3, seed=1), draw(np.uint8, 3, seed=2)
    condition = np.array([[True], [False]])
    z = run("QLinearWhere", condition, x, scale(0.5), np.uint8(0), y, scale(1.0), np.uint8(3), scale(1.0), np.uint8(3))
    np.testing.assert_array_equal(z, np.where(condition, look_up(x * 0.5, 1.0, 3, np.uint8), y))


@pytest.mark.parametrize("channels_last", [0, 1])
def test_pools_take_both_layouts(channels_last: int) -> None:
    """Averages are taken of the numbers; padding does not count."""
    x = draw(np.uint8, 2, 3, 4, 4)
    given = np.moveaxis(x, 1, -1) if channels_last else x
    numbers = (x.astype(np.float64) - 10) * 0.5
    y = run("QLinearGlobalAveragePool", given, scale(0.5), np.uint8(10), scale(0.25), np.uint8(3), channels_last=channels_last)
    expected = quantize(numbers.mean((2, 3), keepdims=True), 0.25, 3, np.uint8)
    np.testing.assert_array_equal(np.moveaxis(y, -1, 1) if channels_last else y, expected)
    y = run(
        "QLinearAveragePool",
        given,
        scale(0.5),
        np.uint8(10),
        scale(0.25),
        np.uint8(3),
        channels_last=channels_last,
        kernel_shape=(2, 2),
        strides=(2, 2),
    )
    expected = quantize(numbers.reshape(2, 3, 2, 2, 2, 2).mean((3, 5)), 0.25, 3, np.uint8)
    np.testing.assert_array_equal(np.moveaxis(y, -1, 1) if channels_last else y, expected)


@pytest.mark.parametrize("transposed", [0, 1])
def test_QGemm_gives_numbers_or_quantizes_them(transposed: int) -> None:
    """Without y_scale the result is float32; scales and zero points of B may go by column."""
    a, b, c = draw(np.uint8, 3, 4, seed=1), draw(np.int8, 4, 2, seed=2), np.array([100, -100], np.int32)
    b_scale, b_zero = np.array([0.5, 0.25], np.float32), np.array([3, -3], np.int8)
    operands = (a.T if transposed else a, scale(0.125), np.uint8(7), b.T if transposed else b, b_scale, b_zero, c)
    numbers = ((a.astype(np.float64) - 7) @ (b.astype(np.float64) - b_zero) + c) * 0.125 * b_scale
    options = {"transA": transposed, "transB": transposed}
    np.testing.assert_allclose(run("QGemm", *operands, **options), numbers, rtol=1e-6)
    y = run("QGemm", *operands, scale(64.0), np.int8(5), **options)
    np.testing.assert_array_equal(y, quantize(numbers, 64.0, 5, np.int8))


def test_QLinearConv_takes_channels_last() -> None:
    """It is the standard operator with the channels moved."""
    x, w = draw(np.uint8, 1, 2, 5, 5, seed=1), draw(np.int8, 3, 2, 3, 3, seed=2)
    rest = (scale(0.5), np.uint8(9), w, scale(0.25), np.int8(0), scale(64.0), np.uint8(100))
    expected = run_op("QLinearConv", x, *(np.asarray(value) for value in rest), pads=(1, 1, 1, 1))
    y = run("QLinearConv", np.moveaxis(x, 1, -1), *rest, pads=(1, 1, 1, 1), channels_last=1)
    np.testing.assert_array_equal(np.moveaxis(y, -1, 1), expected)


X = draw(np.uint8, 2, 3)


@pytest.mark.parametrize(
    ("op_type", "inputs", "attributes", "message"),
    [
        ("QLinearAdd", (X, scale(1), np.uint8(0), X[:, :2], scale(1), np.uint8(0), scale(1)), {}, "do not broadcast"),
        ("QLinearAdd", (X, scale(1), np.uint8(0), X, np.ones(3, np.float32), np.uint8(0), scale(1)), {}, "B_scale has shape"),
        ("QLinearConcat", (scale(1), np.uint8(0), X, scale(1)), {"axis": 0}, "2 inputs after Y_zero_point"),
        ("QLinearConcat", (scale(1), np.bool_(0), X, scale(1), np.uint8(0)), {"axis": 0}, "Y_zero_point has type bool; expected"),
        ("QGemm", (X, scale(1), np.uint8(0), X.T, scale(1), np.uint8(0), np.zeros(5, np.int32)), {}, "C has shape"),
    ],
)
def test_bad_inputs_are_named(op_type: str, inputs: tuple[Any, ...], attributes: dict[str, Any], message: str) -> None:
    """The message holds what was found."""
    with pytest.raises(InvalidArgument, match=message):
        run(op_type, *inputs, **attributes)


def test_sums_half_way_between_integers_go_to_the_even() -> None:
    """Scales of 0.1 and 0.2 make many ties, which float32 would miss."""
    a, b = (np.arange(256, dtype=np.uint8).repeat(256).reshape(256, 256)[::step] for step in (1, -1))
    tenth, fifth, zero = np.float32(0.1), np.float32(0.2), np.uint8(128)
    y = run("QLinearAdd", a, tenth, zero, b.T, tenth, zero, fifth, zero)
    exact = (a.astype(np.float64) - 128) / 2 + (b.T.astype(np.float64) - 128) / 2 + 128
    np.testing.assert_array_equal(y, np.clip(np.rint(exact), 0, 255).astype(np.uint8))


def test_QGemm_rounds_before_it_adds_the_zero_point() -> None:
    """Ties go to even numbers of steps, as in QLinearMatMul and in onnxruntime: 2.5 steps are 2, and 3 more are 5."""
    a, one, zero = np.array([[5], [7]], np.uint8), np.ones((1, 1), np.uint8), np.uint8(0)
    y = run("QGemm", a, scale(0.5), zero, one, scale(1.0), zero, None, scale(1.0), np.uint8(3))
    np.testing.assert_array_equal(y, [[5], [7]])
