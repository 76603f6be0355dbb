"""Files of models that this process read before, and that nobody has written to since: their digests are not computed again.

Times say nothing of a file that was written just now, since two writes may fall into one tick of its clock; such a file is not
remembered, and neither is one that is mapped. A file is the one that it was where its path, size, inode, device and both its times
are the same, of which programs cannot set that of the last change of its entry.
"""

from __future__ import annotations

import os
import time

from sardonyx import config
from sardonyx.forks import new_lock
from sardonyx.formats.files import FileStamp, stamp_of

__all__ = ["SettledFile", "known_digests", "remember_digests", "settled_file"]

_SETTLED_NS = 2_000_000_000
"""How long a file must have been as it is: more than a tick of any file system."""
_MOST_FILES = 256

SettledFile = tuple[str, FileStamp, int]
"""A file that has been as it is for a while: its absolute path, its stamp, and when its entry changed last, in nanoseconds."""

_LOCK = new_lock()
_DIGESTS: dict[SettledFile, tuple[str, bytes]] = {}


def settled_file(path: str | os.PathLike[str], now_ns: int | None = None) -> SettledFile | None:
    """Return what tells a file from what may take its place; None for one that was written just now, is mapped or is not there.

    `now_ns` is a time in the past, where a file that changed since is to be None too.
    """
    if config.maps_weights():
        return None
    try:
        absolute = os.path.abspath(os.fsdecode(path))
        status = os.stat(absolute)
    except (OSError, ValueError):
        return None
    is_settled = 0 <= max(status.st_mtime_ns, status.st_ctime_ns) <= (time.time_ns() if now_ns is None else now_ns) - _SETTLED_NS
    return (absolute, stamp_of(status), status.st_ctime_ns) if is_settled else None


def known_digests(file: SettledFile) -> tuple[str, bytes] | None:
    """Return the digest of a model's message and that of all its bytes, b"" for a large one; None where it was not read before."""
    return _DIGESTS.get(file)


def remember_digests(file: SettledFile, message: str, content: bytes) -> None:
    """Remember the digests of a file, as `known_digests` returns them; the ones that were remembered first are forgotten first."""
    with _LOCK:
        _DIGESTS[file] = message, content
        while len(_DIGESTS) > _MOST_FILES:
            _DIGESTS.pop(next(iter(_DIGESTS)), None)
