"""Seals of compiled partitions: their machine code is run where this user's own sardonyx wrote it, or where the user says so.

    notes = "sha256:3b1f… hmac-sha256:9c07…"          what a node holds, by its digest, and the seal

A seal is an HMAC-SHA-256 over the partition's digest, under a key that lies in the cache folder and that only its owner can read.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import secrets

from sardonyx import config

__all__ = ["is_sealed", "noted_digest", "notes_of", "seal_of"]

_FILE = "context.key"
_KEY_BYTES = 32
_PREFIX, _DIGEST = "hmac-sha256:", "sha256:"


def notes_of(digest: bytes) -> str:
    """What a node notes of a program that this process has just made: its digest, and the seal where a key can be kept."""
    return f"{_DIGEST}{digest.hex()} {seal_of(digest)}".rstrip()


def noted_digest(notes: str) -> str:
    """The digest that `notes_of` wrote, in hexadecimal; "" where there is none."""
    return next((word.removeprefix(_DIGEST) for word in notes.split() if word.startswith(_DIGEST)), "")


def seal_of(digest: bytes) -> str:
    """The seal of what this process has just made; "" where there is no folder for a key."""
    key = _read_key() or _make_key()
    return "" if key is None else f"{_PREFIX}{_code(key, digest)}"


def is_sealed(digest: bytes, notes: str) -> bool:
    """Whether `notes` hold the seal of what has this `digest` under this user's key."""
    key = _read_key()
    if key is None:
        return False
    expected = f"{_PREFIX}{_code(key, digest)}".encode()
    return any(hmac.compare_digest(word.encode(errors="replace"), expected) for word in notes.split())


def _code(key: bytes, digest: bytes) -> str:
    return hmac.new(key, digest, "sha256").hexdigest()


def _read_key() -> bytes | None:
    folder = config.cache_dir()
    try:
        key = b"" if folder is None else (folder / _FILE).read_bytes()
    except OSError:
        return None
    return key if len(key) == _KEY_BYTES else None


def _make_key() -> bytes | None:
    """Write a new key; of several processes that do so at once the first one's stays."""
    folder = config.cache_dir()
    if folder is None:
        return None
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = folder / f".{_FILE}.{secrets.token_hex(8)}"
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(secrets.token_bytes(_KEY_BYTES))
        with contextlib.suppress(FileExistsError):
            os.link(draft, folder / _FILE)
        draft.unlink()
    except OSError:
        return None
    return _read_key()
