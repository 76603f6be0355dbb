"""Facts about classes of characters as ranges."""

import re
import sys
import unicodedata

import pytest

from sardonyx.providers.reference.algorithms.code_points import (
    EVERYTHING,
    PERL_CLASSES,
    POSIX_CLASSES,
    category,
    complement,
    in_brackets,
)


@pytest.mark.parametrize("name", ["Lu", "L", "Nd", "Cn"])
def test_categories_are_those_of_unicode(name):
    """A letter alone stands for all categories that begin with it."""
    ranges = category(name)
    members = {point for low, high in ranges for point in range(low, high + 1)}
    sample = range(0, sys.maxunicode, 997)
    assert {point for point in sample if unicodedata.category(chr(point)).startswith(name)} == members & set(sample)


def test_unknown_categories_are_none():
    """There is no category Xx."""
    assert category("Xx") is None


def test_the_complement_of_the_complement_is_the_class():
    """Also at both ends of Unicode."""
    for ranges in (PERL_CLASSES["d"], POSIX_CLASSES["ascii"], EVERYTHING):
        assert complement(complement(ranges)) == ranges
    assert complement(EVERYTHING) == ()


@pytest.mark.parametrize("negated", [False, True])
def test_brackets_read_back(negated):
    """Python's `re` finds the characters of the class, or the others; brackets around nothing match nothing."""
    pattern = re.compile(in_brackets(POSIX_CLASSES["punct"], negated=negated))
    assert all((pattern.fullmatch(sign) is None) == negated for sign in "]^-\\[&|~")
    assert (re.fullmatch(in_brackets((), negated=negated), "a") is None) != negated
