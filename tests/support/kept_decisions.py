"""Sessions whose decisions are kept in a folder of their own, and what happened to these."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sardonyx import InferenceSession
from sardonyx.disk_cache import shared_cache
from sardonyx.trace import Event, observe

__all__ = ["folder", "made"]


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of decisions and kernels that is empty at first; decisions are kept there, and nothing is shared but by it."""
    path = tmp_path_factory.mktemp("kept")
    path.chmod(0o700)
    monkeypatch.setenv("SARDONYX_CACHE_DIR", str(path))
    monkeypatch.setenv("SARDONYX_KEEP_DECISIONS", "1")
    monkeypatch.setattr("sardonyx.session.build.find_shared", lambda identity: None)
    shared_cache.cache_clear()
    yield path
    shared_cache.cache_clear()


def made(model: Any, *arguments: Any, **named: Any) -> tuple[InferenceSession, bool]:
    """A session, and whether it was made by decisions that were kept."""
    events: list[Event] = []
    with observe(events.append):
        session = InferenceSession(model, *arguments, **named)
    return session, "session.load" not in {event.name for event in events}


def results(session: InferenceSession, **feed: Any) -> list[np.ndarray[Any, Any]]:
    """What a session computes."""
    return [np.asarray(item) for item in session.run(None, feed)]
