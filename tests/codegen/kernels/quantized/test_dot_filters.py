"""How filters of 8 bits lie; what is computed of them is in test_dot_conv.py."""

from __future__ import annotations

import numpy as np
import pytest

from sardonyx.codegen.kernels.quantized.dot_filters import (
    groups_together,
    merge_groups,
    offset_places,
    pack_dot_filters,
    spare_bytes,
)
from sardonyx.codegen.target import emulated_target


def test_four_elements_of_a_run_lie_side_by_side() -> None:
    """Of each channel of a panel in turn; what is behind the last element and channel is zero."""
    filters = np.arange(2 * 5, dtype=np.int8).reshape(2, 5, 1)
    packed = pack_dot_filters(filters, 1, 3, 5, signed=True).reshape(2, 3, 4)
    np.testing.assert_array_equal(packed[0], [[0, 1, 2, 3], [5, 6, 7, 8], [0, 0, 0, 0]])
    np.testing.assert_array_equal(packed[1], [[4, 0, 0, 0], [9, 0, 0, 0], [0, 0, 0, 0]])


@pytest.mark.parametrize(
    ("kind", "signed", "flipped"), [("int8", True, 0), ("int8", False, 128), ("uint8", True, 128), ("uint8", False, 0)]
)
def test_bytes_have_the_sign_that_is_asked_for(kind: str, signed: bool, flipped: int) -> None:
    """The highest bit is turned where theirs is the other one; zeros behind them stay."""
    filters = np.array([[[1]]], kind)
    assert pack_dot_filters(filters, 1, 1, 1, signed=signed, spare=2).tolist() == [1 ^ flipped, 0, 0, 0, 0, 0]


def test_only_matrix_tiles_read_behind_the_last_filter() -> None:
    """15 rows of a panel."""
    assert spare_bytes(emulated_target("avx512", ["avx512vnni"])) == 0
    assert spare_bytes(emulated_target("amx", ["amx-tile", "amx-int8", "avx512vnni"])) == 15 * 64 * 4


def test_numbers_of_channels_fill_whole_panels() -> None:
    """Group by group."""
    assert offset_places(np.arange(6), 2, 4).tolist() == [[0, 1, 2, 0], [3, 4, 5, 0]]


@pytest.mark.parametrize(
    ("groups", "filters", "channels", "together"),
    [(1, 64, 64, 1), (16, 1, 1, 16), (20, 2, 1, 4), (32, 4, 4, 4), (4, 16, 16, 1), (7, 1, 1, 7)],
)
def test_groups_are_computed_together_where_that_fills_vectors(groups: int, filters: int, channels: int, together: int) -> None:
    """Of 16 columns, and fours of channels; never more groups than divide them all."""
    assert groups_together(groups, filters, channels, 16) == together


def test_groups_that_are_one_have_zero_points_for_each_others_channels() -> None:
    """Two and two of four groups, one zero point for all filters or one for each."""
    filters = np.arange(1, 9, dtype=np.int8).reshape(4, 2, 1)
    assert merge_groups(filters, 4, 2, (0,)).tolist() == [
        [[1], [2], [0], [0]],
        [[0], [0], [3], [4]],
        [[5], [6], [0], [0]],
        [[0], [0], [7], [8]],
    ]
    assert merge_groups(filters, 4, 2, (-1, -2, -3, -4))[:2, :, 0].tolist() == [[1, 2, -1, -1], [-2, -2, 3, 4]]
