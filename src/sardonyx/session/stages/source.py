"""Where a session's model comes from, what of it is kept to read it again, and whether it is still the same then."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.errors import locating
from sardonyx.forks import without_fork
from sardonyx.formats.files import FileStamp
from sardonyx.formats.opened import OpenedModel
from sardonyx.ir import Function, Model
from sardonyx.session.model_files import check_unchanged
from sardonyx.session.settings.settings import LoadSettings

__all__ = ["Source"]

_SMALL_BYTES = 1 << 20
"""Bytes that are worth no care: the model of a session that has them can always be read again."""

_MANY_NODES = 2000
"""Nodes from which on full garbage collections take longer than a signal may wait."""

_MANY_NODES_BYTES = 1 << 16
"""Bytes of a file that may have so many: a node takes 20 to 40."""


@dataclasses.dataclass(frozen=True, slots=True)
class Source:
    """What a model is read from: as often as wanted, as reading uses nothing up."""

    given: object
    """A path, bytes, a ModelProto or an ir.Model."""
    is_copy: bool = False
    """Whether these are bytes that were read from a file object, so that nobody else holds them."""
    stamps: Mapping[Path, FileStamp] = dataclasses.field(default_factory=dict)
    """What the model's files were when it was read before."""

    @classmethod
    def of(cls, given: object) -> Source:
        """Return the source for a session's first argument: a path, bytes, a file object, a ModelProto or an ir.Model."""
        if hasattr(given, "read"):
            return cls(given.read(), is_copy=True)
        return cls(given)

    def read(self, settings: LoadSettings, opened: OpenedModel | None = None) -> Model:
        """Return the model, the caller's own; raises NoSuchFile, InvalidProtobuf or InvalidGraph.

        `opened` is its file where that is open already.
        """
        with without_fork():
            from sardonyx.formats import models  # which a model that is known does not need
            from sardonyx.optimize.blocked_layout import make_plain
            from sardonyx.optimize.edit import clone_model

        if isinstance(self.given, Model):
            copy = clone_model(self.given)
            copy.functions = {key: _copied(function) for key, function in copy.functions.items()}
            return copy
        model = models.load(self.given, external_dir=settings.external_folder, in_memory=settings.in_memory(), opened=opened)
        with locating(f"model {model.label}"):
            make_plain(model)
        return model

    def may_be_large(self) -> bool:
        """Return whether the model may have thousands of nodes: its file or its bytes take 64 KiB, weights within included."""
        if isinstance(self.given, Model):
            return len(self.given.graph) >= _MANY_NODES
        if isinstance(self.given, (bytes, bytearray, memoryview)):
            return len(self.given) >= _MANY_NODES_BYTES
        if isinstance(self.given, (str, os.PathLike)):
            with contextlib.suppress(OSError, ValueError):
                return os.stat(self.given).st_size >= _MANY_NODES_BYTES
            return False
        size_bytes = getattr(self.given, "ByteSize", None)
        return size_bytes is not None and size_bytes() >= _MANY_NODES_BYTES

    def check(self) -> None:
        """Raise Fail where a file of the model is not what it was when it was read before."""
        check_unchanged(self.stamps)

    def after(self, stamps: Mapping[Path, FileStamp]) -> Source:
        """Return this source, once it was read from files with these `stamps`."""
        return Source(self.given, self.is_copy, stamps)

    def kept(self, *, for_variants: bool, for_failures: bool) -> Source | None:
        """Return what a session keeps, so that it can read its model again, or None.

        A path is always kept. Bytes are kept where they are small or needed, since they are as large as the model: of the
        caller's where a variant may be built, any where the session goes on without a provider that fails.
        """
        if for_failures or isinstance(self.given, (str, os.PathLike)):
            return self
        if self.is_copy or not isinstance(self.given, bytes):
            return None
        return self if for_variants or len(self.given) <= _SMALL_BYTES else None


def _copied(function: Function) -> Function:
    with without_fork():
        from sardonyx.optimize.edit import clone_graph

    copy = Function(
        function.domain,
        function.name,
        clone_graph(function.graph, {}),
        dict(function.opset_imports),
        overload=function.overload,
        attributes=dict(function.attributes),
    )
    copy.doc, copy.metadata = function.doc, function.metadata
    return copy
