"""Facts about looking keys up for whole arrays."""

import numpy as np
import pytest

from sardonyx.providers.reference.algorithms.label_tables import looked_up, table_of


def test_strings_are_found_by_equality():
    """An unknown one is at -1; of equal keys the last one counts."""
    table = table_of(np.array(["a", "b", "a"], object))
    assert looked_up(table, np.array([["b", "a"], ["c", ""]], object)).tolist() == [[1, 2], [-1, -1]]


def test_numbers_are_found_by_value():
    """Integers of any width are looked up among int64 keys."""
    table = table_of(np.array([30, 10, 20, 10]))
    assert looked_up(table, np.array([10, 20, 25, -7, 99], np.int32)).tolist() == [3, 2, -1, -1, -1]


def test_nan_is_a_key():
    """NaN finds NaN, and nothing if no key is NaN."""
    table = table_of(np.float32([np.nan, 1]))
    assert looked_up(table, np.float32([1, np.nan, 2])).tolist() == [1, 0, -1]
    assert looked_up(table_of(np.float32([1])), np.float32([np.nan])).tolist() == [-1]


def test_an_empty_table_knows_nothing():
    """Every element is at -1; no elements give none."""
    assert looked_up(table_of(np.zeros(0, np.int64)), np.array([1])).tolist() == [-1]
    assert looked_up(table_of(np.array(["a"], object)), np.zeros((0, 2), object)).shape == (0, 2)


def test_what_is_no_string_is_refused_among_strings():
    """Whoever looks up what a user gave has to make texts of it first."""
    table = table_of(np.array(["a"], object))
    for element in (1, 1.5, None, b"a", ["a"]):
        elements = np.array(["a", ""], object)
        elements[1] = element
        with pytest.raises(TypeError):
            looked_up(table, elements)
