"""Sessions whose runs are native, and a way to see that they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import sardonyx as ort

__all__ = ["learned", "only_native", "run_in_python"]


def learned(session: ort.InferenceSession, *feeds: Mapping[str, Any]) -> ort.InferenceSession:
    """Return the session after runs by which it knows the shapes of these feeds."""
    for feed in feeds:
        for _ in range(2):
            session.run(None, feed)
    return session


@contextmanager
def only_native(session: ort.InferenceSession) -> Iterator[None]:
    """Have runs in Python fail while the block runs."""

    def refuse(*_arguments: object) -> None:
        raise AssertionError("the run went through Python")

    session.compute_values = refuse  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        del session.compute_values  # type: ignore[method-assign]


def run_in_python(session: ort.InferenceSession, names: Any, feed: Any, options: Any = None) -> list[Any]:
    """Run a session by the method in Python."""
    return session._run_in_python(names, feed, options)
