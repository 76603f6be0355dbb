"""Matrix products in layouts that BLAS can and cannot read."""

import numpy as np
import pytest

from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.product import check_product, multiply

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize(
    "shapes",
    [
        ((3,), (3,)),
        ((2, 3), (3,)),
        ((3,), (4, 3, 2)),
        ((5, 2, 3), (3, 4)),
        ((5, 1, 2, 3), (6, 3, 4)),
        ((2, 0), (0, 3)),
        ((2, 1, 0), (0, 0)),
    ],
)
def test_multiply_is_numpy_matmul(dtype, shapes):
    """Vectors, stacks, broadcasting and empty sums are as in numpy.matmul."""
    a, b = ((RNG.standard_normal(shape) * 9).astype(dtype) for shape in shapes)
    y = multiply(a, b)
    assert (y.dtype, y.shape) == (dtype, np.matmul(a, b).shape)
    np.testing.assert_allclose(y, np.matmul(a, b), rtol=1e-5)


def test_views_multiply_as_their_copies_do():
    """Transposed, strided, reversed and broadcast operands give what dense copies give."""
    x = RNG.standard_normal((6, 8, 10))
    for view in (x.transpose(0, 2, 1), x.transpose(2, 1, 0), x[:, ::2, ::2], x[:, ::-1], np.broadcast_to(x[:1], x.shape)):
        other = RNG.standard_normal((view.shape[0], view.shape[2], 3))
        np.testing.assert_allclose(multiply(view, other), np.matmul(view.copy(), other), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [(((), (3,)), "no scalars"), (((2, 3), (2, 3)), "inner lengths 3 and 2"), (((2, 4, 3), (3, 3, 2)), "do not broadcast")],
)
def test_operands_that_do_not_multiply_are_refused(shapes, message):
    """The message names the lengths that disagree."""
    with pytest.raises(InvalidArgument, match=message):
        check_product(*(np.zeros(shape) for shape in shapes))
