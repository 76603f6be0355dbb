"""Elements of a model's weights by where they lie: in its own file, or in one beside it, which is opened when it is needed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sardonyx.formats.external_data import ExternalData
from sardonyx.formats.files import Content, FileStamp
from sardonyx.formats.opened import OpenedModel
from sardonyx.formats.plain_graph import Place

__all__ = ["Elements"]


class Elements:
    """The elements of an opened model's weights."""

    def __init__(self, opened: OpenedModel, folder: str | None = None) -> None:
        """Prepare to read; `folder` is that of other files, None for beside the model's own."""
        self.opened = opened
        """The model's own file."""
        self._blobs = list(opened.blobs.values())
        self._external = ExternalData.beside(opened.path, folder)

    @property
    def stamps(self) -> Mapping[Path, FileStamp]:
        """What other files were when they were opened."""
        return self._external.stamps

    def find(self, place: Place) -> tuple[Content, int, int]:
        """Return the content that has the elements at a place, where they begin there, and how many bytes they take.

        Raises:
            IndexError: the model's file has no such place.
            SardonyxError: another file is not there, is too short, or may not be read.
        """
        if isinstance(place, int):
            blob = self._blobs[place]
            return self.opened.content, blob.offset, blob.size_bytes
        location, offset, size_bytes = place
        entries = {"location": location, "offset": str(offset)}
        content, start = self._external.find(entries, size_bytes, f"data in {location!r}")
        return content, start, size_bytes
