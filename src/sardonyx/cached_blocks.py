"""The form of a file of the disk cache that holds much: a head, and a block of bytes that is read straight to where it is used.

    "SARDONYB" | code of what follows, up to the end of the head (32 bytes) | key (64)
    bytes of the head (8), of the block (8), code of the block (32) | head | zeros up to a multiple of 64 | block

A code is a digest of the sums of pages of 4 KiB, each of 512 integers of 64 bits, modulo 2^64, and of what is behind the last
whole page: a tenth of the time of a digest of all, and it shows every change within 8 bytes, and pages that changed places. It
shows what happened to a file by accident: against others, files are in a folder that only its owner may change.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import IO, TypeAlias

import numpy as np

from sardonyx.cancellation import check_cancelled
from sardonyx.digests import blake2b

__all__ = ["Allocate", "pieces_of", "read_blocks"]

Allocate: TypeAlias = Callable[[int], memoryview]
"""A function that returns so many bytes of memory, which can be written to."""

_MAGIC = b"SARDONYB"
_SUM_BYTES = 32
_SIZES = struct.Struct("<64sQQ32s")
_HEADER_BYTES = len(_MAGIC) + _SUM_BYTES + _SIZES.size
_ALIGNMENT = 64
_PAGE_BYTES = 4096
_PIECE_BYTES = 1 << 20
"""How much is read at a time: it is summed while it is in the processor's cache, and a load can only be ended in between."""


def pieces_of(key: str, head: bytes, blocks: Sequence[memoryview]) -> Iterator[bytes | memoryview]:
    """Yield the bytes of a file, piece by piece; `blocks`, each of single bytes, follow one another without gaps."""
    code = _Code()
    for block in blocks:
        code.add(block)
    rest = _SIZES.pack(key.encode(), len(head), sum(map(len, blocks)), code.digest()) + head
    yield _MAGIC + _code_of(rest) + rest
    yield bytes(_begin(len(head)) - _HEADER_BYTES - len(head))
    for block in blocks:
        check_cancelled()
        yield block


def read_blocks(stream: IO[bytes], key: str, allocate: Allocate) -> tuple[bytes, memoryview] | None:
    """Return the head and the block of a file; None for one that is damaged or of another key.

    Args:
        stream: the file, from its beginning on, without a buffer.
        key: its key, 64 characters.
        allocate: makes the memory of the block.

    Raises:
        OSError: the file cannot be read.
        MemoryError: there is no memory for the block.
    """
    header = stream.read(_HEADER_BYTES)
    if len(header) != _HEADER_BYTES or not header.startswith(_MAGIC):
        return None
    sizes = header[len(_MAGIC) + _SUM_BYTES :]
    owner, head_bytes, block_bytes, code = _SIZES.unpack(sizes)
    begin = _begin(head_bytes)
    if owner != key.encode() or os.fstat(stream.fileno()).st_size != begin + block_bytes:
        return None
    head = stream.read(head_bytes)
    if _code_of(sizes, head) != header[len(_MAGIC) : len(_MAGIC) + _SUM_BYTES]:
        return None
    stream.seek(begin)
    block = allocate(block_bytes)
    return (head, block) if _filled(stream, block) == code else None


def _filled(stream: IO[bytes], block: memoryview) -> bytes | None:
    """Fill `block`; return its code, None where the file ends before."""
    code = _Code()
    for first in range(0, len(block), _PIECE_BYTES):
        piece = block[first : first + _PIECE_BYTES]
        if stream.readinto(piece) != len(piece):  # type: ignore[attr-defined]  # a file without a buffer has it
            return None
        code.add(piece)
    return code.digest()


def _code_of(*pieces: bytes) -> bytes:
    code = _Code()
    for piece in pieces:
        code.add(memoryview(piece))
    return code.digest()


class _Code:
    """The code of a block that is given piece by piece; where pieces begin makes no difference."""

    def __init__(self) -> None:
        self._sums = blake2b()
        self._rest = b""

    def add(self, piece: memoryview) -> None:
        """Add the next piece; may end the load or the run that it is part of."""
        if self._rest:
            missing = _PAGE_BYTES - len(self._rest)
            page = self._rest + bytes(piece[:missing])
            if len(page) < _PAGE_BYTES:
                self._rest = page
                return
            self._add_pages(memoryview(page))
            piece = piece[missing:]
        end = len(piece) - len(piece) % _PAGE_BYTES
        for first in range(0, end, _PIECE_BYTES):
            check_cancelled()
            self._add_pages(piece[first : min(first + _PIECE_BYTES, end)])
        self._rest = bytes(piece[end:])

    def _add_pages(self, pages: memoryview) -> None:
        self._sums.update(np.add.reduce(np.frombuffer(pages, np.uint64).reshape(-1, _PAGE_BYTES // 8), axis=1).data)

    def digest(self) -> bytes:
        """Return the code of all pieces."""
        whole = self._sums.copy()
        whole.update(self._rest)
        return whole.digest()


def _begin(head_bytes: int) -> int:
    return -(-(_HEADER_BYTES + head_bytes) // _ALIGNMENT) * _ALIGNMENT
