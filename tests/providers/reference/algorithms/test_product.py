"""Matrix products in layouts that BLAS can and cannot read."""

import numpy as np
import pytest
from support.cancelling import ended_by

from sardonyx.cancellation import Flag
from sardonyx.errors import InvalidArgument, RunTerminated
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


@pytest.mark.parametrize(
    ("shapes", "dtype"),
    [
        (((700, 600), (600, 700)), np.float32),
        (((3, 2, 400, 300), (2, 300, 400)), np.float64),
        (((40, 30, 30), (40, 30, 300)), np.int64),
        (((2, 1, 90, 400), (3, 400, 300)), np.int32),
        (((300, 900), (900, 400)), np.complex64),
    ],
)
def test_long_products_in_parts_are_whole(shapes, dtype):
    """Rows of one matrix, and matrices of a stack, meet at the right places."""
    a, b = ((RNG.standard_normal(shape) * 9).astype(dtype) for shape in shapes)
    np.testing.assert_allclose(multiply(a, b), np.matmul(a, b), rtol=1e-3, atol=0.1)


@pytest.mark.parametrize("shapes", [((1 << 15, 1), (1, 1 << 14)), ((9, 1 << 14, 1), (9, 1, 1 << 13))])
def test_long_products_hear_that_they_are_to_end(shapes):
    """They ask between two parts."""
    a, b = (np.zeros(shape, np.float32) for shape in shapes)
    with ended_by(Flag(True)), pytest.raises(RunTerminated):
        multiply(a, b)


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
