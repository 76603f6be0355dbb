"""Spans and events: the only way in which the library says what it does.

    with span("optimize", model="resnet50"): ...
    event("cache.corrupt", file="3fa2.o", fallback="compile")

An observer is any callable that takes an `Event`. With `SARDONYX_TRACE=FILE` each event is also appended to that file as a line of
JSON; where the file cannot be written, a warning says so. Without an observer a span costs one truth test.
"""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from sardonyx import config
from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.forks import new_lock, without_fork

__all__ = ["Event", "Observer", "add_observer", "event", "observe", "remove_observer", "span", "watch"]


@dataclasses.dataclass(frozen=True, slots=True)
class Event:
    """Something that happened."""

    name: str
    """What, such as "session.build"."""
    start_ns: int
    """When, by `time.perf_counter_ns`."""
    duration_ns: int
    """How long it took; 0 for an event that is no span."""
    details: dict[str, Any]
    """Anything else; values are such that JSON, or `str`, can print them."""


Observer = Callable[[Event], None]
"""A callback for events; called in the thread where they happen."""

_LOCK = new_lock()
_OBSERVERS: tuple[Observer, ...] = ()
_WATCHED: dict[str, Observer] = {}
"""Name of an event -> who is told of it besides the observers."""


@contextlib.contextmanager
def observe(observer: Observer) -> Iterator[None]:
    """Tell `observer` of every event of the process while the block runs."""
    add_observer(observer)
    try:
        yield
    finally:
        remove_observer(observer)


def add_observer(observer: Observer) -> None:
    """Tell `observer` of every event of the process from here on, as often as it was added."""
    global _OBSERVERS
    with _LOCK:
        _OBSERVERS = (*_OBSERVERS, observer)


def remove_observer(observer: Observer) -> None:
    """Take back one `add_observer`; raises ValueError where there was none."""
    global _OBSERVERS
    with _LOCK:
        kept = list(_OBSERVERS)
        kept.remove(observer)
        _OBSERVERS = tuple(kept)


def watch(names: Iterable[str], observer: Observer) -> None:
    """Tell `observer` of the events of these names, which cost nothing until they happen; one observer for a name."""
    _WATCHED.update(dict.fromkeys(names, observer))


def event(name: str, **details: object) -> None:
    """Tell the observers that `name` happened now; an event may say anything in its `details`."""
    watcher = _WATCHED.get(name)
    if watcher is not None or _active():
        what = Event(name, time.perf_counter_ns(), 0, details)
        if watcher is not None:
            watcher(what)
        _tell(what)


def span(name: str, **details: object) -> contextlib.AbstractContextManager[dict[str, Any]]:
    """Tell the observers how long the block took; the block may add to the dict that it is given."""
    return _told(name, details) if _active() else contextlib.nullcontext(details)


@contextlib.contextmanager
def _told(name: str, details: dict[str, Any]) -> Iterator[dict[str, Any]]:
    start = time.perf_counter_ns()
    try:
        yield details
    finally:
        _tell(Event(name, start, time.perf_counter_ns() - start, details))


def _active() -> bool:
    return bool(_OBSERVERS) or config.trace_file() is not None


def _tell(what: Event) -> None:
    for observer in _OBSERVERS:
        observer(what)
    path = config.trace_file()
    if path is not None:
        with without_fork():
            import json  # for traces in files only

        line = json.dumps(dataclasses.asdict(what), default=str)
        try:
            with _LOCK, path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
        except OSError as error:
            reason = error.strerror or str(error)
            warnings.warn(f"SARDONYX_TRACE names {str(path)!r}, which cannot be written: {reason}", UserWarning, stacklevel=2)
