"""Seals of compiled partitions: their machine code is run where this user's own sardonyx wrote it, or where the user says so.

    notes = "sha256:3b1f… hmac-sha256:9c07…"          what a node holds, by its digest, and the seal

A seal is an HMAC-SHA-256 over the partition's digest, under a key that lies in the cache folder and that only its owner can read.
A key that somebody else could have put there is no key: who knows the key can have his code run.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from sardonyx import config
from sardonyx.forks import without_fork
from sardonyx.private_files import folder_problem, make_private, read_private
from sardonyx.trace import event

__all__ = ["noted_digest", "notes_of", "seal_of", "seal_problem"]

_FILE = "context.key"
_KEY_BYTES = 32
_PREFIX, _DIGEST = "hmac-sha256:", "sha256:"


def notes_of(digest: bytes) -> str:
    """Return what a node notes of a program that this process has just made: its digest, and the seal where a key can be kept."""
    return f"{_DIGEST}{digest.hex()} {seal_of(digest)}".rstrip()


def noted_digest(notes: str) -> str:
    """Return the digest that `notes_of` wrote, in hexadecimal; "" where there is none."""
    return next((word.removeprefix(_DIGEST) for word in notes.split() if word.startswith(_DIGEST)), "")


def seal_of(digest: bytes) -> str:
    """Return the seal of what this process has just made; "", which is traced, where there is no folder for a key."""
    key = _key(makes=True)
    if isinstance(key, str):
        event("context.no_key", detail=key)
        return ""
    return f"{_PREFIX}{_code(key, digest)}"


def seal_problem(digest: bytes, notes: str) -> str:
    """Return why `notes` hold no seal under this user's key of what has this `digest`, "" where they hold it."""
    key = _key(makes=False)
    if isinstance(key, str):
        return key
    expected = f"{_PREFIX}{_code(key, digest)}".encode()
    with without_fork():
        import hmac  # loads OpenSSL

    is_sealed = any(hmac.compare_digest(word.encode(errors="replace"), expected) for word in notes.split())
    return "" if is_sealed else "its seal is not under this user's key"


def _code(key: bytes, digest: bytes) -> str:
    with without_fork():
        import hmac  # loads OpenSSL

    return hmac.new(key, digest, "sha256").hexdigest()


def _key(*, makes: bool) -> bytes | str:
    """Return this user's key, which is made where it is missing and `makes` is set, or why there is none."""
    folder = config.cache_dir()
    if folder is None:
        return "there is no cache folder, and so no key for seals"
    try:
        problem = make_private(folder) if makes else folder_problem(folder)
        if makes and not problem and not os.path.lexists(folder / _FILE):
            _write_key(folder)
        key = problem or read_private(folder / _FILE, secret=True)
    except FileNotFoundError:
        return f"there is no key for seals in {folder}"
    except OSError as error:
        return f"the key for seals in {folder} cannot be used: {error.strerror or error}"
    if isinstance(key, str):
        return f"the key for seals is not used, since {key}"
    return (
        key if len(key) == _KEY_BYTES else f"the key for seals {folder / _FILE} has {len(key)} bytes, not {_KEY_BYTES}; remove it"
    )


def _write_key(folder: Path) -> None:
    """Write a new key; of several processes that do so at once the first one's stays."""
    draft = folder / f".{_FILE}.{os.urandom(8).hex()}"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(os.urandom(_KEY_BYTES))
        with contextlib.suppress(FileExistsError):
            os.link(draft, folder / _FILE)
    finally:
        draft.unlink()
