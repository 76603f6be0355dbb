"""Facts about pooling."""

from __future__ import annotations

from support.infer_op import UNKNOWN_DIM, A, B, error_of, floats, infer_op, infer_shape, ints

from sardonyx.dtypes import DataType
from sardonyx.ops.fact import tensor


def test_pools_keep_batch_and_channels() -> None:
    """Only the spatial axes shrink; MaxPool also gives int64 indices."""
    assert infer_shape("AveragePool", floats(A, 3, 8, 8), kernel_shape=(2, 2), strides=(2, 2)) == (A, 3, 4, 4)
    output, places = infer_op("MaxPool", floats(A, 3, B), outputs=2, kernel_shape=(3,), pads=(1, 1))
    assert output.shape == places.shape == (A, 3, B)
    assert places.dtype is DataType.INT64


def test_window_must_have_the_rank() -> None:
    """kernel_shape has an element for each spatial axis."""
    assert "kernel_shape=[2] has 1 axes" in error_of("MaxPool", floats(1, 3, 8, 8), kernel_shape=(2,))


def test_global_pools_leave_ones() -> None:
    """Every spatial axis becomes 1."""
    assert infer_shape("GlobalAveragePool", floats(A, 3, B, 7)) == (A, 3, 1, 1)


def test_regions_give_the_batch() -> None:
    """RoiAlign and MaxRoiPool give one image for each region."""
    assert infer_shape("RoiAlign", floats(1, 3, 8, 8), floats(A, 4), ints(0), output_height=2, output_width=5) == (A, 3, 2, 5)
    assert infer_shape("MaxRoiPool", floats(1, 3, 8, 8), floats(A, 5), pooled_shape=(2, 2)) == (A, 3, 2, 2)


def test_unpooling_inverts_the_sizes() -> None:
    """MaxUnpool has the size before pooling, or the one that is asked for."""
    indices = tensor(DataType.INT64, (1, 1, 2, 2))
    assert infer_shape("MaxUnpool", floats(1, 1, 2, 2), indices, kernel_shape=(2, 2), strides=(2, 2)) == (1, 1, 4, 4)
    assert infer_shape("MaxUnpool", floats(1, 1, 2, 2), indices, ints(1, 1, 5, B), kernel_shape=(2, 2)) == (1, 1, 5, B)
    unknown = tensor(DataType.INT64, (4,))
    assert infer_shape("MaxUnpool", floats(1, 1, 2, 2), indices, unknown, kernel_shape=(2, 2)) == (UNKNOWN_DIM,) * 4
