"""Integers that stand for real numbers: the nodes that make one of the other.

Quantized operators become QuantizeLinear(operator(DequantizeLinear)), of which the optimizer makes operators on integers.
TensorFlow Lite scales the sums of quantized operators by fixed-point multipliers, whose results differ from these by one step of
the scale at most.
"""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import Array, DataType
from sardonyx.formats.tflite.builder import GraphBuilder
from sardonyx.formats.tflite.tensors import Quantization, TensorInfo
from sardonyx.ir import Tensor, Value

__all__ = [
    "block_product",
    "dequantized",
    "dynamic_differences",
    "dynamic_image",
    "dynamic_product",
    "parameters",
    "quantized",
    "scaled_bias",
]


_TINY = np.float32(1e-30)
"""The least scale: rows of zeros have one too."""


def parameters(build: GraphBuilder, quantization: Quantization, dtype: DataType) -> tuple[Value, Value]:
    """Return scale and zero point as constants: scalars of a whole tensor, lists along an axis."""
    scales, points = quantization.scales, quantization.zero_points.astype(dtype.numpy)
    if quantization.is_per_tensor:
        return build.constant(scales[0]), build.constant(points[0])
    return build.constant(scales), build.constant(points)


def dequantized(build: GraphBuilder, value: Value, info: TensorInfo) -> Value:
    """Return the real numbers that `value`, of the tensor `info`, stands for; `value` itself where it has them."""
    if info.quantization is None or not info.is_quantized:
        return value
    return scaled(build, value, info.quantization, info.dtype)


def scaled(build: GraphBuilder, value: Value, quantization: Quantization, dtype: DataType) -> Value:
    """Return the real numbers that integers of `dtype` stand for."""
    scale, point = parameters(build, quantization, dtype)
    axis = None if quantization.is_per_tensor else quantization.axis
    return build.node("DequantizeLinear", value, scale, point, axis=axis)


def quantized(build: GraphBuilder, value: Value, info: TensorInfo) -> Value:
    """Return the integers of the tensor `info` that stand for the real numbers `value`."""
    if info.quantization is None or not info.is_quantized:
        return value
    scale, point = parameters(build, info.quantization, info.dtype)
    axis = None if info.quantization.is_per_tensor else info.quantization.axis
    return build.node("QuantizeLinear", value, scale, point, axis=axis)


def scaled_bias(build: GraphBuilder, value: Value, info: TensorInfo, scales: Array) -> Value:
    """Return the real numbers of a bias, whose integers count products of the scales of input and weights.

    Args:
        build: the graph.
        value: the bias, (M,); of int32 or int64, or of real numbers already.
        info: its tensor.
        scales: float32, one for all or one for each element.
    """
    if info.dtype is DataType.INT32:
        shared = build.constant(scales[0]) if len(scales) == 1 else build.constant(scales)
        return build.node("DequantizeLinear", value, shared, axis=None if len(scales) == 1 else 0)
    if info.dtype is DataType.INT64 and value.constant is not None:
        return build.initializer(
            Tensor.from_array((value.constant.numpy() * scales.astype(np.float64)).astype(np.float32), info.name)
        )
    if info.dtype is DataType.INT64:
        return build.node("Mul", build.cast(value, DataType.FLOAT), build.constant(scales))
    return value


def dynamic_product(build: GraphBuilder, value: Value, weights: Value, scales: Array, *, asymmetric: bool) -> Value:
    """Return the product of rows of real numbers, each rounded to 8 bits by a scale of its own, and integers.

    This is what TensorFlow Lite does where weights are integers and inputs are not.

    Args:
        build: the graph.
        value: the rows, (…, K).
        weights: int8, (…, K, M), whose zero points are 0.
        scales: float32, those of the weights, one or (M,).
        asymmetric: whether the range of a row need not be as wide on both sides of 0.
    """
    axis = build.ints(-1)
    if asymmetric:
        scale, point = _range(build, value, axis)
        steps = build.node("Round", build.node("Add", build.node("Mul", value, build.node("Reciprocal", scale)), point))
        rounded = build.cast(build.clip(steps, -128, 127), DataType.INT8)
        sums = build.node("MatMulInteger", rounded, weights, build.cast(point, DataType.INT8))
    else:
        rounded, scale = _symmetric(build, value, axis)
        sums = build.node("MatMulInteger", rounded, weights)
    return build.node("Mul", build.node("Mul", build.cast(sums, DataType.FLOAT), scale), build.constant(scales))


