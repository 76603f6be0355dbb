"""Facts about images in files."""

from __future__ import annotations

from support.infer_op import UNKNOWN_DIM, A, infer_shape

from sardonyx.dtypes import DataType
from sardonyx.ops.fact import tensor


def test_only_the_channels_are_known() -> None:
    """The size of an image is in its data."""
    data = tensor(DataType.UINT8, (A,))
    assert infer_shape("ImageDecoder", data) == (UNKNOWN_DIM, UNKNOWN_DIM, 3)
    assert infer_shape("ImageDecoder", data, pixel_format="Grayscale") == (UNKNOWN_DIM, UNKNOWN_DIM, 1)
