"""What the rules on quantized models share."""

import numpy as np
import pytest
from support.optimizing import model_of

from sardonyx.dtypes import DataType
from sardonyx.optimize.contract import Context
from sardonyx.optimize.helpers.quantized import EIGHT_BITS, Scale, limits_of, scale_of
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES


def node_of(lines, outputs="y"):
    model = model_of(f"graph(x: float[2,3], q: int8[2,3], u: float[]) -> ({outputs}) {{ {lines} }}")
    INFER_SHAPES.run(model, Context())
    return next(node for node in model.graph if node.op_type.endswith("Linear"))


def test_scale_of_one_number():
    """The type is that of the zero point, and the scale is single."""
    scale = scale_of(node_of("s: float[] = 0.5 z: int8[] = -3 y = QuantizeLinear(x, s, z)"))
    assert scale == Scale(scale.scale, scale.zero, DataType.INT8, 1)
    assert scale.is_single
    assert (float(scale.scale), int(scale.zero)) == (0.5, -3)


def test_scale_without_zero_point():
    """It is 0 of uint8, or of the type of what is dequantized."""
    assert scale_of(node_of("s: float[1] = [0.5] y = QuantizeLinear(x, s)")).dtype is DataType.UINT8
    assert scale_of(node_of("s: float[1] = [0.5] y = DequantizeLinear(q, s)")).dtype is DataType.INT8


def test_scales_by_axis():
    """One for each index of the axis."""
    scale = scale_of(node_of("s: float[2] = [0.5, 0.25] y = DequantizeLinear(q, s) {axis = 0}"))
    assert not scale.is_single
    assert scale.axis == 0
    np.testing.assert_array_equal(scale.scale, [0.5, 0.25])


@pytest.mark.parametrize(
    "lines",
    [
        "y = QuantizeLinear(x, u)",
        "s: float[2,1] = [[0.5], [0.25]] y = DequantizeLinear(q, s) {block_size = 3}",
        "s: float[] = 0.5 z: float8e4m3fn[] = 0 y = QuantizeLinear(x, s, z)",
    ],
)
def test_unknown_scales(lines):
    """Those that are no constants, go by block, or are of floats."""
    assert scale_of(node_of(lines)) is None


def test_equal_scales():
    """Numbers and types are compared; scales by axis are not equal to anything."""
    one = Scale(np.array(0.5), np.array(1), DataType.INT8, 1)
    assert one.equals(Scale(np.array(0.5), np.array(1), DataType.INT8, 0))
    assert not one.equals(Scale(np.array(0.5), np.array(1), DataType.UINT8, 1))
    assert not one.equals(Scale(np.array([0.5]), np.array([1]), DataType.INT8, 1))


def test_limits():
    """The ends of each quantized type."""
    assert limits_of(DataType.INT4) == (-8, 7)
    assert limits_of(DataType.UINT8) == (0, 255)
    assert {DataType.INT8, DataType.UINT8} == EIGHT_BITS
