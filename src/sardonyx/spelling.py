"""Names that a misspelt one may mean, for messages."""

from __future__ import annotations

from collections.abc import Iterable

from sardonyx.forks import without_fork

__all__ = ["nearest"]


def nearest(name: str, known: Iterable[str], *, likeness: float = 0.75) -> str:
    """Return the known name that a misspelt one probably means, or "" where none is `likeness`, from 0 to 1, like it."""
    with without_fork():
        import difflib  # which only messages need

    return next(iter(difflib.get_close_matches(name, list(known), 1, likeness)), "")
