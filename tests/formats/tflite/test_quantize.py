"""Integers that stand for real numbers."""

from __future__ import annotations

import numpy as np
import pytest
from formats.tflite.running import run
from support.flat_models import Sketch

from sardonyx.dtypes import DataType
from sardonyx.formats.models import load
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


def test_a_product_by_integers_is_one_of_integers() -> None:
    """A row that is a multiple of its scale is exact."""
    sketch = Sketch()
    weights = sketch.constant(np.array([[1, 2, -3], [4, 0, 5]], np.int8), (0.5, 0))
    made = sketch.tensor((2, 2))
    sketch.operator("FULLY_CONNECTED", [sketch.input((2, 3)), weights], [made])
    data = sketch.model([made])
    x = np.array([[127, -2, 3], [0, 0, 0]], np.float32)
    assert run(data, x)[0].tolist() == [[57, 261.5], [0, 0]]
    assert "MatMulInteger" in {node.op_type for node in load(data).graph}


@pytest.mark.parametrize(("batch", "operator"), [(1, "ConvInteger"), (2, "Conv")])
def test_images_share_no_range(batch: int, operator: str) -> None:
    """One image is convolved on integers; several have zero points of their own, of which integer convolutions take one."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 3, (batch, 4, 4, 2)).astype(np.float32) * np.arange(1, batch + 1, dtype=np.float32)[:, None, None, None]
    weights = rng.integers(-127, 128, (3, 1, 1, 2)).astype(np.int8)
    sketch = Sketch()
    filters = sketch.constant(weights, ([0.1, 0.2, 0.3], [0, 0, 0], 0))
    made = sketch.tensor((batch, 4, 4, 3))
    sketch.operator(
        "CONV_2D",
        [sketch.input(x.shape), filters],
        [made],
        ("Conv2DOptions", {"padding": "VALID", "stride_h": 1, "stride_w": 1}),
    )
    data = sketch.model([made])
    assert operator in {node.op_type for node in load(data).graph}
    expected = x @ (weights.reshape(3, 2) * np.float32([[0.1], [0.2], [0.3]])).T
    step = (x.max(axis=(1, 2, 3)) - np.minimum(x.min(axis=(1, 2, 3)), 0)) / 255
    bound = step[:, None, None, None] * 0.51 * np.abs(weights.reshape(3, 2) * np.float32([[0.1], [0.2], [0.3]])).sum(axis=1)
    assert (np.abs(run(data, x)[0] - expected) <= bound).all()
