"""Facts about resampling."""

from __future__ import annotations

import numpy as np
from support.infer_op import UNKNOWN_DIM, A, B, error_of, floats, infer_shape, ints

from sardonyx.dtypes import DataType
from sardonyx.ops.fact import Fact, known, tensor


def scales(*values: float) -> Fact:
    return known(DataType.FLOAT, np.array(values, np.float32))


def test_scales_multiply_and_round_down() -> None:
    """Integers are multiplied in float32; symbols by whole numbers and by one over them."""
    assert infer_shape("Resize", floats(1, 3, 5, 7), None, scales(1, 1, 2, 0.6)) == (1, 3, 10, 4)
    assert infer_shape("Resize", floats(1, 3, A, B), None, scales(1, 1, 2, 0.5)) == (1, 3, 2 * A, B // 2)
    assert infer_shape("Resize", floats(1, 3, A, 4), None, scales(1, 1, 0.3, 1)) == (1, 3, UNKNOWN_DIM, 4)


def test_sizes_replace() -> None:
    """Sizes win over empty scales, for all axes or the named ones."""
    assert infer_shape("Resize", floats(1, 3, A, B), None, scales(), ints(1, 3, 8, 2 * B)) == (1, 3, 8, 2 * B)
    assert infer_shape("Resize", floats(1, 3, A, B), None, None, ints(8, 9), axes=(2, 3)) == (1, 3, 8, 9)
    assert infer_shape("Resize", floats(1, 3), None, None, tensor(DataType.INT64, (2,))) == (UNKNOWN_DIM, UNKNOWN_DIM)
    assert "sizes has 1 elements for 2 axes" in error_of("Resize", floats(2, 3), None, None, ints(1))


def test_aspect_ratio_may_be_kept() -> None:
    """All axes are scaled by one factor where the policy says so."""
    options = {"axes": (0, 1), "keep_aspect_ratio_policy": "not_larger"}
    assert infer_shape("Resize", floats(2, 4), None, None, ints(7, 8), **options) == (4, 8)
    assert infer_shape("Resize", floats(2, 4), None, None, ints(7, 8), axes=(0, 1), keep_aspect_ratio_policy="not_smaller") == (
        7,
        14,
    )


def test_older_versions() -> None:
    """Resize-10 and Upsample-9 take scales as an input, Upsample-7 and -1 as attributes."""
    assert infer_shape("Resize", floats(1, 1, 2, 2), scales(1, 1, 2, 3), version=10) == (1, 1, 4, 6)
    assert infer_shape("Upsample", floats(1, 1, 2, 2), scales(1, 1, 2, 3), version=9) == (1, 1, 4, 6)
    assert infer_shape("Upsample", floats(1, 1, 2, A), version=7, scales=(1.0, 1.0, 2.0, 3.0)) == (1, 1, 4, 3 * A)
    assert infer_shape("Upsample", floats(1, 1, 2, 2), version=1, height_scale=2.0, width_scale=1.5) == (1, 1, 4, 3)


def test_grids() -> None:
    """GridSample takes the grid's places, AffineGrid makes a grid of the sizes."""
    assert infer_shape("GridSample", floats(A, 3, 8, 8), floats(A, 4, B, 2)) == (A, 3, 4, B)
    assert infer_shape("AffineGrid", floats(A, 2, 3), ints(A, 1, 5, 6)) == (A, 5, 6, 2)
    assert infer_shape("AffineGrid", floats(A, 2, 3), tensor(DataType.INT64, (4,))) == (UNKNOWN_DIM,) * 3 + (2,)
