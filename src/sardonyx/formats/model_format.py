"""What a file format is: how its files are recognised, read and written. Formats of users are made of the same parts.

    FORMAT = ModelFormat("TOY", (".toy",), recognizes=lambda file: file.start.startswith(b"TOY1"), load=load, save=save)

A loader gets a `ModelFile` and returns an `ir.Model`. Large tensors that it makes by `ModelFile.tensor` stay in the file until they
are asked for; a format that also says where they lie (`large_data`) has its models kept by the cache of decisions without them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import DataType
from sardonyx.formats.external_data import InMemory
from sardonyx.formats.files import Content, FileStamp
from sardonyx.formats.stored import stored
from sardonyx.ir.tensor import Tensor

if TYPE_CHECKING:
    from sardonyx.ir import Model

__all__ = ["LARGE_BYTES", "Loss", "ModelFile", "ModelFormat"]

LARGE_BYTES = 1024
"""Data of fewer bytes is not worth a place of its own in `ModelFormat.large_data`."""
_START_BYTES = 512


class ModelFile:
    """A file, a folder or bytes from which a model is to be read."""

    def __init__(
        self,
        path: Path | None,
        content: Content,
        stamp: FileStamp | None = None,
        *,
        external_dir: Path | None = None,
        in_memory: InMemory | None = None,
        places: Mapping[tuple[int, int], int] | None = None,
    ) -> None:
        """Prepare to read.

        Args:
            path: the file or folder; None for bytes.
            content: the bytes; none of a folder.
            stamp: what the file was when it was opened.
            external_dir: the folder of data beside the model; by default the one that `path` is in.
            in_memory: files beside the model that the caller has in memory.
            places: offset and length of large data -> its number.
        """
        self.path, self.content, self.in_memory = path, content, in_memory
        self.folder = external_dir if external_dir is not None else path.parent if path is not None else None
        """Where files beside the model are looked for; None where there is no such place."""
        self.stamps: dict[Path, FileStamp] = {} if path is None or stamp is None else {path: stamp}
        """The files that were read, as they were then; a format that reads others adds them."""
        self.placed: dict[Tensor, int | tuple[str, int, int]] = {}
        """Tensors whose elements are large data of the file, with their numbers, or are in another file, with location, offset and
        length."""
        self._places = places or {}

    @property
    def is_folder(self) -> bool:
        """Whether the model is a folder."""
        return self.path is not None and self.path.is_dir()

    @property
    def start(self) -> bytes:
        """The first bytes, 512 at most."""
        return bytes(self.content.read(0, min(_START_BYTES, len(self.content))))

    @property
    def label(self) -> str:
        """How messages call it."""
        return repr(os.fspath(self.path)) if self.path is not None else "model"

    def tensor(self, dtype: DataType, shape: tuple[int, ...], offset: int, size_bytes: int, name: str = "") -> Tensor:
        """Return a constant whose elements are bytes of the file, little-endian, read when they are asked for.

        Args:
            dtype: its element type, none of strings.
            shape: its dimensions.
            offset: where the elements begin.
            size_bytes: their length, which the caller has compared with type and shape, and with the length of the file.
            name: a name.
        """
        tensor = Tensor(dtype, shape, stored(self.content, offset, size_bytes, dtype, shape), name)
        self.note(tensor, offset, size_bytes)
        return tensor

    def note(self, tensor: Tensor, offset: int, size_bytes: int) -> None:
        """Remember where in the file the elements of a tensor are that was made by other means than `tensor`."""
        number = self._places.get((offset, size_bytes))
        if number is not None:
            self.placed[tensor] = number


@dataclasses.dataclass(frozen=True, slots=True)
class Loss:
    """Something of a model that a format cannot express."""

    where: str
    """The value, node or part that it concerns."""
    what: str
    """What is lost, and what stands in the file instead."""


Places = Sequence[tuple[int, int]]
"""Offset and length in bytes of parts of a file, in order and apart from one another."""


@dataclasses.dataclass(frozen=True, slots=True)
class ModelFormat:
    """A format that models are read from, and perhaps written in."""

    name: str
    """What messages and the command line call it."""
    suffixes: tuple[str, ...]
    """How names of its files end, with the dot; the first is that of files that are written."""
    recognizes: Callable[[ModelFile], bool]
    """Whether a file is of this format, by its content; `start` is often enough."""
    load: Callable[[ModelFile], Model]
    """Reads a file that was recognised; raises a SardonyxError that says what is wrong with it, and where."""
    save: Callable[[Model, Path], Sequence[Loss]] | None = None
    """Writes a model to a path, all or nothing, and returns what the format could not express; None where it only reads."""
    large_data: Callable[[ModelFile], Places] | None = None
    """Where the elements of large tensors lie, found without reading them; the rest of the file decides what is kept of a model."""
    options: Callable[[ModelFile], Mapping[str, str]] | None = None
    """What a folder or an archive says of sessions: config entries and properties of SessionOptions, where the user sets none."""
