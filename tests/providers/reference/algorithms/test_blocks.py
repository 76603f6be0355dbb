"""Facts about element-wise work in blocks."""

import ml_dtypes
import numpy as np
import pytest

from sardonyx.providers.reference.algorithms.blocks import BLOCK_ELEMENTS, map_blocks, row_blocks


def _double(x, out):
    np.multiply(x, 2, out=out)


@pytest.mark.parametrize("size", [0, 1, BLOCK_ELEMENTS - 1, BLOCK_ELEMENTS, BLOCK_ELEMENTS + 1, 3 * BLOCK_ELEMENTS + 7])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.float64])
def test_every_element_is_reached(size, dtype):
    """Sizes around the block length give each element once, in the type of the input."""
    x = (np.arange(size) % 64).astype(dtype)
    y = map_blocks(_double, x)
    assert y.dtype == dtype
    np.testing.assert_array_equal(y.astype(np.float64), (np.arange(size) % 64) * 2.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_views_are_read_in_order(dtype):
    """A transposed view of more than a block gives a dense result of its own shape."""
    x = np.arange(40_000).reshape(200, 200).astype(dtype).T if dtype == np.float32 else np.eye(200, dtype=dtype)[:, ::2]
    y = map_blocks(_double, x)
    np.testing.assert_array_equal(y, x * 2)
    assert y.flags.c_contiguous


def test_a_scalar_stays_a_scalar():
    """A 0-d input gives a 0-d array."""
    y = map_blocks(_double, np.array(3, np.float32))
    assert (y.shape, float(y)) == ((), 6.0)


def test_narrow_floats_round_once():
    """In bfloat16, (x + 2^-10) - 1 keeps the small part, which an intermediate rounding would lose."""

    def body(x, out):
        np.add(x, 2.0**-10, out=out)
        np.subtract(out, 1.0, out=out)

    assert float(map_blocks(body, np.ones(1, ml_dtypes.bfloat16))[0]) == 2.0**-10


@pytest.mark.parametrize("shape", [(1, 5), (7, 20_000), (3, 100_000), (70_000, 1), (5, 30, 1000)])
def test_row_blocks_cover_every_row_once(shape):
    """Rows come in order, whatever their length."""
    x = np.zeros(shape, np.int8)
    rows = [row for block in row_blocks(x) for row in range(len(x))[block]]
    assert rows == list(range(shape[0]))


def test_row_blocks_of_nothing():
    """Without elements there is no block."""
    assert row_blocks(np.zeros((0, 3))) == row_blocks(np.zeros((3, 0))) == []
