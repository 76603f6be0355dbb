"""Pools of TensorFlow Lite."""

from __future__ import annotations

import numpy as np
import pytest
from formats.tflite.running import run
from support.flat_models import one

X = np.arange(9, dtype=np.float32).reshape(1, 3, 3, 1)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("AVERAGE_POOL_2D", [[2, 3.5], [6.5, 8]]),
        ("MAX_POOL_2D", [[4, 5], [7, 8]]),
        ("L2_POOL_2D", [[np.sqrt(26 / 4), np.sqrt(29 / 2)], [np.sqrt(85 / 2), 8]]),
    ],
)
def test_padding_does_not_count(code: str, expected: list[list[float]]) -> None:
    """Windows at the border are smaller."""
    options = ("Pool2DOptions", {"padding": "SAME", "stride_h": 2, "stride_w": 2, "filter_height": 2, "filter_width": 2})
    found = run(one(code, [((1, 3, 3, 1), "FLOAT32")], ((1, 2, 2, 1), "FLOAT32"), options), X)[0]
    np.testing.assert_allclose(found[0, :, :, 0], expected, rtol=1e-6)
