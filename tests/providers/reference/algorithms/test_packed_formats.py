"""Facts about the block formats of ggml, each written out by hand for one block and compared with onnxruntime for many."""

from __future__ import annotations

import numpy as np
import pytest
from support.peer import run_peer

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.packed_formats import FORMATS, row_bytes, unpack_rows

SCALES = {13: (0, 2), 14: (208,)}
"""Where a format's block has its scales of float16, if not at its begin."""


def drawn_rows(number: int, count: int, K: int) -> Array:
    """Rows of any bits, with scales that are finite."""
    rng, found = np.random.default_rng(number), FORMATS[number]
    if found.block == 1:
        dtype = {4: "<f4", 2: "<f2"}[found.block_bytes]
        return np.ascontiguousarray(rng.standard_normal((count, K)).astype(dtype)).view(np.uint8)
    blocks = rng.integers(0, 256, (count * K // found.block, found.block_bytes)).astype(np.uint8)
    for start in SCALES.get(number, (0,)):
        blocks[:, start : start + 2] = rng.standard_normal(len(blocks)).astype("<f2").view(np.uint8).reshape(-1, 2)
    return blocks.reshape(count, -1)


def block(*parts: bytes) -> Array:
    return np.frombuffer(b"".join(parts), np.uint8)[None]


def half(value: float) -> bytes:
    return np.array(value, "<f2").tobytes()


def test_numbers_of_four_bits_stand_around_eight() -> None:
    """Low halves of the 16 bytes are the first 16 weights, high halves the others."""
    weights = unpack_rows(2, block(half(0.5), bytes([0xF0] + [0x88] * 15)))
    np.testing.assert_array_equal(weights, [[-4.0, *[0] * 15, 3.5, *[0] * 15]])


def test_the_fifth_bit_lies_apart() -> None:
    """Bit i of the four bytes after the scale belongs to weight i."""
    weights = unpack_rows(6, block(half(1), bytes([1, 0, 0, 0x80]), bytes(16)))
    np.testing.assert_array_equal(weights, [[0, *[-16] * 30, 0]])


def test_two_bits_stand_around_one() -> None:
    """A byte has four weights, the lowest bits first."""
    weights = unpack_rows(42, block(half(2), bytes([0b11_10_01_00]), bytes([0b01010101] * 15)))
    np.testing.assert_array_equal(weights, [[-2, 0, 2, 4, *[0] * 60]])


def test_a_sign_that_is_not_stored_makes_their_number_even() -> None:
    """Of 8 weights of a point 7 signs are stored, and the last follows."""
    rest = np.array([0b0000001], "<u4").tobytes()
    weights = unpack_rows(16, block(half(1), bytes(4), rest, bytes(56)))
    np.testing.assert_array_equal(weights[0, :8], [-1, 1, 1, 1, 1, 1, 1, -1])
    assert (weights[0, 8:] == 1).all()


@pytest.mark.parametrize("number", FORMATS, ids=lambda number: FORMATS[number].name)
def test_formats_agree_with_onnxruntime(number: int) -> None:
    """Rows of drawn bits give the same weights, bit for bit, where onnxruntime has the operator (from 1.32 on)."""
    onnxruntime = pytest.importorskip("onnxruntime")
    if tuple(map(int, onnxruntime.__version__.split(".")[:2])) < (1, 32):
        pytest.skip("onnxruntime has no GatherPacked before 1.32")
    rows = drawn_rows(number, 4, 512)
    (want,) = run_peer("GatherPacked", rows, np.arange(4), packed_type=number, K=512, output_dtype=1)
    np.testing.assert_array_equal(unpack_rows(number, rows), want)


@pytest.mark.parametrize("number", FORMATS, ids=lambda number: FORMATS[number].name)
def test_no_rows_give_no_weights(number: int) -> None:
    """As many columns as the bytes of a row hold."""
    assert unpack_rows(number, np.zeros((0, row_bytes(number, 512)), np.uint8)).shape == (0, 512)


def test_rows_are_whole_blocks() -> None:
    """The bytes of a row follow from its weights, which fill blocks."""
    assert row_bytes(14, 512) == 420
    with pytest.raises(InvalidArgument, match="K is 128; a row of Q6_K has a multiple of 256 weights"):
        row_bytes(14, 128)
