"""Files that come with a model, such as the names of its classes: a ZIP archive behind the model's bytes.

    texts(content)    {"labels.txt": "cat dog"}

Source: the documents of TensorFlow Lite on its metadata.
"""

from __future__ import annotations

import io
import zipfile
import zlib

from sardonyx.formats.files import Content

__all__ = ["texts"]

_END = b"PK\x05\x06"
_END_BYTES = 22
_MOST_FILES = 64
_MOST_BYTES = 1 << 20
"""How much text is kept altogether."""


def texts(content: Content) -> dict[str, str]:
    """Return the files behind a model that are text in UTF-8, a MiB at most; those that are no text, or larger, are left out."""
    size_bytes = len(content)
    if size_bytes < _END_BYTES or bytes(content.read(size_bytes - _END_BYTES, 4)) != _END:
        return {}
    found: dict[str, str] = {}
    left = _MOST_BYTES
    try:
        with zipfile.ZipFile(io.BufferedReader(_Raw(content))) as archive:
            for entry in archive.infolist()[:_MOST_FILES]:
                text = _text(archive, entry, left)
                if text is not None:
                    found[entry.filename] = text
                    left -= len(text)
    # zipfile raises NotImplementedError for a method of compression that it lacks, RuntimeError for an encrypted file
    except (zipfile.BadZipFile, NotImplementedError, OSError, RuntimeError, ValueError):
        return {}
    return found


def _text(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, most_bytes: int) -> str | None:
    if entry.is_dir() or entry.file_size > most_bytes:
        return None
    try:
        with archive.open(entry) as file:
            data = file.read(most_bytes + 1)
        return data.decode("utf-8") if len(data) <= most_bytes else None
    except (UnicodeDecodeError, zipfile.BadZipFile, zlib.error, EOFError):
        return None


class _Raw(io.RawIOBase):
    """Content as a file that is read."""

    def __init__(self, content: Content) -> None:
        self._content, self._place = content, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: len(self._content)}[whence]
        if start + offset < 0:
            raise ValueError(f"there is no byte {start + offset}")
        self._place = start + offset
        return self._place

    def tell(self) -> int:
        return self._place

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]  # typeshed has a private type here
        count = max(min(len(buffer), len(self._content) - self._place), 0)
        buffer[:count] = self._content.read(self._place, count)
        self._place += count
        return count
