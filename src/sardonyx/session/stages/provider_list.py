"""The providers of a session, and those of them that are left out since they failed."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from sardonyx.provider import Provider

__all__ = ["ProviderList"]


@dataclasses.dataclass(frozen=True, slots=True)
class ProviderList:
    """Providers in the order in which they are asked; the last runs everything."""

    all: tuple[Provider, ...]
    """The session's."""
    excluded: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Providers that failed and are not asked, and how they failed."""

    @classmethod
    def of(cls, providers: Sequence[Provider], excluded: Mapping[str, str] | None = None) -> ProviderList:
        """Return the list of `providers`."""
        return cls(tuple(providers), dict(excluded or {}))

    @property
    def able(self) -> list[Provider]:
        """Those that are asked."""
        return [provider for provider in self.all if provider.name not in self.excluded]

    @property
    def names(self) -> list[str]:
        """The names of all."""
        return [provider.name for provider in self.all]

    def without(self, name: str, reason: str) -> ProviderList:
        """Return the list that leaves out one more."""
        return dataclasses.replace(self, excluded={**self.excluded, name: reason})
