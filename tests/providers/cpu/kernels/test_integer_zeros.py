"""Corrections for zero points."""

import numpy as np
import pytest

from sardonyx.codegen.target import host_target
from sardonyx.dtypes import DataType
from sardonyx.ir import Tensor, TensorType, Value
from sardonyx.providers.cpu.kernels.integer_zeros import Stored, SumParts, correct_sums, stored_zeros
from sardonyx.providers.cpu.lowering import Lowering


@pytest.mark.parametrize(
    ("dtype", "signed", "found"),
    [
        (DataType.INT8, True, 5),
        (DataType.INT8, False, 133),
        (DataType.UINT8, True, -123),
        (DataType.UINT8, False, 5),
    ],
)
def test_zero_points_move_with_the_sign(dtype: DataType, signed: bool, found: int) -> None:
    """Where bytes are stored with the other sign, so are zero points."""
    assert stored_zeros(dtype, np.array([5]), signed=signed).tolist() == [found]


def _constant(array: np.ndarray) -> Value:
    return Value("", TensorType(DataType.from_numpy(array.dtype), array.shape), Tensor.from_array(array))


@pytest.mark.parametrize("stored", [Stored(True), Stored(False), Stored(True, lifted=True)])
def test_a_sum_of_bytes_is_corrected(stored: Stored) -> None:
    """Sum of bytes as stored, offset, and factor times the sum of the data: the sum of numbers with the bias."""
    rng = np.random.default_rng(0)
    x, w = rng.integers(-128, 127, 12, np.int8), rng.integers(0, 255, (3, 12), np.uint8)
    bias, x_zero, w_zero = np.array([5, -6, 7], np.int32), np.int8(-9), rng.integers(0, 255, 3, np.uint8)
    parts = SumParts(_constant(w), _constant(np.asarray(x_zero)), _constant(w_zero), _constant(bias))
    found = correct_sums(Lowering(host_target(), 1), parts, DataType.INT8, stored, 4, (1, 16))
    taken = x.astype(np.int64) + 128 * stored.lifted
    bytes_of_w = w.astype(np.int64) - 128 * stored.signed
    assert found.offsets.constant is not None
    assert found.factors.constant is not None
    assert found.border.constant is not None
    offsets, factors = found.offsets.constant[0, :3], found.factors.constant[0, :3]
    expected = (w.astype(np.int64) - w_zero.astype(np.int64)[:, None]) @ (x.astype(np.int64) - int(x_zero)) + bias
    assert (bytes_of_w @ taken + offsets + factors * taken.sum() == expected).all()
    assert found.border.constant.tolist() == [-9] * 4
