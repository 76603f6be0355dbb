"""The custom operators of a session: known to its checks and to inference, and run by a provider that is asked first."""

from __future__ import annotations

import dataclasses

from sardonyx.forks import without_fork
from sardonyx.ops.session_operators import Lookup
from sardonyx.session.settings.settings import Settings
from sardonyx.session.stages.provider_list import ProviderList

__all__ = ["with_custom_operators"]


def with_custom_operators(settings: Settings, providers: ProviderList) -> tuple[Lookup | None, ProviderList]:
    """Return what knows the custom operators of `settings`, and the providers with the one that runs them before the others.

    Without custom operators there is none, and the providers are as they were.
    """
    definitions = [definition for library in settings.custom_ops for definition in library.definitions]
    if not definitions:
        return None, providers
    with without_fork():
        from sardonyx.custom_ops.catalog import Catalog  # which few sessions need
        from sardonyx.custom_ops.provider import CustomOperatorsProvider

    catalog = Catalog(definitions)
    first = CustomOperatorsProvider(catalog, settings.optimize.entries)
    return catalog.find_operator, dataclasses.replace(providers, all=(first, *providers.all))
