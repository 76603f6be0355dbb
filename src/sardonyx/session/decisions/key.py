"""What the decisions about a model depend on, as one digest: equal keys, equal decisions.

    the model      its message, without the elements of large tensors; those that were read are compared one by one (`record.py`)
    the session    all that its options say, and its providers with what they compile for
    the process    the sources of this package and of installed rules, passes and operators; installed packages, versions,
                   environment variables, limits

A session with something that has no plain form, such as a rule of the user's, an array or a callback, has no key.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeGuard, runtime_checkable

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.config import LIMITS, Limits, keeps_decisions, settings_in_force
from sardonyx.digests import Digest, sha256
from sardonyx.installed import points_in, search_path
from sardonyx.ir import Dim
from sardonyx.provider import Capability, Provider
from sardonyx.session.settings.settings import MemorySettings, PlacementSettings, SaveSettings, Settings
from sardonyx.sources import stamp_of, take_stamp

__all__ = ["RemembersClaims", "installed_packages", "key_of", "plugin_sources", "remembering"]

_FORM = "decisions 1"
"""Changes with the form of records."""
_OWN_MODULES = "sardonyx.providers."
_WITHOUT_EFFECT = frozenset({"SARDONYX_CACHE_DIR", "SARDONYX_CACHE_BYTES", "SARDONYX_TRACE", "SARDONYX_KEEP_DECISIONS"})
_RECORDS = (".dist-info", ".egg-info", ".egg-link")
_PLUGINS = frozenset({"sardonyx.rules", "sardonyx.passes", "sardonyx.operators"})


@runtime_checkable
class RemembersClaims(Protocol):
    """A provider of this package that makes its claims again from what a session before noted of them."""

    name: str
    """Its name."""

    def decision_key(self) -> str:
        """Return all that its claims depend on besides the graph and the sources: its options, and what it compiles for."""

    def decision_facts(self) -> tuple[str, ...]:
        """Return texts that take long to find out and follow from the sources and packages that are installed."""

    def take_facts(self, facts: tuple[str, ...]) -> None:
        """Take what `decision_facts` returned in a process with the same sources and packages."""

    def note(self, claim: Capability) -> tuple[tuple[Dim, ...], ...] | None:
        """Return what of a claim does not follow from its node: the elements of outputs that are sizes; None for nothing."""

    def claim_again(self, claim: Capability, noted: tuple[tuple[Dim, ...], ...] | None) -> Capability:
        """Return a claim of the same nodes with what was noted of it; raises EPFail where the nodes cannot be claimed so."""


_TEXTS: dict[int, tuple[object, str]] = {}
"""Identity of settings or limits -> these, so that it stays theirs, and their text: sessions of equal plain options have the same
ones."""
_MOST_TEXTS = 8
_PLAIN = frozenset((type(None), bool, int, float, str, bytes))
_NO_SAVE, _NO_MEMORY, _NO_PLACEMENT = SaveSettings(), MemorySettings(), PlacementSettings()


class _NoPlainTextError(Exception):
    """A setting holds what is not a text, a number, or a collection of these."""


def key_of(model: str, settings: Settings, providers: Sequence[Provider]) -> str | None:
    """Return the key of a model's decisions, 64 hexadecimal digits; None where they are not to be kept.

    Args:
        model: the digest of its message.
        settings: of the session.
        providers: of the session.
    """
    asked, able = _settings_text(settings), remembering(providers)
    path = search_path()
    sources, packages, plugins = stamp_of("sardonyx"), installed_packages(path), plugin_sources(path)
    if asked is None or able is None or sources is None or plugins is None or "llvmlite-" not in packages:
        return None
    try:
        parts = (
            model,
            asked,
            repr([(provider.name, provider.decision_key()) for provider in able]),
            repr([type(finder).__qualname__ for finder in sys.meta_path]),
            repr([item for item in settings_in_force().items() if item[0] not in _WITHOUT_EFFECT]),
            _limits_text(LIMITS),
        )
    except _NoPlainTextError:
        return None
    digest = _begun(sources, packages, plugins, np.__version__).copy()
    digest.update("\0".join(parts).encode(errors="surrogatepass"))
    return digest.hexdigest()


@functools.lru_cache(maxsize=8)
def _begun(sources: str, packages: str, plugins: str, numpy: str) -> Digest:
    """Return a digest of what a process is, to which a session adds its own: long texts, which are digested once."""
    parts = (_FORM, sources, packages, plugins, f"{sys.version} {sys.platform} {numpy}", "")
    return sha256("\0".join(parts).encode(errors="surrogatepass"))


def remembering(providers: Sequence[Provider]) -> list[RemembersClaims] | None:
    """Return the providers where all of them are of this package and can make their claims again; else None."""
    able = [provider for provider in providers if _remembers(provider)]
    return able if len(able) == len(providers) else None


def _remembers(provider: Provider) -> TypeGuard[RemembersClaims]:
    """Return whether a provider is of this package and has the methods, by one of them: to compare the protocol takes longer."""
    return type(provider).__module__.startswith(_OWN_MODULES) and hasattr(type(provider), "claim_again")


def _settings_text(settings: Settings) -> str | None:
    """Return the text of all that the options of a session say; None where its decisions are not to be kept."""
    known = _TEXTS.get(id(settings))
    if known is not None:
        return known[1]
    try:
        text = _fields_text(settings, without="logs") if _is_plain(settings) else None
    except _NoPlainTextError:
        return None
    return None if text is None else _remembered(settings, text)


def _limits_text(limits: Limits) -> str:
    known = _TEXTS.get(id(limits))
    return _remembered(limits, _text(limits)) if known is None else known[1]


def _remembered(value: object, text: str) -> str:
    if len(_TEXTS) >= _MOST_TEXTS:
        _TEXTS.clear()
    _TEXTS[id(value)] = value, text
    return text


def _is_plain(settings: Settings) -> bool:
    """Return whether a session writes nothing while it is made, and depends on no file but the model's."""
    placement = dataclasses.replace(settings.placement, order=(), forbids_fallback=False, records_assignment=False)
    return (
        settings.save == _NO_SAVE
        and settings.memory == _NO_MEMORY
        and placement == _NO_PLACEMENT
        and not settings.context.writes
        and not settings.optimize.verify
        and not settings.custom_ops
        and settings.execution.profile_prefix is None
    )


