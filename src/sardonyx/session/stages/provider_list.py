"""The providers of a session, and those of them that are left out since they failed."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.logs import user_stacklevel
from sardonyx.provider import Provider
from sardonyx.trace import event

__all__ = ["ProviderList", "warn_left_out"]


def warn_left_out(name: str, reason: str) -> None:
    """Warn that a provider is left out of a session since it failed."""
    event("provider.left_out", provider=name, error=reason)
    message = f'provider {name} failed and is left out of this session, as provider_failure is "skip": {reason}'
    warnings.warn(message, UserWarning, stacklevel=user_stacklevel())


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
        """Return the list that leaves out one more, and warn of that, as somebody chose it."""
        warn_left_out(name, reason)
        return dataclasses.replace(self, excluded={**self.excluded, name: reason})
