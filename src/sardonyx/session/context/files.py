"""Where compiled partitions go: into nodes, into a file beside the model, or to a callback.

Sessions with `ep.share_ep_contexts` whose models lie in one folder write into one file, in which equal weights and kernels lie
once, until a session with `ep.stop_share_ep_contexts` was the last. What is in the file stays as it is while the file grows.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.errors import Fail
from sardonyx.forks import new_lock
from sardonyx.formats.program_archive import Added, ProgramArchive
from sardonyx.formats.program_file import digest_of, is_program
from sardonyx.ir.attribute import AttributeValue
from sardonyx.session.context.data import WriteData, write_by

__all__ = ["Content", "Placed", "ProgramsFile", "Sharing", "hand_over", "place_beside", "place_inside", "sharing"]

_TAIL_BYTES = 256


@dataclasses.dataclass(frozen=True, slots=True)
class Content:
    """A compiled partition, as its provider saved it."""

    name: str
    """The partition's name."""
    data: memoryview
    """What the provider saved."""


@dataclasses.dataclass(frozen=True, slots=True)
class Placed:
    """Where a compiled partition lies."""

    attributes: Mapping[str, AttributeValue]
    """The attributes of its node that say so."""
    digest: bytes
    """What it is known by."""


def place_inside(contents: Sequence[Content], weights: Mapping[bytes, str]) -> list[Placed]:
    """Put each into its node, in base64; arrays that `weights` name are left out."""
    placed = []
    for content in contents:
        stream = io.BytesIO()
        added = ProgramArchive().add(stream, content.data, weights)
        data = content.data if added is None else memoryview(stream.getvalue())[: added.end]
        text = base64.b64encode(data).decode("ascii")
        placed.append(Placed({"embed_mode": 1, "ep_cache_context": text, "max_size": len(data)}, digest_of(data)))
    return placed


def place_beside(contents: Sequence[Content], file: ProgramsFile, weights: Mapping[bytes, str]) -> list[Placed]:
    """Put all into `file`; what a provider writes in a form of its own gets a file of its own.

    Raises:
        Fail: the system does not let us write, or somebody else changed the file.
    """
    try:
        placed = file.add([content.data for content in contents], weights)
        for content, found in zip(contents, placed, strict=True):
            if found is None:
                with _new(file.path.with_name(_own_name(file.path.name, content))) as stream:
                    stream.write(content.data)
    except OSError as error:
        raise Fail(f"programs cannot be written into {str(file.path)!r}: {error.strerror or error}") from error
    return _placed(contents, placed, file.path.name)


def hand_over(contents: Sequence[Content], name: str, write: WriteData, weights: Mapping[bytes, str]) -> list[Placed]:
    """Give all to a callback, as the file `name`, and what a provider writes in a form of its own as files of their own."""
    stream, archive = io.BytesIO(), ProgramArchive()
    placed = [archive.add(stream, content.data, weights) for content in contents]
    # No view of the stream leaves: CPython up to 3.12.1 crashes where its collector frees one in a cycle (an exception's frames).
    if archive.size_bytes:
        write_by(write, name, memoryview(stream.getvalue()))
    for content, found in zip(contents, placed, strict=True):
        if found is None:
            write_by(write, _own_name(name, content), content.data)
    return _placed(contents, placed, name)


class ProgramsFile:
    """A file of programs beside one model or more."""

    def __init__(self, path: Path) -> None:
        """Make a file at `path` when the first program comes; it replaces programs that are there by then, and nothing else."""
        self.path = path.absolute()
        self._archive = ProgramArchive()

    def add(self, contents: Sequence[memoryview], weights: Mapping[bytes, str]) -> list[Added | None]:
        """Write programs at its end, and nothing for bytes of another kind; raises OSError, and Fail where it was changed."""
        if not any(map(is_program, contents)):
            return [None] * len(contents)
        if not self._archive.size_bytes and self.path.exists() and not _holds_programs(self.path):
            raise Fail(f"the file {str(self.path)!r} exists, and holds no programs; remove it, or give the model another name")
        with self._appended() if self._archive.size_bytes else _new(self.path) as stream:
            return [self._archive.add(stream, content, weights) for content in contents]

    @contextlib.contextmanager
    def _appended(self) -> Iterator[IO[bytes]]:
        expected = self._archive.size_bytes
        found = self.path.stat().st_size if self.path.exists() else None
        if found != expected:
            state = "is gone" if found is None else f"has {found} bytes"
            raise Fail(
                f"the file {str(self.path)!r}, which sessions share, had {expected} bytes when the last of them was made, and "
                f"{state} now; compile all its models again, the last one with ep.stop_share_ep_contexts"
            )
        with self.path.open("ab") as stream:
            yield stream


class Sharing:
    """The files that sessions of this process share at the moment, one in a folder. Safe for threads."""

    def __init__(self) -> None:
        """Begin without one."""
        self._lock = new_lock()
        self._files: dict[Path, ProgramsFile] = {}

    @contextlib.contextmanager
    def file_for(self, path: Path, *, stops: bool) -> Iterator[ProgramsFile]:
        """Provide the file for one session, which nobody else writes until the block ends.

        After a failure later sessions begin a new one.

        Args:
            path: where the file is to be, if there is none in that folder.
            stops: whether later sessions share another one.
        """
        folder = path.absolute().parent.resolve()
        with self._lock:
            file = self._files.pop(folder, None) or ProgramsFile(path)
            yield file
            if not stops:
                self._files[folder] = file


@functools.cache
def sharing() -> Sharing:
    """Return the files that the sessions of this process share."""
    return Sharing()


def _placed(contents: Sequence[Content], added: Sequence[Added | None], name: str) -> list[Placed]:
    found = []
    for content, place in zip(contents, added, strict=True):
        location = name if place is not None else _own_name(name, content)
        end, digest = place if place is not None else (len(content.data), digest_of(content.data))
        found.append(Placed({"embed_mode": 0, "ep_cache_context": location, "max_size": end}, digest))
    return found


def _holds_programs(path: Path) -> bool:
    with path.open("rb") as stream:
        stream.seek(-min(_TAIL_BYTES, path.stat().st_size), os.SEEK_END)
        return is_program(memoryview(stream.read().rstrip(b"\0")))


def _own_name(name: str, content: Content) -> str:
    return f"{Path(name).stem}_{content.name}.bin".replace("/", "_")


@contextlib.contextmanager
def _new(path: Path) -> Iterator[IO[bytes]]:
    """Provide a file that takes the place of `path` when the block succeeds: whoever has mapped the old one keeps it."""
    draft = path.with_name(f".{path.name}.{os.urandom(4).hex()}.tmp")
    try:
        with draft.open("xb") as stream:
            yield stream
        os.replace(draft, path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
