"""Digests without OpenSSL where little is digested: to load that takes milliseconds and some MiB of memory in every process.

sha256(data)     what others may compare
blake2b(data)    what only this package does, in a third of the time of SHA-256 in Python's own code
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any, Protocol

from sardonyx.forks import without_fork

__all__ = ["Digest", "blake2b", "sha256"]

_OWN_MODULES = ("_sha2", "_sha256")
"""Where CPython has its own code, which is there at once, from version 3.12 on and before."""
_BLAKE2B_BYTES = 32
_LARGE_BYTES = 1 << 20
"""From how many bytes on the instructions that OpenSSL has for it are worth it."""


class Digest(Protocol):
    """What digests bytes, as objects of hashlib do."""

    def update(self, data: bytes | memoryview, /) -> None:
        """Take further bytes."""

    def digest(self) -> bytes:
        """Return the digest of all bytes so far."""

    def copy(self) -> Digest:
        """Return one of the same bytes, which is updated by itself."""

    def hexdigest(self) -> str:
        """Return it in hexadecimal."""


def sha256(data: bytes | memoryview = b"", *, more_bytes: int = 0) -> Digest:
    """Return the SHA-256 of `data`, which may be updated with further bytes, about `more_bytes` of them."""
    is_large = memoryview(data).nbytes + more_bytes >= _LARGE_BYTES
    made: Digest = (_of_openssl() if is_large else _own())(data)
    return made


def blake2b(data: bytes | memoryview = b"") -> Digest:
    """Return the BLAKE2b of `data`, of 32 bytes, which may be updated with further bytes."""
    made: Digest = _own_blake2b()(data, digest_size=_BLAKE2B_BYTES)
    return made


@functools.cache
def _own_blake2b() -> Callable[..., Any]:  # as below
    try:
        with without_fork():
            found: Callable[..., Any] = importlib.import_module("_blake2").blake2b
    except ImportError:  # a Python that was built without it
        with without_fork():
            import hashlib

        return hashlib.blake2b
    return found


@functools.cache
def _own() -> Callable[[Any], Any]:  # bytes or a view of them; there are no stubs of these modules
    for name in _OWN_MODULES:
        try:
            with without_fork():
                found: Callable[[Any], Any] = importlib.import_module(name).sha256
        except ImportError:
            continue
        return found
    return _of_openssl()


def _of_openssl() -> Callable[[Any], Any]:
    with without_fork():
        import hashlib  # loads OpenSSL

    return hashlib.sha256
