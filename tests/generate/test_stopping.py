"""Tests of how rows end."""

from __future__ import annotations

from sardonyx.generate.settings import Settings
from sardonyx.generate.stopping import find_word, held_back, stop_reason


def test_a_token_ends_a_row() -> None:
    """Any of those that do."""
    settings = Settings(eos_token_id=(2, 3))
    assert [stop_reason(settings, ids, 9) for ids in ([1], [1, 3])] == [None, "stop"]


def test_a_sequence_ends_a_row() -> None:
    """Where it is complete."""
    settings = Settings(stop_sequences=((4, 5),))
    assert [stop_reason(settings, ids, 9) for ids in ([4], [5, 4], [1, 4, 5])] == [None, None, "stop"]


def test_the_most_tokens_end_a_row() -> None:
    """With another reason."""
    assert stop_reason(Settings(), [1, 1], 2) == "length"


def test_the_first_of_several_words_is_found() -> None:
    """By its place in the text, not in the list."""
    assert find_word("one two", ["two", "one"]) == 0
    assert find_word("one", ["x"]) is None


def test_what_may_begin_a_word_is_held_back() -> None:
    """As many characters as could be part of it."""
    assert [held_back(text, ["END"]) for text in ("abc", "abcE", "abEN", "END", "")] == [0, 1, 2, 0, 0]
