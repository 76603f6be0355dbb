"""Looking up and keeping what was decided of a model; nothing that goes wrong with that is an error.

attempt = begin(source, settings, providers)
built = attempt.built()            what a session before decided, compiled; None where there is nothing of that
attempt.keep(decided)              for later sessions
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from sardonyx import config
from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.cancellation import check_cancelled, raise_interrupt
from sardonyx.disk_cache import shared_cache
from sardonyx.errors import SardonyxError
from sardonyx.formats.opened import OpenedModel, open_model
from sardonyx.formats.registry import registered_formats
from sardonyx.runtime.plan import ProgramStep
from sardonyx.session.built import Built
from sardonyx.session.decisions.key import key_of, remembering
from sardonyx.session.decisions.known_files import known_digests, settled_file
from sardonyx.session.decisions.programs import programs_key, store_programs
from sardonyx.session.decisions.record import Decided, Restored, StaleError, read_record, write_record
from sardonyx.session.decisions.sharing import Identity, find_shared, identity_of, identity_with
from sardonyx.session.settings.settings import Settings
from sardonyx.session.stages.provider_list import ProviderList
from sardonyx.session.stages.source import Source
from sardonyx.trace import event, span

__all__ = ["Attempt", "begin", "find_built"]

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

    def record(self) -> bytes | None:
        """Return the record of what a session before decided of this model; None where there is none."""
        cache = shared_cache()
        return None if cache is None else cache.load(self.key)

    def restored(self, record: bytes, *, claims: bool) -> Restored | None:
        """Return what a record says; None where it does not hold any more. Without `claims` partitions cannot be compiled."""
        providers = {item.name: item for item in self.providers.all}
        return self._without_errors(lambda: read_record(record, self.opened, providers, claims=claims))

    @property
    def programs_key(self) -> str | None:
        """The key of the model's programs; None where they are not kept."""
        return None if self.identity is None else programs_key(self.identity, self.opened)

    def keep_programs(self, built: Built) -> None:
        """Keep the programs of a session that was made, where that is possible."""
        (plan, *bodies), key = built.plans, self.programs_key
        if key is None or bodies:
            return
        providers = {item.name: item for item in self.providers.all}
        steps = [step for step in plan.steps if isinstance(step, ProgramStep)]
        if len(steps) == len(plan.steps):
            with span("decisions.keep_programs"):
                self._without_errors(lambda: store_programs(key, [(providers[step.provider], step.program) for step in steps]))

    def keep(self, decided: Decided) -> None:
        """Keep what was decided, where that is possible."""
        cache, able = shared_cache(), remembering(self.providers.all)
        if cache is None or able is None:
            return
        with span("decisions.keep"):
            content = self._without_errors(lambda: write_record(self.opened, decided, able))
            if content is None:
                event("decisions.not_kept", key=self.key)
            else:
                cache.store(self.key, content)

    def _without_errors(self, work: Callable[[], _T]) -> _T | None:
        try:
            return work()
        except (SardonyxError, StaleError) as error:
            check_cancelled()
            raise_interrupt(error)
            event("decisions.failed", key=self.key, error=str(error))
            return None


def find_built(source: Source, settings: Settings, providers: ProviderList) -> Built | None:
    """Return what another session of the same file is built of, without reading the file; None where that is not known.

    Args:
        source: the model; a path.
        settings: of the session.
        providers: of the session.
    """
    given = source.given
    if not isinstance(given, (str, os.PathLike)) or not settings.shares_programs or not _keeps(settings, providers):
        return None
    file = None if registered_formats() else settled_file(given)
    known = None if file is None else known_digests(file)
    if file is None or known is None:
        return None
    key = key_of(known[0], settings, providers.all)
    return None if key is None else find_shared(identity_with(key, *file, known[1]))


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
        return Attempt(opened, key, providers, identity_of(opened, key, message) if settings.shares_programs else None)
    except (SardonyxError, ValueError):  # those who read the model again say what is wrong
        return None


def _has_operators() -> bool:
    """Return whether the process knows operators of the user's; those of installed packages follow from the packages."""
    module = sys.modules.get("sardonyx.custom_ops.registered")
    return module is not None and bool(module.registered_operators())