def block_product(build: GraphBuilder, value: Value, weights: Value, scales: Value, size: int) -> Value:
    """Return the product of rows, each rounded to 8 bits by a scale and a zero point of its own, and weights with scales of blocks.

    Args:
        build: the graph.
        value: the rows, (N, K).
        weights: integers, (M, K).
        scales: float32, (M, K / size).
        size: how many weights of a row have one scale.
    """
    scale, point = _range(build, value, build.ints(-1))
    steps = build.node("Round", build.node("Add", build.node("Mul", value, build.node("Reciprocal", scale)), point))
    rounded = build.node("Sub", build.clip(steps, -128, 127), point)
    columns = build.node("DequantizeLinear", weights, scales, axis=1, block_size=size)
    return build.node("Mul", build.node("Gemm", rounded, columns, transB=1), scale)


def dynamic_image(build: GraphBuilder, value: Value, *, asymmetric: bool) -> tuple[Value, Value | None, Value]:
    """Return images (N, C, …) as integers of 8 bits, in steps of a scale that they themselves decide.

    Args:
        build: the graph.
        value: the images; one, where the range is asymmetric.
        asymmetric: whether the range need not be as wide on both sides of 0.

    Returns:
        The integers; their zero point, None where it is 0; the scales, one number or (N, 1, …).
    """
    if asymmetric:
        steps, scale, point = build.nodes("DynamicQuantizeLinear", value, outputs=3)
        return steps, point, scale
    rounded, scale = _symmetric(build, value, build.ints(1, 2, 3))
    return rounded, None, scale


def dynamic_differences(build: GraphBuilder, value: Value) -> tuple[Value, Value]:
    """Return images (N, C, …) as whole steps from a zero point of each, as real numbers, and their scales (N, 1, …)."""
    scale, point = _range(build, value, build.ints(1, 2, 3))
    numbers = build.node("Round", build.node("Add", build.node("Mul", value, build.node("Reciprocal", scale)), point))
    return build.node("Sub", build.clip(numbers, -128, 127), point), scale


def _symmetric(build: GraphBuilder, value: Value, axes: Value) -> tuple[Value, Value]:
    """Return numbers as int8 from -127 to 127, and the scale."""
    widest = build.node("ReduceMax", build.node("Abs", value), axes, keepdims=1)
    factor = build.node("Div", build.constant(np.float32(127)), build.node("Max", widest, build.constant(_TINY)))
    steps = build.clip(build.node("Round", build.node("Mul", value, factor)), -127, 127)
    return build.cast(steps, DataType.INT8), build.node("Div", widest, build.constant(np.float32(127)))


def _range(build: GraphBuilder, value: Value, axes: Value) -> tuple[Value, Value]:
    """Return the scale by which int8 reaches from the least number to the greatest, and the zero point as a real number."""
    zero = build.constant(np.float32(0))
    low = build.node("Min", build.node("ReduceMin", value, axes, keepdims=1), zero)
    high = build.node("Max", build.node("ReduceMax", value, axes, keepdims=1), zero)
    width = build.node("Div", build.node("Sub", high, low), build.constant(np.float32(255)))
    scale = build.node("Max", width, build.constant(_TINY))
    point = build.node("Round", build.node("Sub", build.constant(np.float32(-128)), build.node("Div", low, scale)))
    return scale, build.clip(point, -128, 127)
