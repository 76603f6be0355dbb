"""Looking up and keeping what was decided of a model; nothing that goes wrong with that is an error.

attempt = begin(source, settings, providers)
built = attempt.built()            what a session before decided, compiled; None where there is nothing of that
attempt.keep(decided)              for later sessions
"""

from __future__ import annotations

import functools
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from sardonyx import config
from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.cancellation import check_cancelled, raise_interrupt
from sardonyx.disk_cache import shared_cache
from sardonyx.errors import SardonyxError
from sardonyx.formats.files import FileStamp
from sardonyx.formats.opened import OpenedModel, open_model
from sardonyx.formats.plain_graph import NoPlainForm
from sardonyx.formats.registry import registered_formats
from sardonyx.runtime.plan import ProgramStep
from sardonyx.session.built import Built
from sardonyx.session.decisions.data_files import DataFile, are_as_before, data_files, data_files_again, data_paths
from sardonyx.session.decisions.elements import Elements
from sardonyx.session.decisions.key import key_of, remembering
from sardonyx.session.decisions.known_files import SettledFile, known_digests, settled_file
from sardonyx.session.decisions.outline import outline_of
from sardonyx.session.decisions.programs import (
    KeptPrograms,
    known_file_key,
    load_known,
    programs_key,
    sample,
    sample_file,
    store_known,
    store_programs,
    with_data,
)
from sardonyx.session.decisions.record import Decided, Restored, StaleError, read_record, write_record
from sardonyx.session.decisions.sharing import Identity, find_shared, identity_of, identity_with
from sardonyx.session.settings.settings import Settings
from sardonyx.session.stages.provider_list import ProviderList
from sardonyx.session.stages.source import Source
from sardonyx.trace import event, span

__all__ = ["Attempt", "KnownModel", "begin", "find_built", "find_file", "find_known"]

_T = TypeVar("_T")
_MOST_MESSAGE_BYTES = 64 << 20
"""The longest message, without large tensors, that is worth its digest."""


@dataclasses.dataclass(frozen=True, slots=True)
class Attempt:
    """A session on its way, whose model has a key."""

    opened: OpenedModel
    """The model's file."""
    key: str
    """The key of what is decided of it."""
    providers: ProviderList
    """The session's."""
    identity: Identity | None
    """By which sessions of this process share what is built; None where they do not."""
    message: str
    """The digest of the file's message."""
    file: SettledFile | None
    """The file, where it has been as it is for a while."""
    folder: str | None
    """That of files beside the model's own; None for the same one."""
    began_ns: int
    """When the attempt began."""

    def data_files(self, locations: Sequence[str], stamps: Mapping[Path, FileStamp]) -> tuple[DataFile, ...] | None:
        """Return the files of the model beside its own; None where they may have changed since the attempt began, or are not known.

        Args:
            locations: by which tensors name them.
            stamps: what all files were that the model was read from.
        """
        return data_files(locations, self.opened.path, self.folder, stamps, self.began_ns)

    def knows_files(self, locations: Sequence[str], stamps: Mapping[Path, FileStamp]) -> bool:
        """Return whether tensors name all files of the model; arguments are those of `data_files`."""
        return set(stamps) <= {self.opened.path, *data_paths(locations, self.opened.path, self.folder)}

    def restored(self) -> Restored | None:
        """Return what a session before decided of this model; None where there is nothing, or nothing that still holds."""
        cache = shared_cache()
        content = None if cache is None else cache.load(self.key)
        if content is None:
            return None
        return self._without_errors(
            lambda: read_record(content, self._elements(), {item.name: item for item in self.providers.all})
        )

    @property
    def programs_key(self) -> str | None:
        """The key of the programs of a model with no file but its own; None where they are not kept."""
        return None if self.identity is None else programs_key(self.identity, self.opened)

    def keep_programs(self, built: Built, settings: Settings) -> None:
        """Keep the programs of a session that was made, where that is possible and all its files are known."""
        if built.data is None or built.has_contexts or self._has_changed() or not are_as_before(built.data):
            return
        base, able = self.programs_key, remembering(self.providers.all)
        if base is None or able is None or (built.data and self.file is None):  # those with data are found by the file alone
            return
        key = with_data(base, built.data)
        if key is None:
            return
        providers = {item.name: item for item in self.providers.all}
        steps = [step for plan in built.plans for step in plan.steps if isinstance(step, ProgramStep)]
        if not providers.keys() >= {step.provider for step in steps}:  # operators of installed packages run beside the providers
            return

        def store() -> bool:
            programs = [(providers[step.provider], step.program) for step in steps]
            facts = [(item.name, item.decision_facts()) for item in able]
            return store_programs(key, functools.partial(outline_of, built), facts, programs)

        with span("decisions.keep_programs"):
            if self._without_errors(store):
                self.remember(settings, built.data)

    def remember(self, settings: Settings, data: Sequence[DataFile] = ()) -> None:
        """Let later processes find the programs of this model by its file, where it has been as it is for a while.

        `data` are the files beside it.
        """
        key, cache = self.programs_key, shared_cache()
        if self.file is None or key is None or cache is None or self.identity is None or self._has_changed():
            return
        name = known_file_key(self.file, sample(self.opened.content.read, len(self.opened.content)), settings, self.providers.all)
        if name is not None:
            content = self.identity[-1]
            own, beside = content if isinstance(content, bytes) else b"", tuple(item.location for item in data)
            store_known(name, (self.key, self.message, own, key, beside), None if beside else key)

    def _has_changed(self) -> bool:
        """Return whether the file is another one than when it was opened, as its entry shows."""
        return self.file is not None and settled_file(self.file[0]) != self.file

    def keep(self, decided: Decided) -> None:
        """Keep what was decided, where that is possible."""
        cache, able = shared_cache(), remembering(self.providers.all)
        if cache is None or able is None:
            return
        with span("decisions.keep"):
            content = self._without_errors(lambda: write_record(self._elements(), decided, able))
            if content is None:
                event("decisions.not_kept", key=self.key)
            else:
                cache.store(self.key, content)

    def _elements(self) -> Elements:
        return Elements(self.opened, self.folder)

    def _without_errors(self, work: Callable[[], _T]) -> _T | None:
        try:
            return work()
        except (NoPlainForm, SardonyxError, StaleError) as error:
            check_cancelled()
            raise_interrupt(error)
            event("decisions.failed", key=self.key, error=str(error))
            return None


