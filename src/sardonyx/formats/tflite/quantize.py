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

__all__ = ["dequantized", "dynamic_steps", "parameters", "quantized", "scaled_bias"]


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


def dynamic_steps(build: GraphBuilder, value: Value, axes: tuple[int, ...], *, asymmetric: bool) -> tuple[Value, Value]:
    """Return real numbers as whole steps of a scale that they themselves decide, and the scale.

    This is what TensorFlow Lite does where weights are integers and inputs are not: each row, or image, is rounded to 8 bits.

    Args:
        build: the graph.
        value: the numbers.
        axes: the axes that share a scale.
        asymmetric: whether the range need not be as wide on both sides of 0.
    """
    axis, half = build.ints(*axes), build.constant(np.float32(0.5))

    def rounded(number: Value) -> Value:
        whole = build.node("Floor", build.node("Add", build.node("Abs", number), half))
        return build.node("Mul", build.node("Sign", number), whole)

    tiny = build.constant(np.float32(1e-30))
    if not asymmetric:
        widest = build.node("ReduceMax", build.node("Abs", value), axis, keepdims=1)
        factor = build.node("Div", build.constant(np.float32(127)), build.node("Max", widest, tiny))
        steps = build.clip(rounded(build.node("Mul", value, factor)), -127, 127)
        return steps, build.node("Div", widest, build.constant(np.float32(127)))
    zero = build.constant(np.float32(0))
    low = build.node("Min", build.node("ReduceMin", value, axis, keepdims=1), zero)
    high = build.node("Max", build.node("ReduceMax", value, axis, keepdims=1), zero)
    scale = build.node("Max", build.node("Div", build.node("Sub", high, low), build.constant(np.float32(255))), tiny)
    below, above = build.node("Div", low, scale), build.node("Div", high, scale)
    from_low = build.node("Sub", build.constant(np.float32(-128)), below)
    from_high = build.node("Sub", build.constant(np.float32(127)), above)
    one = build.constant(np.float32(1))
    lower = build.node("Less", build.node("Sub", one, below), above)
    point = build.clip(rounded(build.node("Where", lower, from_low, from_high)), -128, 127)
    quantized_value = build.clip(rounded(build.node("Add", build.node("Div", value, scale), point)), -128, 127)
    return build.node("Sub", quantized_value, point), scale
