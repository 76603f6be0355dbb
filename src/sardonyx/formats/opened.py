"""The file of a model, opened: its format, its message without large data, and where that lies. Nothing of it is parsed.

opened = open_model("resnet50.onnx")
opened.format                      how it is read; None for ONNX
opened.message                     what protobuf can parse, or, of other formats, what is left without large data
opened.digest()                    what tells this message from others, whatever the large data is
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.cancellation import check_cancelled, raise_interrupt
from sardonyx.digests import sha256
from sardonyx.errors import InvalidArgument
from sardonyx.formats.files import Content, FileStamp, MemoryContent, open_content
from sardonyx.formats.model_format import ModelFile, ModelFormat
from sardonyx.formats.registry import find_format
from sardonyx.formats.wire import RAW_DATA, Blob, Stripped, strip

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
    format: ModelFormat | None = None
    """The format; None for ONNX, and for what nobody recognises."""
    is_folder: bool = False
    """Whether the model is a folder, of which there is no content."""

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
        digest = sha256(message.replace(nonce, bytes(16)) if nonce else message)
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
    if path is not None and os.path.isdir(path):
        nothing = MemoryContent(memoryview(b""))
        found = find_format(ModelFile(path, nothing))
        if found is not None:
            return OpenedModel(path, None, nothing, None, found, is_folder=True)
    content, stamp = open_content(path, "model file") if path is not None else (MemoryContent(_bytes(source)), None)
    file = ModelFile(path, content, stamp)
    found = find_format(file)
    if len(content) < _STRIP_BYTES:
        return OpenedModel(path, stamp, content, None, found)
    return OpenedModel(path, stamp, content, strip(content) if found is None else _without_large_data(file, found), found)


def _without_large_data(file: ModelFile, known: ModelFormat) -> Stripped | None:
    """Return what a file is without the elements of its large tensors; None where the format does not say where these lie."""
    try:
        places = [] if known.large_data is None else [(int(offset), int(size)) for offset, size in known.large_data(file)]
    except Exception as error:  # noqa: BLE001  whoever reads the file says what is wrong with it
        check_cancelled()
        raise_interrupt(error)
        return None
    pieces, blobs, position = [], {}, 0
    for number, (offset, size_bytes) in enumerate(places):
        if offset < position or size_bytes < 0 or offset + size_bytes > len(file.content):
            return None
        pieces.append(file.content.read(position, offset - position))
        blobs[bytes(16) + number.to_bytes(8, "little")] = Blob(offset, size_bytes, RAW_DATA)
        position = offset + size_bytes
    pieces.append(file.content.read(position, len(file.content) - position))
    return Stripped(b"".join(pieces), blobs) if blobs else None


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
