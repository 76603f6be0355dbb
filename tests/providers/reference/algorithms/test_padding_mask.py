"""Each form of a padding mask says which keys a query sees."""

from __future__ import annotations

import numpy as np
import pytest

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.padding_mask import read_padding_mask

B, S, T = 2, 2, 3
FORMS = {
    "lengths": (np.array([1, 3]), [[1, 0, 0], [1, 1, 1]]),
    "ends and starts": (np.array([2, 3, 0, 1]), [[1, 1, 0], [0, 1, 1]]),
    "lengths and offsets": (np.array([1, 3, 0, 2, 4, 0, 1, 4]), [[1, 0, 0], [1, 1, 1]]),
    "by key": (np.array([[0, 1, 1], [1, 0, 1]]), [[0, 1, 1], [1, 0, 1]]),
}


@pytest.mark.parametrize(("mask", "visible"), FORMS.values(), ids=FORMS.keys())
def test_forms_without_queries(mask: Array, visible: list[list[int]]) -> None:
    """Hidden keys get the filter value, visible ones 0, for every head and query."""
    bias = read_padding_mask(mask.astype(np.int32), (B, S, T), -5.0, np.dtype(np.float32))
    assert bias is not None
    assert bias.dtype == np.float32
    np.testing.assert_array_equal(bias, np.where(visible, 0, -5)[:, None, None])


def test_a_mask_may_differ_by_query() -> None:
    """Rank 3 has a row for each query."""
    mask = np.random.default_rng(0).integers(0, 2, (B, S, T))
    bias = read_padding_mask(mask, (B, S, T), -5.0, np.dtype(np.float32))
    np.testing.assert_array_equal(bias, np.where(mask, 0, -5)[:, None])


def test_a_square_mask_is_cut_at_the_end_of_the_keys() -> None:
    """Rank 4 holds a larger square, of which the last S rows before T and the first T columns count."""
    square = np.tril(np.ones((B, 1, 5, 5), np.int32))
    bias = read_padding_mask(square, (B, S, T), -5.0, np.dtype(np.float32))
    np.testing.assert_array_equal(bias, np.where([[[[1, 1, 0], [1, 1, 1]]]] * B, 0, -5))


def test_no_mask_is_no_bias() -> None:
    """None stays None."""
    assert read_padding_mask(None, (B, S, T), -5.0, np.dtype(np.float32)) is None


@pytest.mark.parametrize("shape", [(B, 1), (1, 1)])
def test_a_placeholder_hides_nothing(shape: tuple[int, int]) -> None:
    """(B, 1) and (1, 1) are placeholders for a mask, whatever they hold."""
    assert read_padding_mask(np.zeros(shape, np.int32), (B, S, T), -5.0, np.dtype(np.float32)) is None


def test_another_shape_is_an_error() -> None:
    """The message lists the forms for these sizes."""
    with pytest.raises(InvalidArgument, match=r"shape \(5, 5\); expected \(2,\), \(4,\), \(8,\), \(2, 3\), \(2, 2, 3\)"):
        read_padding_mask(np.zeros((5, 5)), (B, S, T), -5.0, np.dtype(np.float32))