def find_file(source: Source, settings: Settings, providers: ProviderList) -> SettledFile | None:
    """Return the file of a model by which something may be known of it; None where there is none.

    Args:
        source: the model; a path.
        settings: of the session.
        providers: of the session.
    """
    given = source.given
    if not isinstance(given, (str, os.PathLike)) or not settings.shares_programs or not _keeps(settings, providers):
        return None
    return None if registered_formats() else settled_file(given)


def find_built(file: SettledFile | None, settings: Settings, providers: ProviderList) -> Built | None:
    """Return what another session of the same file is built of, without reading the file; None where that is not known.

    Args:
        file: what `find_file` found.
        settings: of the session.
        providers: of the session.
    """
    known = None if file is None else known_digests(file)
    if file is None or known is None:
        return None
    key = key_of(known[0], settings, providers.all)
    return None if key is None else find_shared(identity_with(key, *file, known[1]))


@dataclasses.dataclass(frozen=True, slots=True)
class KnownModel:
    """A file of which an earlier process kept programs."""

    path: Path
    """The file, as it was given."""
    file: SettledFile
    """The same file, with what tells it from others."""
    key: str
    """The key of what is decided of it."""
    message: str
    """The digest of its message."""
    content: bytes
    """That of all its bytes, b"" for a large one."""
    programs_key: str
    """The key of its programs."""
    data: tuple[DataFile, ...]
    """The files beside it."""
    kept: KeptPrograms | None = None
    """Its programs, where they are small."""


def find_known(source: Source, file: SettledFile | None, settings: Settings, providers: ProviderList) -> KnownModel | None:
    """Return what is known of a model by its file, of whose bytes only samples are read; None where nothing is.

    Arguments are those of `find_file` and `find_built`.
    """
    given = source.given
    if not isinstance(given, (str, os.PathLike)):
        return None
    pieces = None if file is None or shared_cache() is None else sample_file(file)
    key = None if file is None or pieces is None else known_file_key(file, pieces, settings, providers.all)
    try:
        known = None if key is None else load_known(key)
        if file is None or known is None:
            return None
        (own, message, digest, base, locations), kept = known
        path = Path(os.fsdecode(given))
        data = data_files_again(locations, path, settings.load.external_folder) if locations else ()
        programs = None if data is None else with_data(base, data)
        return None if data is None or programs is None else KnownModel(path, file, own, message, digest, programs, data, kept)
    except (EOFError, TypeError, ValueError) as error:
        event("decisions.failed", key=key, error=str(error))
        return None


def _keeps(settings: Settings, providers: ProviderList) -> bool:
    return settings.keeps_decisions and config.keeps_decisions() and not providers.excluded and not _has_operators()


def begin(source: Source, settings: Settings, providers: ProviderList) -> Attempt | None:
    """Return the attempt to make a session by what was decided before; None where that is not kept for this session.

    Args:
        source: the model; a path or bytes, else there is no attempt.
        settings: of the session.
        providers: of the session.
    """
    if not _keeps(settings, providers):
        return None
    given = source.given
    if not isinstance(given, (str, os.PathLike, bytes)):
        return None
    file, began_ns = None if isinstance(given, bytes) else settled_file(given), time.time_ns()
    try:
        opened = open_model(given, None if isinstance(given, bytes) else Path(os.fsdecode(given)))
        if opened.is_folder or opened.format in registered_formats():
            return None
        if len(opened.content if opened.message is None else opened.message) > _MOST_MESSAGE_BYTES:
            return None
        message = opened.digest()
        key = key_of(message, settings, providers.all)
        if key is None:
            return None
        identity = identity_of(opened, key, message) if settings.shares_programs else None
        known = file if file is not None and file[1] == opened.stamp else None
        return Attempt(opened, key, providers, identity, message, known, settings.load.external_folder, began_ns)
    except (SardonyxError, ValueError):  # those who read the model again say what is wrong
        return None


def _has_operators() -> bool:
    """Return whether the process knows operators of the user's; those of installed packages follow from the packages."""
    module = sys.modules.get("sardonyx.custom_ops.registered")
    return module is not None and bool(module.registered_operators())
