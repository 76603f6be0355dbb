"""Integers that stand for real numbers."""

from __future__ import annotations

import numpy as np
from formats.tflite.running import run
from support.flat_models import Sketch

from sardonyx.dtypes import DataType
from sardonyx.formats.tflite.builder import GraphBuilder
from sardonyx.formats.tflite.quantize import parameters, scaled
from sardonyx.formats.tflite.tensors import Quantization
from sardonyx.ir import TensorType


def test_one_scale_is_a_scalar() -> None:
    """With a zero point of the type of the elements."""
    build = GraphBuilder("g")
    scale, point = parameters(build, Quantization(np.array([0.5], np.float32), np.array([3]), 0), DataType.UINT8)
    assert (scale.shape, point.shape, point.dtype) == ((), (), DataType.UINT8)


def test_scales_of_an_axis_are_a_list() -> None:
    """And the node says which axis."""
    build = GraphBuilder("g")
    x = build.input("x", TensorType(DataType.INT8, (4, 2)))
    node = scaled(build, x, Quantization(np.ones(2, np.float32), np.zeros(2, np.int64), 1), DataType.INT8).producer
    assert node is not None
    assert (node.op_type, node.get("axis")) == ("DequantizeLinear", 1)


def test_a_bias_of_64_bits_is_folded() -> None:
    """ONNX dequantizes none of that type."""
    x = np.array([[3, 4]], np.int16)
    sketch = Sketch()
    weights = sketch.constant(np.array([[1, 2]], np.int8), (0.5, 0))
    bias = sketch.constant(np.array([1 << 33], np.int64), (2.0**-10, 0))
    made = sketch.tensor((1, 1), "INT16", (2.0**12, 0))
    sketch.operator("FULLY_CONNECTED", [sketch.input((1, 2), "INT16", (2.0**-9, 0)), weights, bias], [made])
    assert run(sketch.model([made]), x)[0].tolist() == [[2**11]]
