"""Facts about the conversion between float16 and float32."""

import numpy as np
import pytest

from sardonyx.providers.reference.algorithms.half import from_half, to_half

EVERY = np.arange(1 << 16, dtype=np.uint16).view(np.float16)


def assert_same(found, expected):
    """One type, equal numbers and signs; NaN where NaN is."""
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    assert (np.signbit(found) == np.signbit(expected)).all()


@pytest.mark.parametrize("shape", [(-1,), (256, 256), (2, 2, -1)])
def test_every_float16_widens_as_numpy_does(shape):
    """Subnormal numbers, zeros, infinities and NaN included, and in any order in memory."""
    x = EVERY.reshape(shape)
    assert_same(from_half(x), x.astype(np.float32))
    assert_same(from_half(x.T), x.T.astype(np.float32))


def test_every_float16_comes_back():
    """Widened and rounded, each is itself."""
    assert_same(to_half(from_half(EVERY)), EVERY)


@pytest.mark.parametrize("step", [-1, 0, 1])
def test_halfway_numbers_round_to_even(step):
    """The middle of each pair of neighbours, and the float32 numbers beside it, as NumPy rounds them."""
    with np.errstate(all="ignore"):
        middle = ((EVERY[:-1].astype(np.float64) + EVERY[1:]) / 2).astype(np.float32)
        x = (middle.view(np.int32) + np.int32(step)).view(np.float32)
        assert_same(to_half(x), x.astype(np.float16))


@pytest.mark.parametrize("count", [0, 1, 1000, 1025, 70_000, 200_000])
def test_any_number_of_any_float32(count):
    """Random bits, and numbers near one, in none to several blocks."""
    generator = np.random.default_rng(count)
    bits = generator.integers(0, 1 << 32, count, np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        assert_same(to_half(bits), bits.astype(np.float16))
        near = generator.standard_normal(count, np.float32)
        assert_same(to_half(near), near.astype(np.float16))
