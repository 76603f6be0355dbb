"""Programs one after another in a file, in which equal blocks lie once.

    program 1: blocks, header │ program 2: only blocks that are not there yet, header │ …
                                ◄───────────── the header says where the others lie

The first so many bytes of the file are a program, for each program another number. What is there is never changed, so that a file
that grows can be mapped by whoever reads the programs that are in it already.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import IO, Any, NamedTuple

from sardonyx.digests import sha256
from sardonyx.formats.program_file import ALIGNMENT, digest_of, placed_anew

__all__ = ["Added", "ProgramArchive", "block_key"]


class Added(NamedTuple):
    """A program in the file."""

    end: int
    """How many bytes of the file, from the first on, are the program."""
    digest: bytes
    """Its digest."""


class ProgramArchive:
    """Knows what lies in a file of programs, and writes more into it."""

    def __init__(self) -> None:
        """Begin with an empty file."""
        self.size_bytes = 0
        self._known: dict[bytes, list[int]] = {}

    def add(self, stream: IO[bytes], content: memoryview, weights: Mapping[bytes, str]) -> Added | None:
        """Write a program at the end of the file; None, and nothing is written, for bytes of another kind.

        Args:
            stream: the file, at its end.
            content: the program.
            weights: `block_key` -> name of arrays that are not written, but named.

        Raises:
            EPFail: the program is damaged.
            OSError: the file cannot be written; neither it nor the archive are good any more.
        """
        head = placed_anew(content, lambda block, digest: self._place(stream, block, digest, weights))
        if head is None:
            return None
        self._write(stream, head)
        end = self.size_bytes
        self._write(stream, bytes(-end % ALIGNMENT))
        return Added(end, digest_of(memoryview(head)))

    def _place(self, stream: IO[bytes], block: memoryview, digest: str, weights: Mapping[bytes, str]) -> list[Any]:
        key = bytes.fromhex(digest) or block_key(block)
        name = weights.get(key) if digest else None
        if name is not None:
            return [name, zlib.crc32(block)]
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = [self.size_bytes, len(block)]
            self._write(stream, block)
            self._write(stream, bytes(-len(block) % ALIGNMENT))
        return found

    def _write(self, stream: IO[bytes], content: bytes | memoryview) -> None:
        stream.write(content)
        self.size_bytes += len(content)


def block_key(block: memoryview) -> bytes:
    """Return what equal blocks have in common, and others have not."""
    return sha256(block).digest()
