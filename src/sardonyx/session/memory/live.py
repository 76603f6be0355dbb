"""The sessions of the process, for what is asked of all of them: how much memory they take, and to give it back."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Protocol

from sardonyx.forks import new_lock, without_fork
from sardonyx.process import release_free_memory, resident_bytes

if TYPE_CHECKING:
    from sardonyx.session.memory.report import MemoryReport, MemoryUse, ProcessMemoryReport

__all__ = ["live_sessions", "memory_report", "memory_report_of", "remember", "trim"]


class _Session(Protocol):
    """What is remembered."""

    def memory_use(self) -> MemoryUse:
        """Return what the session keeps between runs."""

    def trim(self) -> int:
        """Give back memory that idle runs hold; returns how many bytes."""


_LOCK = new_lock()
_SESSIONS: weakref.WeakSet[_Session] = weakref.WeakSet()


def remember(session: _Session) -> None:
    """Count a session, as long as it lives, among those of the process."""
    with _LOCK:
        _SESSIONS.add(session)


def live_sessions() -> list[_Session]:
    """Return the sessions that live, in no order."""
    with _LOCK:
        return list(_SESSIONS)


def memory_report() -> ProcessMemoryReport:
    """Return how much memory all sessions of the process take; what they share counts once."""
    with without_fork():
        from sardonyx.session.memory.report import process_report  # only who asks needs it

    uses = sorted((session.memory_use() for session in live_sessions()), key=lambda use: use.label)
    return process_report(uses, resident_bytes())


def memory_report_of(session: _Session) -> MemoryReport:
    """Return how much memory one session takes, and how much of that others hold too."""
    with without_fork():
        from sardonyx.session.memory.report import session_report  # only who asks needs it

    others: list[MemoryUse] = [other.memory_use() for other in live_sessions() if other is not session]
    return session_report(session.memory_use(), others)


def trim() -> int:
    """Give back memory that idle runs of all sessions hold, programs of small models that no session uses, and what was freed.

    Returns:
        How many bytes of arenas were given back.
    """
    with without_fork():
        from sardonyx.session.decisions.sharing import forget_recent  # with all that makes sessions

    forget_recent()
    size_bytes = sum(session.trim() for session in live_sessions())
    release_free_memory()
    return size_bytes
