"""Narrow caches: what is stored, and what comes back."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.quantized_cache import choose_format

FLOAT = np.dtype(np.float32)
X = np.array([[[[0.0, 1.0, -1.0, 100.0, -100.0, 0.26]]]], np.float32)


def past(dtype: Any) -> Array:
    return np.zeros((1, 1, 0, 6), dtype)


def test_int8_rounds_and_saturates() -> None:
    """To the nearest multiple of the scale."""
    cache = choose_format("keys", "PER_TENSOR", 8, np.array([0.5], np.float32), past(np.int8), FLOAT)
    stored = cache.encode(X)
    np.testing.assert_array_equal(stored[0, 0, 0], np.array([0, 2, -2, 127, -128, 1], np.int8))
    np.testing.assert_array_equal(cache.decode(stored)[0, 0, 0], [0, 1, -1, 63.5, -64, 0.5])


def test_four_bits_are_packed_in_pairs() -> None:
    """Codes are 8 above the numbers; the even element is in the low half."""
    cache = choose_format("keys", "PER_TENSOR", 4, np.array([0.5], np.float32), past(np.uint8), FLOAT)
    stored = cache.encode(X)
    np.testing.assert_array_equal(stored[0, 0, 0], np.array([0xA8, 0xF6, 0x90], np.uint8))
    np.testing.assert_array_equal(cache.decode(stored)[0, 0, 0], [0, 1, -1, 3.5, -4, 0.5])


def test_float8_saturates() -> None:
    """Nothing becomes NaN."""
    cache = choose_format("keys", "PER_TENSOR", 8, np.array([0.125], np.float32), past(ml_dtypes.float8_e4m3fn), FLOAT)
    np.testing.assert_array_equal(cache.decode(cache.encode(X))[0, 0, 0, :5], [0, 1, -1, 56, -56])


def test_scales_may_go_by_channel() -> None:
    """One for each head and element."""
    scale = np.array([1, 2, 4, 8, 16, 32], np.float32).reshape(1, 1, 1, 6)
    cache = choose_format("keys", "PER_CHANNEL", 8, scale, past(np.int8), FLOAT)
    np.testing.assert_array_equal(cache.encode(32 * np.ones((1, 1, 2, 6), np.float32))[0, 0], [[32, 16, 8, 4, 2, 1]] * 2)


@pytest.mark.parametrize("shape", [(6,), (1, 6), (3, 2), (1, 3, 2), (3, 1, 2), (1, 3, 1, 2)])
def test_scales_by_channel_have_any_shape(shape: tuple[int, ...]) -> None:
    """Their order is heads, then elements, as in onnxruntime."""
    stored = np.zeros((1, 3, 4, 2), np.int8)
    scale = 2.0 ** np.arange(6, dtype=np.float32).reshape(shape)
    cache = choose_format("keys", "PER_CHANNEL", 8, scale, stored, FLOAT)
    codes = cache.encode(32 * np.ones((1, 3, 1, 2), np.float32))
    np.testing.assert_array_equal(codes.reshape(-1), [32, 16, 8, 4, 2, 1])


def test_a_float_cache_keeps_the_type_of_the_query() -> None:
    """Without quantization scale and past do not matter."""
    cache = choose_format("keys", "NONE", 0, None, None, np.dtype(np.float16))
    stored = cache.encode(X)
    assert stored.dtype == np.float16
    assert cache.decode(stored).dtype == np.float32


@pytest.mark.parametrize(
    ("kind", "bits", "scale", "dtype", "message"),
    [
        ("PER_HEAD", 8, np.ones(1), np.int8, "'PER_HEAD'"),
        ("PER_TENSOR", 8, None, np.int8, "no scale"),
        ("PER_TENSOR", 8, np.ones(1), np.uint8, "uint8, 8 bits"),
        ("PER_TENSOR", 4, np.ones(1), np.int8, "int8, 4 bits"),
        ("PER_CHANNEL", 8, np.ones((2, 5)), np.int8, r"shape \(2, 5\)"),
    ],
)
def test_bad_formats_are_named(kind: str, bits: int, scale: Array | None, dtype: Any, message: str) -> None:
    """The message holds what was found."""
    with pytest.raises(InvalidArgument, match=message):
        choose_format("keys", kind, bits, scale, past(dtype), FLOAT)
