"""One small change of the source, and the tests that must notice it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

__all__ = ["ROOT", "SOURCE", "Mutation", "mutate"]

ROOT = Path(__file__).parents[2]
"""The folder of the project."""
SOURCE = ROOT / "src" / "sardonyx"
"""The package."""


@dataclasses.dataclass(frozen=True, slots=True)
class Mutation:
    """A change of one place in one file."""

    name: str
    """Name in reports, unique in the table."""
    file: str
    """File, relative to the package."""
    old: str
    """Text to replace, which occurs once in the file."""
    new: str
    """Replacement."""
    more_tests: tuple[str, ...] = ()
    """Files or folders of tests besides the file's own, relative to the folder of tests."""

    @property
    def tests(self) -> tuple[str, ...]:
        """Files and folders of the nearest tests, relative to the project: the file's own first."""
        path = Path(self.file)
        own = str(path.parent / f"test_{path.name}")
        return tuple(str(Path("tests") / name) for name in (own, *self.more_tests))


def mutate(mutation: Mutation, text: str) -> str:
    """Return `text`, the content of the mutation's file, with the change made.

    Raises:
        ValueError: the text to replace does not occur exactly once: the table has to follow the source.
    """
    count = text.count(mutation.old)
    if count != 1:
        raise ValueError(f"{mutation.name}: {mutation.old!r} occurs {count} times in {mutation.file}, expected 1")
    return text.replace(mutation.old, mutation.new)
