"""Hashes of text and numbers, random bits; LiteRT's results are those of tests/formats/tflite."""

import numpy as np
import pytest
from support.run_op import run_op

from sardonyx.errors import InvalidArgument

DOMAIN = "sardonyx.tflite"


def test_groups_of_two_words_with_one_left_out() -> None:
    """In the order of their first words."""
    x = np.array(["a b c"], object)
    found = run_op("SkipGram", x, domain=DOMAIN, ngram_size=2, max_skip_size=1)
    assert found.tolist() == ["a b", "a c", "b c"]


def test_shorter_groups_come_behind_longer_ones() -> None:
    """Where they are asked for."""
    x = np.array(["a b"], object)
    found = run_op("SkipGram", x, domain=DOMAIN, ngram_size=2, max_skip_size=0, include_all_ngrams=1)
    assert found.tolist() == ["a b", "a", "b"]


def test_threefry_of_zeros() -> None:
    """The vector that Random123 publishes for 20 rounds."""
    state = np.zeros(2, np.uint64)
    _, bits = run_op("RngBitGenerator", state, domain=DOMAIN, outputs=2, algorithm="THREEFRY", shape=(2,), to=12)
    assert bits.tolist() == [0x6B200159, 0x99BA4EFE]


def test_philox_of_zeros() -> None:
    """The vector that Random123 publishes for 10 rounds."""
    state = np.zeros(3, np.uint64)
    _, bits = run_op("RngBitGenerator", state, domain=DOMAIN, outputs=2, algorithm="PHILOX", shape=(4,), to=12)
    assert bits.tolist() == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


def test_the_counter_goes_on_where_it_ended() -> None:
    """Two draws give what one gives; it overflows to 0."""
    state = np.array([5, (1 << 64) - 1], np.uint64)
    given = {"domain": DOMAIN, "outputs": 2, "algorithm": "THREEFRY", "to": 13}
    _, whole = run_op("RngBitGenerator", state, shape=(4,), **given)
    following, first = run_op("RngBitGenerator", state, shape=(2,), **given)
    _, second = run_op("RngBitGenerator", following, shape=(2,), **given)
    assert [*first.tolist(), *second.tolist()] == whole.tolist()


def test_a_state_of_another_size_is_refused() -> None:
    """With its shape."""
    with pytest.raises(InvalidArgument, match="the state is uint64"):
        run_op("RngBitGenerator", np.zeros(3, np.uint64), domain=DOMAIN, outputs=2, algorithm="THREEFRY", shape=(2,), to=12)


def test_weights_of_another_length_are_refused() -> None:
    """With both shapes."""
    seeds, x, weights = np.zeros((1, 2), np.float32), np.zeros(3, np.float32), np.zeros(2, np.float32)
    with pytest.raises(InvalidArgument, match="weights"):
        run_op("LshProjection", seeds, x, weights, domain=DOMAIN, is_sparse=0)
