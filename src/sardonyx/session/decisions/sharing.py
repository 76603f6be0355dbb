"""Sessions of one model in a process share what is built of it: packed weights, programs and the plan.

Programs keep nothing of a run, so any number of sessions may use them. They are shared where the key of the decisions is the same,
and so are the elements of all weights: by the digest of a small model, and for a large file by its name, size, inode and times.
Times say nothing of a file that was written just now, since two writes may fall into one tick of its clock; such a file is not
shared. What is built lives as long as a session of it.
"""

from __future__ import annotations

import hashlib
import os
import time
import weakref

from sardonyx import config
from sardonyx.forks import new_lock
from sardonyx.formats.files import stamp_of
from sardonyx.formats.opened import OpenedModel
from sardonyx.session.built import Built

__all__ = ["Identity", "find_shared", "identity_of", "share"]

_DIGESTED_BYTES = 4 << 20
"""The largest model that is compared by its bytes."""
_SETTLED_NS = 2_000_000_000
"""How long a file must have been as it is: more than a tick of any file system."""

Identity = tuple[object, ...]
"""What tells one model with its weights, built in one way, from others."""

_LOCK = new_lock()
_BUILT: weakref.WeakValueDictionary[Identity, Built] = weakref.WeakValueDictionary()


def identity_of(opened: OpenedModel, key: str) -> Identity | None:
    """Return the identity of a model; None for one that is not shared.

    Args:
        opened: the model's file, just opened.
        key: the key of the decisions.
    """
    path = None if opened.path is None else os.path.abspath(opened.path)
    if len(opened.content) <= _DIGESTED_BYTES:
        return key, path, opened.stamp, hashlib.sha256(opened.content.read(0, len(opened.content))).digest()
    if path is None or config.maps_weights():
        return None
    try:
        status = os.stat(path)
    except OSError:
        return None
    is_settled = 0 <= max(status.st_mtime_ns, status.st_ctime_ns) <= time.time_ns() - _SETTLED_NS
    if not is_settled or stamp_of(status) != opened.stamp:
        return None
    return key, path, opened.stamp, status.st_ctime_ns


def find_shared(identity: Identity) -> Built | None:
    """Return what a session that is still there was built of; None where there is none."""
    with _LOCK:
        return _BUILT.get(identity)


def share(identity: Identity, built: Built) -> None:
    """Let later sessions use `built`, as long as somebody refers to it."""
    with _LOCK:
        _BUILT[identity] = built
