"""Facts about broadcasting, new and old."""

import numpy as np
import pytest

from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.broadcast import align_old, combine


def test_combine_broadcasts_both_ways():
    """Shapes (2, 1) and (3) meet in (2, 3)."""
    assert combine(np.add, np.ones((2, 1)), np.ones(3)).shape == (2, 3)


def test_combine_of_scalars_is_an_array():
    """Two 0-d arrays give a 0-d array."""
    assert isinstance(combine(np.add, np.array(1.0), np.array(2.0)), np.ndarray)


def test_combine_names_shapes_that_do_not_meet():
    """Shapes that do not broadcast are named."""
    with pytest.raises(InvalidArgument, match=r"shapes \(2,\) and \(3,\) do not broadcast"):
        combine(np.add, np.ones(2), np.ones(3))


def test_combine_refuses_two_types():
    """Nothing is promoted."""
    with pytest.raises(InvalidArgument, match="types float, double"):
        combine(np.add, np.ones(2, np.float32), np.ones(2))


@pytest.mark.parametrize(
    ("shape", "axis", "aligned"),
    [
        ((), None, ()),
        ((1, 1), None, ()),
        ((5,), None, (5,)),
        ((4, 5), None, (4, 5)),
        ((3, 4), 1, (3, 4, 1)),
        ((2,), 0, (2, 1, 1, 1)),
        ((4,), -2, (4, 1)),
        ((3, 1, 5), None, (3, 1, 5)),
        ((1, 3), 0, (1, 3, 1, 1)),
    ],
)
def test_old_broadcast_places_a_run_of_sizes(shape, axis, aligned):
    """The examples of ONNX Add-1 for an A of shape (2, 3, 4, 5)."""
    assert align_old(np.ones((2, 3, 4, 5)), np.ones(shape), axis, 1).shape == aligned


@pytest.mark.parametrize(
    ("shape", "axis", "broadcast"), [((5,), None, 0), ((3,), None, 1), ((3,), 3, 1), ((1, 2, 3, 4, 5), None, 1)]
)
def test_old_broadcast_refuses_other_shapes(shape, axis, broadcast):
    """Unequal shapes without broadcast=1, and sizes that are no run of A's, are refused."""
    with pytest.raises(InvalidArgument, match="shape"):
        align_old(np.ones((2, 3, 4, 5)), np.ones(shape), axis, broadcast)


@pytest.mark.parametrize("function", [np.add, np.subtract, np.multiply, np.divide, np.maximum, np.less])
def test_many_half_numbers_round_once(function):
    """70,000 float16 numbers and a row: what the ufunc of float16 gives, bit for bit."""
    generator = np.random.default_rng(0)
    a, b = (generator.standard_normal(shape).astype(np.float16) for shape in ((700, 100), (100,)))
    np.testing.assert_array_equal(combine(function, a, b), function(a, b))
