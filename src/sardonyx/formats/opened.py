"""The file of a model, opened: its message without large data, and where that lies. Nothing of it is parsed.

opened = open_model("resnet50.onnx")
opened.message                     what protobuf can parse
opened.digest()                    what tells this message from others, whatever the large data is
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.errors import InvalidArgument
from sardonyx.formats.files import Content, FileStamp, MemoryContent, open_content
from sardonyx.formats.wire import Blob, Stripped, strip

__all__ = ["OpenedModel", "open_model"]

_STRIP_BYTES = 64 << 10
"""Smaller files are parsed as they are."""


@dataclasses.dataclass(frozen=True, slots=True)
class OpenedModel:
    """The bytes of a model, from a file or from memory."""

    path: Path | None
    """The file; None for bytes."""
    stamp: FileStamp | None
    """What the file was when it was opened; None for bytes."""
    content: Content
    """All bytes."""
    stripped: Stripped | None
    """The model, with keys in the place of large data and long lists; None where that is not so, and all bytes are the message."""

    @property
    def message(self) -> bytes | None:
        """The model, with keys in the place of what was taken out; None where nothing was."""
        return None if self.stripped is None else self.stripped.data

    @property
    def blobs(self) -> Mapping[bytes, Blob]:
        """Key -> where the data of a large tensor lies, in the order of the file."""
        return {} if self.stripped is None else self.stripped.blobs

    def digest(self) -> str:
        """Return a SHA-256 of the message, in which the keys, which are drawn anew each time, do not count."""
        message = self.whole() if self.message is None else self.message
        lists = {} if self.stripped is None else self.stripped.lists
        nonce = next(iter((*self.blobs, *lists)), b"")[:16]
        sizes = [(blob.size_bytes, blob.field) for blob in self.blobs.values()]
        digest = hashlib.sha256(message.replace(nonce, bytes(16)) if nonce else message)
        digest.update(repr((sizes, len(lists))).encode())
        for taken in lists.values():
            digest.update(f"{taken.kind} {taken.array.dtype} {taken.array.shape} {taken.texts!r}".encode(errors="surrogatepass"))
            digest.update(np.ascontiguousarray(taken.array).data)
        return digest.hexdigest()

    def whole(self) -> bytes:
        """Return all bytes: the object itself that they are a view of where it is a bytes, else a copy."""
        data = self.content.read(0, len(self.content))
        owner = data.obj
        return owner if isinstance(owner, bytes) and len(owner) == len(data) else bytes(data)


def open_model(source: Any, path: Path | None) -> OpenedModel:
    """Return the bytes of a model.

    Args:
        source: bytes, or an open binary file (Any: what a caller gives may be anything).
        path: the file to open in the place of `source`; None for `source`.

    Raises:
        NoSuchFile: the file does not exist.
        InvalidArgument: `source` is none of these.
        Fail: the system does not let us read the file.
    """
    content, stamp = open_content(path, "model file") if path is not None else (MemoryContent(_bytes(source)), None)
    return OpenedModel(path, stamp, content, strip(content) if len(content) >= _STRIP_BYTES else None)


def _bytes(source: Any) -> memoryview:
    content = source.read() if hasattr(source, "read") else source
    if not isinstance(content, (bytes, bytearray, memoryview)):
        if hasattr(source, "read"):
            raise InvalidArgument(f"the file gave {type(content).__name__} when read; open it in binary mode, with 'rb'")
        raise InvalidArgument(
            f"a model cannot be loaded from {type(content).__name__}; "
            f"expected a path, bytes, an open binary file or an onnx.ModelProto"
        )
    view = memoryview(content)
    return view.cast("B") if view.readonly and view.c_contiguous else memoryview(bytes(view))
