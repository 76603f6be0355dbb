"""The rotation itself: pairs, the rest, and where the angles come from."""

from __future__ import annotations

import numpy as np
import pytest

from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.rotary import look_up, rotate

ANGLES = np.array([0.3, -1.2])
X = np.arange(1.0, 6.0)


@pytest.mark.parametrize(("interleaved", "pairs"), [(False, [(0, 2), (1, 3)]), (True, [(0, 1), (2, 3)])])
def test_rotate_turns_each_pair_by_its_angle(interleaved: bool, pairs: list[tuple[int, int]]) -> None:
    """Pairs are halves apart or neighbours; what lies behind them passes unchanged."""
    result = rotate(X, np.cos(ANGLES), np.sin(ANGLES), interleaved=interleaved)
    for angle, (a, b) in zip(ANGLES, pairs, strict=True):
        turned = (X[a] + 1j * X[b]) * np.exp(1j * angle)
        np.testing.assert_allclose([result[a], result[b]], [turned.real, turned.imag])
    assert result[4] == X[4]


def test_look_up_takes_rows_by_position() -> None:
    """The cache is converted after the look-up, not before."""
    cache = np.arange(6, dtype=np.float16).reshape(3, 2)
    rows = look_up(cache, np.array([[2, 0]]), np.dtype(np.float32))
    np.testing.assert_array_equal(rows, [[[4, 5], [0, 1]]])
    assert rows.dtype == np.float32


@pytest.mark.parametrize("position", [-1, 3])
def test_look_up_refuses_positions_outside_the_cache(position: int) -> None:
    """Neither wraps around nor reads beyond."""
    with pytest.raises(InvalidArgument, match="hold positions 0 to 2"):
        look_up(np.zeros((3, 2)), np.array([position]), np.dtype(np.float32))
