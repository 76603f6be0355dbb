"""Facts about BlackmanWindow, HammingWindow, HannWindow and MelWeightMatrix."""

import ml_dtypes
import numpy as np
import pytest
from support.run_op import run_op

from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument

SIZE = np.array(8)


@pytest.mark.parametrize(
    ("op_type", "first", "middle"), [("HannWindow", 0, 1), ("HammingWindow", 4 / 46, 1), ("BlackmanWindow", 0, 1)]
)
def test_windows_rise_from_the_ends_to_the_middle(op_type, first, middle):
    """A periodic window of 8 peaks at element 4 and would fall back at element 8."""
    y = run_op(op_type, SIZE)
    assert (y.shape, y.dtype) == ((8,), np.float32)
    np.testing.assert_allclose([y[0], y[4], y[3] - y[5]], [first, middle, 0], atol=1e-7)


def test_symmetric_windows_end_as_they_begin():
    """Without `periodic` the last element equals the first."""
    y = run_op("HannWindow", np.array(9, np.int32), periodic=0)
    np.testing.assert_allclose(y, np.hanning(9), atol=1e-7)


@pytest.mark.parametrize("dtype", [np.float64, np.float16, ml_dtypes.bfloat16, np.int8, np.uint64])
def test_windows_have_the_type_asked_for(dtype):
    """output_datatype numbers it."""
    assert run_op("HannWindow", SIZE, output_datatype=int(DataType.from_numpy(dtype))).dtype == dtype


@pytest.mark.parametrize("length", [0, 1, 2])
@pytest.mark.parametrize("periodic", [0, 1])
def test_short_windows_have_their_length(length, periodic):
    """No length divides by zero."""
    y = run_op("BlackmanWindow", np.array(length), periodic=periodic)
    assert y.shape == (length,)
    assert np.isfinite(y).all()


def test_mel_filters_are_triangles():
    """Each column rises to 1 and falls; columns follow one another."""
    y = run_op("MelWeightMatrix", *(np.array(v) for v in (8, 128, 16000)), np.float32(0), np.float32(8000))
    assert y.shape == (65, 8)
    assert y.max(axis=0).tolist() == [1] * 8
    assert (np.diff(y.argmax(axis=0)) > 0).all()


def test_hostile_numbers_are_refused_before_memory_is_taken():
    """Negative and absurd sizes raise InvalidArgument."""
    with pytest.raises(InvalidArgument, match="size = -1"):
        run_op("HannWindow", np.array(-1))
    with pytest.raises(InvalidArgument, match="bytes"):
        run_op("HannWindow", np.array(1 << 60))
    with pytest.raises(InvalidArgument, match="output_datatype"):
        run_op("HannWindow", SIZE, output_datatype=8)
    with pytest.raises(InvalidArgument, match="sample_rate"):
        run_op("MelWeightMatrix", *(np.array(v) for v in (8, 128, 0)), np.float32(0), np.float32(8000))
