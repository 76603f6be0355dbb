"""Facts about MaxUnpool."""

import numpy as np
import pytest
from support.run_op import run_op

from sardonyx.errors import InvalidArgument

POOLED = np.array([[[[1, 2], [3, 4]]]], np.float32)
INDICES = np.array([[[[5, 7], [13, 15]]]], np.int64)


def test_elements_return_to_where_the_pooling_found_them():
    """Everything else is zero."""
    y = run_op("MaxUnpool", POOLED, INDICES, kernel_shape=(2, 2), strides=(2, 2))
    assert y.tolist() == [[[[0, 0, 0, 0], [0, 1, 0, 2], [0, 0, 0, 0], [0, 3, 0, 4]]]]


def test_it_undoes_max_pool():
    """Pooling the unpooled gives the pooled back."""
    x = np.random.default_rng(0).standard_normal((2, 3, 6, 8), dtype=np.float32)
    y, index = run_op("MaxPool", np.abs(x), kernel_shape=(2, 2), strides=(2, 2), outputs=2)
    back = run_op("MaxUnpool", y, index, kernel_shape=(2, 2), strides=(2, 2))
    assert np.array_equal(run_op("MaxPool", back, kernel_shape=(2, 2), strides=(2, 2)), y)


def test_output_shape_pads_or_cuts_at_the_far_ends():
    """Indices still count in the shape that the attributes describe."""
    larger = run_op("MaxUnpool", POOLED, INDICES, np.array([1, 1, 5, 3]), kernel_shape=(2, 2), strides=(2, 2))
    assert larger.tolist() == [[[[0, 0, 0], [0, 1, 0], [0, 0, 0], [0, 3, 0], [0, 0, 0]]]]


@pytest.mark.parametrize("index", [-1, 16])
def test_an_index_outside_is_refused(index):
    """Indices lie in the unpooled tensor."""
    with pytest.raises(InvalidArgument, match="expected 0 to 15"):
        run_op("MaxUnpool", POOLED, np.full_like(INDICES, index), kernel_shape=(2, 2), strides=(2, 2))


def test_indices_of_another_shape_are_refused():
    """There is one index per element."""
    with pytest.raises(InvalidArgument, match="I has shape"):
        run_op("MaxUnpool", POOLED, INDICES[..., :1], kernel_shape=(2, 2))
