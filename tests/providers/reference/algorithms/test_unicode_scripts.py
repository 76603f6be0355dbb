"""Facts about the scripts of Unicode."""

from __future__ import annotations

import unicodedata

import pytest

from sardonyx.providers.reference.algorithms.unicode_scripts import script


@pytest.mark.parametrize(("name", "word"), [("Greek", "GREEK"), ("Cyrillic", "CYRILLIC"), ("Thai", "THAI")])
def test_letters_belong_to_the_script_of_their_name(name: str, word: str) -> None:
    """Nearly all letters of a script say so in their names."""
    found = script(name)
    assert found is not None
    points = [chr(point) for low, high in found for point in range(low, high + 1)]
    letters = [point for point in points if unicodedata.category(point).startswith("L")]
    assert sum(unicodedata.name(letter, "").startswith(word) for letter in letters) > 0.9 * len(letters)


def test_runs_are_in_order_and_apart() -> None:
    """Each run begins behind the one before."""
    found = script("Latin")
    assert found is not None
    ends = [point for run in found for point in run]
    assert ends == sorted(ends)
    assert found[0] == (0x41, 0x5A)


def test_other_names_are_no_script() -> None:
    """A name that Unicode lacks gives None."""
    assert script("Klingon") is None
