"""Sums of the 4 KiB pages of a file, made while it is read: what was just read is in the processor's cache, and costs little there.

    file      page 0 | page 1 | page 2 | …        each page: the sum of its 512 integers of 64 bits, modulo 2^64
    block        begin ├──┬────────┬──┤ end        its code: SHA-256 of bytes up to a page | sums of pages | bytes behind

Every change within 8 bytes shows in a sum, and others as surely as sums modulo 2^64 show them; pages that changed places show too.
It is no code against those who mean harm.
"""

from __future__ import annotations

import numpy as np

from sardonyx.cancellation import check_cancelled
from sardonyx.digests import sha256
from sardonyx.dtypes import Array

__all__ = ["PAGE_BYTES", "PageSums", "code_of_sums"]

PAGE_BYTES = 4096
_PIECE_BYTES = 4 << 20
"""How much is summed between two checks whether the load is to end."""


class PageSums:
    """The sums of the pages of a file that is read from its beginning, piece after piece."""

    def __init__(self) -> None:
        """Have read nothing yet."""
        self._parts: list[Array] = []
        self._seen_bytes = 0

    def note(self, piece: memoryview) -> None:
        """Add the sums of the next piece; what follows one that is no number of pages is not summed."""
        if self._seen_bytes % PAGE_BYTES == 0:
            self._parts.append(_sums(piece[: len(piece) - len(piece) % PAGE_BYTES]))
        self._seen_bytes += len(piece)

    def pages(self) -> Array:
        """Return the sums of pages from the first one on, as far as they are known."""
        self._parts = [np.concatenate(self._parts)] if self._parts else [np.empty(0, np.uint64)]
        return self._parts[0]


def code_of_sums(block: memoryview, begin: int, pages: Array | None = None) -> str:
    """Return the code of a block.

    Args:
        block: its bytes.
        begin: where it begins in its file.
        pages: the sums of the file's pages as far as they are known; the others are computed.
    """
    head = min(-begin % PAGE_BYTES, len(block))
    count = (len(block) - head) // PAGE_BYTES
    first, end = (begin + head) // PAGE_BYTES, head + count * PAGE_BYTES
    known = None if pages is None or first + count > len(pages) else pages[first : first + count]
    digest = sha256(block[:head])
    digest.update((_sums(block[head:end]) if known is None else known).tobytes())
    digest.update(block[end:])
    return digest.hexdigest()


def _sums(content: memoryview) -> Array:
    """Return the sums of pages."""
    found = []
    for begin in range(0, len(content), _PIECE_BYTES):
        check_cancelled()
        words = np.frombuffer(content[begin : begin + _PIECE_BYTES], np.uint64).reshape(-1, PAGE_BYTES // 8)
        found.append(np.add.reduce(words, axis=1))
    return np.concatenate(found) if found else np.empty(0, np.uint64)
