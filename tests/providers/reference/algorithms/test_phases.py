"""Columns gathered from inputs laid out by phase."""

from __future__ import annotations

import numpy as np
import pytest
from support.placing import place

from sardonyx.providers.reference.algorithms.phases import ColumnGatherer, sliding_axes


def test_stride_two_reads_every_second_window() -> None:
    """Column o of tap k is element 2 o + k - 1 of an input with one element of padding."""
    axes = sliding_axes((5,), place((5,), (3,), strides=(2,), pads=(1, 1)))
    gatherer = ColumnGatherer(axes, axes[0].output)
    gatherer.load(np.arange(1.0, 6.0).reshape(1, 1, 1, 5))
    assert gatherer.columns(slice(0, 3))[0, 0].tolist() == [[0, 2, 4], [1, 3, 5], [2, 4, 0]]


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("dilation", [1, 2, 3])
def test_columns_are_the_windows(stride: int, dilation: int) -> None:
    """On two axes the columns hold the elements that the window's formula names, for any stride and dilation."""
    x = np.random.default_rng(0).standard_normal((2, 1, 3, 11, 12))
    window = place((11, 12), (3, 2), strides=(stride, 1), dilations=(dilation, 2), pads=(2, 1, 0, 3))
    axes = sliding_axes((11, 12), window)
    gatherer = ColumnGatherer(axes, axes[1].output)
    gatherer.load(x)
    columns = gatherer.columns(slice(1, 3)).reshape(2, 1, 3, 3, 2, 2, axes[1].output)
    padded = np.pad(x, [(0, 0), (0, 0), (0, 0), (2, 9), (1, 9)])
    for row, column in np.ndindex(3, 2):
        for index, o in enumerate((1, 2)):
            start = column * 2
            expected = padded[:, :, :, o * stride + row * dilation, start : start + axes[1].output]
            assert np.array_equal(columns[:, :, :, row, column, index], expected)


def test_surplus_columns_continue_into_the_next_row() -> None:
    """A width beyond the output keeps rows contiguous: its first elements are those of the exact width."""
    x = np.random.default_rng(1).standard_normal((1, 2, 1, 4, 5))
    axes = sliding_axes((4, 5), place((4, 5), (3, 3), pads=(1, 1, 1, 1)))
    exact, wide = ColumnGatherer(axes, axes[1].output), ColumnGatherer(axes, axes[1].length)
    exact.load(x)
    wide.load(x)
    assert np.array_equal(wide.columns(slice(0, 4))[..., :5], exact.columns(slice(0, 4)))


def test_a_later_smaller_block_reuses_the_scratch() -> None:
    """The zero borders hold when a block of fewer images follows a larger one."""
    axes = sliding_axes((3,), place((3,), (3,), pads=(1, 1)))
    gatherer = ColumnGatherer(axes, 3)
    gatherer.load(np.ones((4, 1, 2, 3)))
    gatherer.load(np.full((1, 1, 2, 3), 7.0))
    assert gatherer.columns(slice(0, 3))[0, 0, :3].tolist() == [[0, 7, 7], [7, 7, 7], [7, 7, 0]]


def test_nothing_is_copied_without_padding_and_stride() -> None:
    """Windows of an unpadded input with stride 1 are gathered from the input itself; a single tap is a view of it."""
    x = np.arange(12.0).reshape(1, 1, 1, 3, 4)
    axes = sliding_axes((3, 4), place((3, 4), (1, 1)))
    gatherer = ColumnGatherer(axes, 4)
    gatherer.load(x)
    assert np.shares_memory(gatherer.columns(slice(0, 3)), x)


def test_axes_of_length_one_are_left_out() -> None:
    """An axis on which nothing slides adds nothing to the layout, but one axis stays."""
    assert len(sliding_axes((1, 9), place((1, 9), (1, 3)))) == 1
    assert len(sliding_axes((1, 1), place((1, 1), (1, 1)))) == 1
