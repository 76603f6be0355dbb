"""Facts about remembering what is derived from attributes."""

import threading

from sardonyx.providers.reference.algorithms.memo import remembered


def test_the_same_tuple_is_computed_once():
    """A second call with the very same objects returns the first result."""
    calls = []

    @remembered
    def length(values, scale):
        calls.append(values)
        return [len(values) * scale]

    values = (1, 2, 3)
    assert length(values, 2) is length(values, 2)
    assert length(values, 3) == [9]
    assert len(calls) == 2


def test_an_equal_tuple_is_another_key():
    """Equality of long tuples is never tested, only identity."""
    first, second = tuple(range(2)), tuple(range(2))

    @remembered
    def wrapped(values):
        return [values]

    assert wrapped(first) is not wrapped(second)


def test_keywords_and_unhashable_values_are_keys():
    """A list is known by its identity like a tuple."""

    @remembered
    def total(values, *, start):
        return sum(values) + start

    assert total([1, 2], start=1) == 4
    assert total([5], start=1) == 6


def test_the_oldest_results_are_forgotten():
    """Beyond 256; what is kept has the identity of its arguments for itself."""
    calls = []

    @remembered
    def first(values):
        calls.append(1)
        return values[0]

    kept = [(number,) for number in range(257)]
    assert [first(values) for values in kept] == list(range(257))
    assert first(kept[256]) == 256
    assert len(calls) == 257
    assert first(kept[0]) == 0
    assert len(calls) == 258
    assert all(first((number,)) == number for number in range(600))


def test_threads_may_share_a_function():
    """Eight threads get the right results."""

    @remembered
    def double(values):
        return values[0] * 2

    keys = [(k,) for k in range(100)]
    wrong = []
    workers = [threading.Thread(target=lambda: wrong.extend(k for k in keys if double(k) != 2 * k[0])) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong
