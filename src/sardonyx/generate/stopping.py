"""When a row ends: at a token, a sequence of tokens, a text, or its length."""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.generate.settings import Settings

__all__ = ["find_word", "held_back", "stop_reason"]


def stop_reason(settings: Settings, new_ids: Sequence[int], most: int) -> str | None:
    """Return why a row ends after its new tokens: "stop" or "length"; None where it goes on. Texts are not looked for.

    Args:
        settings: what ends a row.
        new_ids: the tokens that were made.
        most: how many there are at most.
    """
    if new_ids and new_ids[-1] in settings.eos_token_id:
        return "stop"
    for sequence in settings.stop_sequences:
        if tuple(new_ids[-len(sequence) :]) == sequence:
            return "stop"
    return "length" if len(new_ids) >= most else None


def find_word(text: str, words: Sequence[str], start: int = 0) -> int | None:
    """Return where the first of `words` begins in a text, searched from `start`; None where none is there."""
    places = [place for word in words if (place := text.find(word, start)) >= 0]
    return min(places, default=None)


def held_back(text: str, words: Sequence[str]) -> int:
    """Return how many of the last characters of a text may begin one of `words`, and are not to be given out yet."""
    longest = max(map(len, words), default=1) - 1
    for count in range(min(longest, len(text)), 0, -1):
        if any(word.startswith(text[-count:]) for word in words):
            return count
    return 0
