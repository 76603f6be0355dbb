"""Facts about columns of counted n-grams: few tokens and many give the same."""

import dataclasses

import numpy as np
import pytest

from sardonyx.providers.reference.algorithms.ngrams import pool_of
from sardonyx.providers.reference.algorithms.vectorizer import vectorizer_of

POOL = pool_of(np.array([5, 6, 5, 6, 6, 6, 5, 6, 7]), (0, 2, 6))
"""The 1-grams 5 and 6, the 2-grams 5 6 and 6 6, the 3-gram 5 6 7."""
TEXTS = pool_of(np.array(list("56566656" + "7"), object), (0, 2, 6))
WEIGHTS = np.float32([0.1, 3, 0.7, 1e-3, 11])


def written(vectorizer, rows):
    output = np.zeros((len(rows), vectorizer.width), np.float32)
    vectorizer.write(rows, output)
    return output.tolist()


@pytest.mark.parametrize("columns", [[4, 2, 0, 1, 3], [1, 0, 1, 0, 2]], ids=["one to one", "shared"])
@pytest.mark.parametrize("skips", [0, 1, 5])
@pytest.mark.parametrize("lengths", [(1, 1), (1, 3), (2, 2), (3, 4)])
@pytest.mark.parametrize("adds_up", [True, False])
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_few_tokens_give_what_many_give(columns, skips, lengths, adds_up, weights):
    """Bit for bit, of numbers and of texts."""
    numbers = np.random.default_rng(skips).integers(4, 9, (5, 9))
    words = np.array([[str(number) for number in row] for row in numbers], object)
    found = []
    for pool, rows in ((POOL, numbers), (TEXTS, words)):
        made = vectorizer_of(pool, np.array(columns), weights, adds_up=adds_up, lengths=lengths, max_skip_count=skips)
        assert made.tables is not None
        found += [written(made, rows[:0]), written(made, rows), written(dataclasses.replace(made, tables=None), rows)]
    assert found[0] == found[3] == []
    assert found[1] == found[2] == found[4] == found[5]
    assert np.any(found[1]) or lengths[0] == 3


def test_counts_are_multiplied_by_weights():
    """Once each where they do not add up; the last of equal n-grams is the one that counts."""
    rows = np.array([[5, 6, 6]])
    options = {"lengths": (1, 2), "max_skip_count": 0}
    places, weights = np.arange(5), np.float32([1, 2, 3, 4, 5])
    assert written(vectorizer_of(POOL, places, weights, adds_up=True, **options), rows) == [[1, 4, 3, 4, 0]]
    assert written(vectorizer_of(POOL, places, weights, adds_up=False, **options), rows) == [[1, 2, 3, 4, 0]]
    twice = pool_of(np.array([5, 5]), (0,))
    assert written(vectorizer_of(twice, np.arange(2), None, adds_up=True, **options), rows) == [[0, 1]]


@pytest.mark.parametrize("weight", [3e38, np.inf, np.nan])
def test_products_that_overflow_are_infinite(weight):
    """Without a word of NumPy's, whose warnings are errors here."""
    made = vectorizer_of(POOL, np.arange(5), np.full(5, weight, np.float32), adds_up=True, lengths=(1, 1), max_skip_count=0)
    with np.errstate(all="ignore"):
        assert not np.isfinite(written(made, np.array([[5, 5, 6, 6]]))[0][:2]).any()
