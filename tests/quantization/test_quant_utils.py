"""Facts about the functions over arrays and their codes."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import numpy_helper

from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument
from sardonyx.quantization import quant_utils
from sardonyx.quantization.quant_utils import QuantType, limits_of


@pytest.mark.parametrize(
    ("dtype", "kwargs", "limits"),
    [
        (DataType.INT8, {}, (-128, 127)),
        (DataType.INT8, {"symmetric": True}, (-127, 127)),
        (DataType.INT8, {"reduced": True}, (-64, 64)),
        (DataType.UINT8, {"reduced": True}, (0, 127)),
        (DataType.INT4, {"symmetric": True}, (-8, 7)),
        (DataType.UINT16, {"symmetric": True}, (0, 65535)),
    ],
)
def test_limits_of_types(dtype: DataType, kwargs: dict[str, bool], limits: tuple[int, int]) -> None:
    """As onnxruntime's tool lays grids out."""
    assert limits_of(dtype, **kwargs) == limits


def test_types_have_names_and_numbers() -> None:
    """Of onnx.TensorProto."""
    assert QuantType.from_string("QUInt8") is QuantType.QUInt8
    assert QuantType.QInt4.tensor_type == 22
    with pytest.raises(InvalidArgument, match="QInt8"):
        QuantType.from_string("int8")


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("kind", [DataType.INT8, DataType.UINT8, DataType.INT16, DataType.UINT16, DataType.INT4, DataType.UINT4])
def test_arrays_are_quantized_as_by_onnxruntimes_helpers(kind: DataType, symmetric: bool) -> None:
    """Zero point, scale and codes are equal."""
    peer = pytest.importorskip("onnxruntime.quantization.quant_utils")
    array = np.random.default_rng(3).normal(size=(7, 5)).astype(np.float32)
    found, wanted = quant_utils.quantize_data(array, int(kind), symmetric), peer.quantize_data(array, int(kind), symmetric)
    for own, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(np.asarray(own, np.float64), np.asarray(other, np.float64))
    ends = quant_utils.get_qmin_qmax_for_qType(int(kind), symmetric=symmetric)
    assert [int(item) for item in ends] == [int(item) for item in peer.get_qmin_qmax_for_qType(int(kind), symmetric=symmetric)]
    assert quant_utils.get_qrange_for_qType(int(kind), symmetric=symmetric) == int(ends[1]) - int(ends[0])


def test_a_range_may_be_given_and_codes_cut_off() -> None:
    """Elements outside of it get its ends."""
    zero, scale, codes = quant_utils.quantize_data(
        np.float32([-9, 0, 3, 9]), int(DataType.INT8), True, rmin_override=-1.0, rmax_override=1.0
    )
    assert (int(zero), codes.tolist()) == (0, [-128, 0, 127, 127])
    assert quant_utils.quantize_nparray(int(DataType.INT8), np.float32([-9, 9]), scale, zero, low=-5, high=6).tolist() == [-5, 6]


def test_floats_are_no_codes() -> None:
    """The number is shown."""
    with pytest.raises(InvalidArgument, match="a type of integers that codes may have, got 1"):
        quant_utils.quantize_data(np.ones(2, np.float32), 1, True)


def test_halves_of_bytes_and_axes() -> None:
    """The first number is in the low half; an axis from behind is counted from the front."""
    assert quant_utils.pack_bytes_to_4bit(bytes([1, 2, 0xF3])) == bytearray([0x21, 0x03])
    assert [quant_utils.normalize_axis(axis, 3) for axis in (-1, 2, 3, -4)] == [(True, 2), (True, 2), (False, 3), (False, -1)]


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("kind", [DataType.INT4, DataType.UINT4, DataType.INT8, DataType.UINT8])
@pytest.mark.parametrize(("axis", "block"), [(0, 3), (1, 4), (1, 16)])
def test_blocks_are_quantized_as_by_onnxruntimes_helpers(kind: DataType, symmetric: bool, axis: int, block: int) -> None:
    """Zero points and codes, and scales to an ulp, also of a last block that is short; blocks of zeros have any zero point."""
    peer = pytest.importorskip("onnxruntime.quantization.quant_utils")
    weight = np.random.default_rng(1).standard_normal((7, 10)).astype(np.float32)
    weight[3:6] = 0
    given = weight, int(kind), axis, block, symmetric
    (zero, scale), (their_zero, their_scale) = (tool.compute_scale_zp_blocked(*given) for tool in (quant_utils, peer))
    assert (zero.dtype, scale.dtype) == (their_zero.dtype, their_scale.dtype)
    np.testing.assert_allclose(scale, their_scale, rtol=1.2e-7)
    np.testing.assert_array_equal(zero[scale != 1], their_zero[scale != 1])
    codes = quant_utils.quantize_onnx_initializer(
        numpy_helper.from_array(weight, "w"), int(kind), zero, scale, axis, block_size=block
    )
    theirs = peer.quantize_onnx_initializer(numpy_helper.from_array(weight, "w"), int(kind), zero, scale, axis, block_size=block)
    assert codes.name == theirs.name == "w_quantized"
    np.testing.assert_array_equal(numpy_helper.to_array(codes), numpy_helper.to_array(theirs))


