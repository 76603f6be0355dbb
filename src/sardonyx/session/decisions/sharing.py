"""Sessions of one model in a process share what is built of it: packed weights, programs and the plan.

Programs keep nothing of a run, so any number of sessions may use them. They are shared where the key of the decisions is the same,
and so are the elements of all weights: by the digest of a small model, and for a large file by its name, size, inode and times
(`known_files.py`). What is built lives as long as a session of it. Of small models the programs that were used last, a few of them,
live on, for programs that make a session for each call: without arenas, and without what is kept for shapes.
"""

from __future__ import annotations

import operator
import os
import weakref
from collections.abc import Callable
from typing import Any

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.digests import sha256
from sardonyx.forks import new_lock
from sardonyx.formats.opened import OpenedModel
from sardonyx.held_memory import union_bytes
from sardonyx.session.built import Built
from sardonyx.session.decisions.data_files import are_as_before
from sardonyx.session.decisions.known_files import remember_digests, settled_file

__all__ = ["Identity", "find_shared", "forget_recent", "identity_of", "identity_with", "share"]

_DIGESTED_BYTES = 4 << 20
"""The largest model that is compared by its bytes."""
_MOST_RECENT = 16
"""How many builds live on."""
_RECENT_BYTES = 8 << 20
"""How much memory they take together."""

Identity = tuple[object, ...]
"""What tells one model with its weights, built in one way, from others."""

_LOCK = new_lock()
_BUILT: weakref.WeakValueDictionary[Identity, Built] = weakref.WeakValueDictionary()
_FIELDS = tuple(field.name for field in dataclasses.fields(Built) if field.name != "executor")
_values_of: Callable[[Built], tuple[Any, ...]] = operator.attrgetter(*_FIELDS)
_RECENT: dict[Identity, tuple[Callable[[], Built], int]] = {}
"""What makes anew what lives on, with its bytes, in the order of use."""


def identity_of(opened: OpenedModel, key: str, message: str) -> Identity | None:
    """Return the identity of a model; None for one that is not shared.

    Args:
        opened: the model's file, just opened.
        key: the key of the decisions.
        message: the digest of its message, which is remembered with the file.
    """
    is_small = len(opened.content) <= _DIGESTED_BYTES
    content = sha256(opened.content.read(0, len(opened.content))).digest() if is_small else b""
    file = None if opened.path is None else settled_file(opened.path)
    if file is not None and file[1] == opened.stamp:
        remember_digests(file, message, content)
        return identity_with(key, *file, content)
    path = None if opened.path is None else os.path.abspath(opened.path)
    return identity_with(key, path, opened.stamp, 0, content) if is_small else None


def identity_with(key: str, path: str | None, stamp: object, changed_ns: int, content: bytes) -> Identity:
    """Return the identity of a model with this key; of a small one it has the content, of another when its file's entry changed."""
    return key, path, stamp, content or changed_ns


def find_shared(identity: Identity) -> Built | None:
    """Return what a session that is still there was built of, or one that was there before; None where there is none.

    What other files the model has must be as they were.
    """
    built = _find(identity)
    return built if built is None or are_as_before(built.data or ()) else None


def _find(identity: Identity) -> Built | None:
    with _LOCK:
        built = _BUILT.get(identity)
        recent = _RECENT.pop(identity, None)
        if recent is not None:
            _RECENT[identity] = recent
            if built is None:
                built = _BUILT[identity] = recent[0]()
    return built


def share(identity: Identity, built: Built, kept_bytes: int | None = None) -> None:
    """Let later sessions use `built`, as long as somebody refers to it, or, of a small model, for a while.

    What has files of which not all is known is not shared. `kept_bytes` is what its programs keep, where that is known.
    """
    if built.data is None:
        return
    size_bytes = _small_bytes(built, kept_bytes)
    recent = None if size_bytes is None else (_maker_of(built), size_bytes)
    gone = []  # what dies, dies without the lock
    with _LOCK:
        _BUILT[identity] = built
        gone.append(_RECENT.pop(identity, None))
        if recent is not None:
            _RECENT[identity] = recent
        while len(_RECENT) > _MOST_RECENT or sum(size for _, size in list(_RECENT.values())) > _RECENT_BYTES:
            gone.append(_RECENT.pop(next(iter(_RECENT)), None))


def forget_recent() -> None:
    """Let go of what no session uses."""
    with _LOCK:
        gone = list(_RECENT.values())
        _RECENT.clear()
    del gone


def _maker_of(built: Built) -> Callable[[], Built]:
    """Return what makes the same with an executor that keeps nothing of runs, and that no session has; it holds none itself."""
    values = dict(zip(_FIELDS, _values_of(built), strict=True))
    fresh = built.executor.maker()
    return lambda: Built(executor=fresh(), **values)


def _small_bytes(built: Built, kept_bytes: int | None) -> int | None:
    """Return what programs of a model keep; None where it is much, or not known."""
    if built.bodies or built.recorder is not None:
        return None
    if kept_bytes is None:
        memory = built.executor.memory()
        if memory.silent:
            return None
        kept_bytes = union_bytes(memory.held)
    return kept_bytes if kept_bytes <= _RECENT_BYTES else None
