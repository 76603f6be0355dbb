"""Convolutions: CONV_2D, DEPTHWISE_CONV_2D, TRANSPOSE_CONV, CONV_3D, CONV_3D_TRANSPOSE.

Filters are (M, kernel…, C) in the file, those of DEPTHWISE_CONV_2D (1, kernel…, M), and become (M, C / group, kernel…).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.formats.tflite.constants import transposed
from sardonyx.formats.tflite.operator import ACTIVATION, Operator, Options, imports
from sardonyx.formats.tflite.quantize import dynamic_differences, dynamic_image, scaled, scaled_bias
from sardonyx.formats.tflite.tensors import Quantization
from sardonyx.ir import Value

__all__ = ["bias", "conv_2d", "depthwise_conv_2d", "integer_weights", "pads_of", "weights", "window_padding"]

_PADDING = "SAME VALID"


def pads_of(sizes: Sequence[int], windows: Sequence[int], strides: Sequence[int]) -> tuple[int, ...]:
    """Return what SAME pads: at the beginnings of the axes, then at their ends, where the odd one goes."""
    totals = [
        max((-(-size // stride) - 1) * stride + window - size, 0)
        for size, window, stride in zip(sizes, windows, strides, strict=True)
    ]
    return tuple(total // 2 for total in totals) + tuple(total - total // 2 for total in totals)


def window_padding(op: Operator, padding: str, windows: Sequence[int], strides: Sequence[int]) -> dict[str, Any]:
    """Return the attributes that say how an image is padded: Any, as the attributes of nodes are."""
    if padding == "VALID":
        return {}
    info = op.info(0)
    if -1 in info.signature[1:-1]:
        return {"auto_pad": "SAME_UPPER"}
    pads = pads_of(info.shape[1:-1], windows, strides)
    return {"pads": pads} if any(pads) else {}


@imports("CONV_2D")
def conv_2d(op: Operator) -> None:
    """Convolve images (N, H, W, C) by filters (M, kernel H, kernel W, C / groups)."""
    options = op.options("Conv2DOptions")
    op.rank(0)
    filters, images = op.info(1), op.info(0)
    if filters.rank != 4 or images.rank != 4 or filters.shape[3] == 0 or images.shape[3] % filters.shape[3]:
        op.refuse(f"images {list(images.shape)} do not go with filters {list(filters.shape)}")
    groups = images.shape[3] // filters.shape[3]
    _convolve(op, options, (0, 3, 1, 2), filters.shape, filters.shape[1:3], groups)


@imports("DEPTHWISE_CONV_2D")
def depthwise_conv_2d(op: Operator) -> None:
    """Convolve each channel of images (N, H, W, C) by filters (1, kernel H, kernel W, M) of its own, M a multiple of C."""
    options = op.options("DepthwiseConv2DOptions")
    op.rank(0)
    filters, images = op.info(1), op.info(0)
    if filters.rank != 4 or images.rank != 4 or filters.shape[0] != 1 or filters.shape[3] % max(images.shape[3], 1):
        op.refuse(f"images {list(images.shape)} do not go with filters {list(filters.shape)}")
    _convolve(op, options, (3, 0, 1, 2), filters.shape, filters.shape[1:3], images.shape[3])


def _convolve(
    op: Operator, options: Options, order: Sequence[int], shape: tuple[int, ...], windows: Sequence[int], groups: int
) -> None:
    strides = options.integer("stride_h"), options.integer("stride_w")
    dilations = options.integer("dilation_h_factor"), options.integer("dilation_w_factor")
    if min(*strides, *dilations) < 1 or min(windows) < 1:
        op.refuse(f"its strides {list(strides)}, dilations {list(dilations)} and windows {list(windows)} must be 1 or more")
    spans = [(window - 1) * dilation + 1 for window, dilation in zip(windows, dilations, strict=True)]
    attributes: dict[str, Any] = {
        "strides": strides,
        "dilations": dilations,
        "group": groups,
        "kernel_shape": tuple(windows),
        **window_padding(op, options.choice("padding", _PADDING), spans, strides),
    }
    shift = bias(op, 2, 1)
    if op.is_hybrid(1):
        value = _hybrid(op, order, groups, attributes)
        value = value if shift is None else op.build.node("Add", value, op.build.reshape(shift, (1, -1, 1, 1)))
    else:
        value = op.build.node("Conv", op.image(0), weights(op, 1, order), shift, **attributes)
    op.put_image(0, op.activate(value, options.choice("fused_activation_function", ACTIVATION)))


def _hybrid(op: Operator, order: Sequence[int], groups: int, attributes: dict[str, Any]) -> Value:
    """Return the convolution of real numbers, which are rounded to 8 bits, by integers."""
    build, found = op.build, op.info(1).quantization
    assert found is not None
    asymmetric = groups > 1 or not found.is_per_tensor
    if asymmetric and op.info(0).signature[0] != 1:
        image, scale = dynamic_differences(build, op.image(0))
        return build.node("Mul", build.node("Conv", image, weights(op, 1, order), **attributes), scale)
    image, point, scale = dynamic_image(build, op.image(0), asymmetric=asymmetric)
    sums = build.node("ConvInteger", image, integer_weights(op, 1, order), point, **attributes)
    scaled_sums = build.node("Mul", build.cast(sums, DataType.FLOAT), scale)
    return build.node("Mul", scaled_sums, build.constant(found.scales.reshape(1, -1, 1, 1)))


@imports("CONV_3D")
def conv_3d(op: Operator) -> None:
    """Convolve volumes (N, D, H, W, C) by filters (kernel D, kernel H, kernel W, C, M)."""
    options = op.options("Conv3DOptions")
    filters, images = op.info(1), op.info(0)
    if filters.rank != 5 or images.rank != 5:
        op.refuse(f"volumes {list(images.shape)} do not go with filters {list(filters.shape)}")
    strides = tuple(options.integer(f"stride_{axis}") for axis in "dhw")
    dilations = tuple(options.integer(f"dilation_{axis}_factor") for axis in "dhw")
    windows = filters.shape[:3]
    if min(*strides, *dilations, *windows) < 1:
        op.refuse(f"its strides {list(strides)}, dilations {list(dilations)} and windows {list(windows)} must be 1 or more")
    spans = [(window - 1) * dilation + 1 for window, dilation in zip(windows, dilations, strict=True)]
    padding = window_padding(op, options.choice("padding", _PADDING), spans, strides)
    value = op.build.node(
        "Conv",
        op.image(0),
        weights(op, 1, (4, 3, 0, 1, 2)),
        bias(op, 2, 1),
        strides=strides,
        dilations=dilations,
        kernel_shape=windows,
        **padding,
    )
    op.put_image(0, op.activate(value, options.choice("fused_activation_function", ACTIVATION)), 5)


@imports("TRANSPOSE_CONV")
def transpose_conv(op: Operator) -> None:
    """Compute the gradient of a convolution by filters (M, kernel H, kernel W, C): images (N, H, W, C) to the shape of input 0."""
    options = op.options("TransposeConvOptions")
    if op.info(1).rank != 4 or op.info(2).rank != 4:
        op.refuse(f"images {list(op.info(2).shape)} do not go with filters {list(op.info(1).shape)}")
    strides = options.integer("stride_h"), options.integer("stride_w")
    activation = options.choice("fused_activation_function", ACTIVATION)
    _convolve_back(op, (3, 0, 1, 2), op.info(1).shape[1:3], strides, options.choice("padding", _PADDING), activation)


@imports("CONV_3D_TRANSPOSE")
def conv_3d_transpose(op: Operator) -> None:
    """Compute the gradient of a convolution by filters (kernel D, kernel H, kernel W, M, C) to the shape of input 0."""
    options = op.options("Conv3DOptions")
    if op.info(1).rank != 5 or op.info(2).rank != 5:
        op.refuse(f"volumes {list(op.info(2).shape)} do not go with filters {list(op.info(1).shape)}")
    if any(options.integer(f"dilation_{axis}_factor") != 1 for axis in "dhw"):
        op.unsupported("dilated filters are not supported; no kernel of TensorFlow Lite has them")
    strides = tuple(options.integer(f"stride_{axis}") for axis in "dhw")
    activation = options.choice("fused_activation_function", ACTIVATION)
    _convolve_back(op, (4, 3, 0, 1, 2), op.info(1).shape[:3], strides, options.choice("padding", _PADDING), activation)


def _convolve_back(
    op: Operator, order: Sequence[int], windows: Sequence[int], strides: Sequence[int], padding: str, activation: str
) -> None:
    images, rank = op.info(2), op.rank(2)
    sizes = op.maybe_constant(0)
    target = op.output(0).signature[1:-1] if sizes is None else sizes.reshape(-1).tolist()[1:-1]
    if len(target) != rank - 2 or min(*strides, *windows) < 1 or min(*target, *images.signature[1:-1]) < 0:
        op.unsupported(f"images {list(images.signature)} to sizes {list(target)}, which must be known when the model is read")
    befores, behinds, more = [], [], []
    for size, result, window, stride in zip(images.shape[1:-1], target, windows, strides, strict=True):
        total = (size - 1) * stride + window
        before = max(total - result, 0) // 2 if padding == "SAME" else 0
        behind = total - before - result
        befores.append(before)
        behinds.append(max(behind, 0))
        more.append(max(-behind, 0))
    scale: Value | None = None
    image, shift = op.image(2), bias(op, 3, 1, 2)
    if rank == 4 and op.is_hybrid(1, 2):
        image, scale = dynamic_differences(op.build, image)
    value = op.build.node(
        "ConvTranspose",
        image,
        weights(op, 1, order),
        shift if scale is None else None,
        strides=tuple(strides),
        pads=(*befores, *behinds),
        output_padding=tuple(more) if any(more) else None,
        kernel_shape=tuple(windows),
    )
    if scale is not None:
        value = op.build.node("Mul", value, scale)
        value = value if shift is None else op.build.node("Add", value, op.build.reshape(shift, (1, -1, 1, 1)))
    op.put_image(0, op.activate(value, activation), rank)


def _reordered(op: Operator, index: int, order: Sequence[int]) -> Value:
    value = op.raw(index)
    if value.constant is None:
        return op.build.transpose(value, order)
    return op.build.initializer(transposed(value.constant, order))


def integer_weights(op: Operator, index: int, order: Sequence[int]) -> Value:
    """Return an input of weights as int8, with its axes in another order."""
    value = _reordered(op, index, order)
    return value if op.info(index).dtype is DataType.INT8 else op.build.cast(value, DataType.INT8)


def weights(op: Operator, index: int, order: Sequence[int]) -> Value:
    """Return an input of weights as real numbers, with its axes in another order."""
    info, value = op.info(index), _reordered(op, index, order)
    if info.quantization is None or not info.is_quantized:
        return op.build.cast(value, DataType.FLOAT) if info.dtype is DataType.FLOAT16 else value
    moved = Quantization(info.quantization.scales, info.quantization.zero_points, list(order).index(info.quantization.axis))
    return scaled(op.build, value, moved, info.dtype)


def bias(op: Operator, index: int, filters: int, images: int = 0) -> Value | None:
    """Return an input that is a bias as real numbers; None where it is left out."""
    if not op.has(index):
        return None
    data, weighing = op.info(images).quantization, op.info(filters).quantization
    if data is None or weighing is None:
        return op.real(index)
    return scaled_bias(op.build, op.raw(index), op.info(index), (data.scales * weighing.scales).astype(np.float32))