def test_blocks_lie_along_an_axis_counted_from_behind() -> None:
    """As along the same one counted from the front."""
    weight = np.random.default_rng(1).standard_normal((3, 2, 5)).astype(np.float32)
    found, wanted = (quant_utils.compute_scale_zp_blocked(weight, int(DataType.INT8), axis, 2, True) for axis in (-1, 2))
    assert [part.shape for part in found] == [(3, 2, 3), (3, 2, 3)]
    np.testing.assert_array_equal(found[1], wanted[1])


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_initializers_have_codes(axis: int | None) -> None:
    """With one scale, or one for each index along an axis; under a name that may be given."""
    weight = np.random.default_rng(2).standard_normal((3, 3, 2)).astype(np.float32)
    shape = () if axis is None else (3,)
    scale, zero = np.full(shape, 0.02, np.float32), np.zeros(shape, np.int8)
    made = quant_utils.quantize_onnx_initializer(
        numpy_helper.from_array(weight, "w"), int(DataType.INT8), zero, scale, axis, "codes"
    )
    assert (made.name, list(made.dims)) == ("codes", [3, 3, 2])
    np.testing.assert_allclose(numpy_helper.to_array(made) * 0.02, np.clip(weight, -2.56, 2.54), atol=0.0101)


def test_axes_and_scales_go_with_the_weight() -> None:
    """The message names it."""
    weight = numpy_helper.from_array(np.zeros((2, 3), np.float32), "w")
    with pytest.raises(InvalidArgument, match="'w' of shape .* no axis 2"):
        quant_utils.quantize_onnx_initializer(weight, int(DataType.INT8), np.zeros(3, np.int8), np.ones(3, np.float32), 2)
    with pytest.raises(InvalidArgument, match="no blocks of 0"):
        quant_utils.compute_scale_zp_blocked(np.zeros((2, 3), np.float32), int(DataType.INT8), 0, 0, True)


@pytest.mark.parametrize(
    "case", [(0.0, 6.0, None), (-1.0, 3.0, None), (-6.0, -1.0, None), (0.0, 0.0, None), (0.5, 1e-4, 1e-3), (-1e-5, 0.0, 1e-3)]
)
def test_snapped_grids_are_onnxruntimes(case: tuple[float, float, float | None]) -> None:
    """The zero point is 0, or 128 where there are negative numbers."""
    peer = pytest.importorskip("onnxruntime.quantization.quant_utils")
    low, high, least = case
    found = quant_utils.snap_zero_point_to_uint8(np.float32(low), np.float32(high), min_real_range=least)
    wanted = peer.snap_zero_point_to_uint8(np.float32(low), np.float32(high), min_real_range=least)
    assert (int(found[0]), float(found[1])) == (int(wanted[0]), pytest.approx(float(wanted[1])))


def test_a_snapped_grid_has_finite_bounds() -> None:
    """NaN is none."""
    with pytest.raises(ValueError, match="nan"):
        quant_utils.snap_zero_point_to_uint8(float("nan"), 1.0)


def test_arrays_are_quantized_to_float8_as_by_onnxruntimes_helpers() -> None:
    """Scale and codes are equal, and there is no zero point."""
    peer, kind = pytest.importorskip("onnxruntime.quantization.quant_utils"), int(DataType.FLOAT8E4M3FN)
    array = np.random.default_rng(3).normal(size=(7, 5)).astype(np.float32) * 30
    zero, scale, codes = quant_utils.quantize_data(array, kind, False)
    wanted = peer.quantize_data(array, kind, False)
    assert float(zero) == 0
    np.testing.assert_allclose(scale, wanted[1], rtol=1e-6)
    np.testing.assert_array_equal(codes.astype(np.float32), np.asarray(wanted[2]).astype(np.float32))


def test_float8_has_neither_a_zero_point_nor_a_reduced_range() -> None:
    """Both are refused."""
    kind = int(DataType.FLOAT8E4M3FN)
    with pytest.raises(InvalidArgument, match="no zero point"):
        quant_utils.quantize_nparray(kind, np.ones(3, np.float32), 1.0, 1)
    with pytest.raises(InvalidArgument, match="reduce_range"):
        quant_utils.quantize_data(np.ones(3, np.float32), kind, False, True)