@functools.lru_cache(maxsize=8)
def installed_packages(path: tuple[str, ...]) -> str:
    """Return the records of packages in the folders of `path`, the `search_path`; a change of it is a new search."""
    found = []
    for folder in path:
        with contextlib.suppress(OSError):
            names = sorted(name for name in os.listdir(folder or ".") if name.endswith(_RECORDS))
            if names:
                found.append(f"{folder} {os.stat(folder or '.').st_mtime_ns} {' '.join(names)}")
    return "\n".join(found)


@functools.lru_cache(maxsize=8)
def plugin_sources(path: tuple[str, ...]) -> str | None:
    """Return what the sources are of rules, passes and operators that packages on `path` bring; None where that cannot be known.

    Those of a package that is being worked on change where they lie, without a change of its record.
    """
    found = []
    for folder in path:
        with contextlib.suppress(OSError):
            found += _plugins_in(points_in(folder) or b"")
    stamps = []
    for module in sorted(set(found)):
        try:
            stamp = stamp_of(module)
        except (ImportError, ValueError):
            stamp = None
        if stamp is None:
            return None
        stamps.append(f"{module} {stamp}")
    return "\n".join(stamps)


def _plugins_in(text: bytes) -> list[str]:
    """Return the packages that records' entry points name as rules, passes and operators."""
    found, is_ours = [], False
    for line in text.decode("utf-8", "replace").splitlines() if b"[sardonyx." in text else ():
        if line.startswith("["):
            is_ours = line.strip("[] ") in _PLUGINS
        elif is_ours and "=" in line:
            found.append(line.partition("=")[2].strip().partition(":")[0].partition(".")[0])
    return found


def _text(value: object) -> str:
    """Return a text that differs for values that differ; raises _NoPlainTextError for what has no such text."""
    if type(value) in _PLAIN or isinstance(value, (bool, int, float, str, bytes, enum.Enum)):
        return repr(value)
    if hasattr(type(value), "__dataclass_fields__") and dataclasses.is_dataclass(value):
        return _fields_text(value)
    if isinstance(value, (list, tuple)):
        return f"[{_all(value)}]"
    if isinstance(value, (set, frozenset)):
        return f"{{{_all(sorted(value))}}}"
    if isinstance(value, Mapping):
        return f"{{{_all(sorted(value.items()))}}}"
    raise _NoPlainTextError


def _fields_text(value: object, without: str = "") -> str:
    """Return the text of a dataclass's object, without one of its fields."""
    kind: type = type(value)
    return f"{kind.__name__}({_all([getattr(value, name) for name in _names_of(kind) if name != without])})"


@functools.lru_cache(maxsize=64)
def _names_of(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


def _all(values: Iterable[object]) -> str:
    return ",".join([repr(value) if type(value) in _PLAIN else _text(value) for value in values])


if keeps_decisions():  # what sessions ask for, and no model changes
    take_stamp("sardonyx")
    installed_packages(search_path())
