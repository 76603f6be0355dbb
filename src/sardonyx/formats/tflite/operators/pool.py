"""Pools of images: AVERAGE_POOL_2D, MAX_POOL_2D, L2_POOL_2D. Averages count no padding."""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.formats.tflite.operator import ACTIVATION, Operator, imports
from sardonyx.formats.tflite.operators.conv import window_padding

__all__ = ["pool"]

_COUNTED = (DataType.INT8, DataType.UINT8, DataType.INT16)
"""Integers that count steps of 1 where they have no scale."""


@imports("AVERAGE_POOL_2D", "L2_POOL_2D", "MAX_POOL_2D")
def pool(op: Operator) -> None:
    """Compute the average, the greatest, or the root of the mean square of each window of images (N, H, W, C)."""
    options, build = op.options("Pool2DOptions"), op.build
    strides = options.integer("stride_h"), options.integer("stride_w")
    windows = options.integer("filter_height"), options.integer("filter_width")
    if op.rank(0) != 4 or min(*strides, *windows) < 1:
        op.refuse(f"windows {list(windows)} with strides {list(strides)} do not go with a tensor of rank {op.rank(0)}")
    padding = window_padding(op, options.choice("padding", "SAME VALID"), windows, strides)
    activation = options.choice("fused_activation_function", ACTIVATION)
    if (
        op.code == "MAX_POOL_2D"
        and op.info(0).dtype is not DataType.INT16
        and activation == "NONE"
        and op.info(0).same_scale(op.output(0))
    ):
        value = build.node("MaxPool", build.first(op.raw(0), 4), kernel_shape=windows, strides=strides, **padding)
        op.put_raw(0, build.last(value, 4))
        return
    is_counted = op.info(0).dtype in _COUNTED and not op.info(0).is_quantized  # as kernels of TensorFlow Lite take them: by 1
    value = build.cast(build.first(op.raw(0), 4), DataType.FLOAT) if is_counted else op.image(0)
    if op.code == "L2_POOL_2D":
        value = build.node("Mul", value, value)
    name = "MaxPool" if op.code == "MAX_POOL_2D" else "AveragePool"
    value = build.node(name, value, kernel_shape=windows, strides=strides, **padding)
    if op.code == "L2_POOL_2D":
        value = build.node("Sqrt", value)
    value = op.activate(value, activation)
    if is_counted:
        zero = np.zeros((), op.output(0).dtype.numpy)
        value = build.node("QuantizeLinear", value, build.constant(np.float32(1)), build.constant(zero))
    op.put_image(0, value)
