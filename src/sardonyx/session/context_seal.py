"""Seals of compiled partitions: their machine code is run where this user's own sardonyx wrote it, or where the user says so.

A seal is an HMAC-SHA-256 over the partition's digest, under a key that lies in the cache folder and that only its owner can read.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import secrets

from sardonyx import config
from sardonyx.formats.program_file import digest_of

__all__ = ["is_sealed", "seal_of"]

_FILE = "context.key"
_KEY_BYTES = 32
_PREFIX = "hmac-sha256:"


def seal_of(content: memoryview) -> str:
    """The seal of bytes that this process has just made; "" where there is no folder for a key."""
    key = _read_key() or _make_key()
    return "" if key is None else f"{_PREFIX}{_code(key, content)}"


def is_sealed(content: memoryview, seal: str) -> bool:
    """Whether `seal` is the seal of `content` under this user's key."""
    key = _read_key()
    return key is not None and hmac.compare_digest(seal.encode(), f"{_PREFIX}{_code(key, content)}".encode())


def _code(key: bytes, content: memoryview) -> str:
    return hmac.new(key, digest_of(content), "sha256").hexdigest()


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
