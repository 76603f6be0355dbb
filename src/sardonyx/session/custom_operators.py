"""The custom operators of a session: known to its checks and to inference, and run by a provider that is asked first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.custom_ops.registered import registered_operators
from sardonyx.errors import Fail
from sardonyx.forks import without_fork
from sardonyx.ops.session_operators import Lookup
from sardonyx.session.extensions import installed_operators
from sardonyx.session.settings.settings import Settings
from sardonyx.session.stages.provider_list import ProviderList

if TYPE_CHECKING:
    from sardonyx.custom_ops.catalog import Catalog

__all__ = ["lookup_of", "with_custom_operators"]


def with_custom_operators(settings: Settings, providers: ProviderList) -> tuple[Lookup | None, ProviderList]:
    """Return what knows the custom operators, and the providers with the one that runs them before the others.

    Where an operator has a kernel for the CPU provider, another that takes what that leaves comes after them.

    Operators of `settings` come first, then those registered for the process, then those of installed packages. Without custom
    operators there is none, and the providers are as they were.

    Raises:
        Fail: an installed package names what is no operator.
    """
    catalog = _catalog_of(settings)
    if catalog is None:
        return None, providers
    with without_fork():
        from sardonyx.custom_ops.provider import CustomOperatorsProvider  # which few sessions need

    entries = settings.optimize.entries
    devices = [provider for provider in providers.all if provider.name in catalog.devices]
    on_devices = [CustomOperatorsProvider(catalog, entries, device=device) for device in devices]
    asked = (CustomOperatorsProvider(catalog, entries), *on_devices, *providers.all)
    if catalog.has_kernels:
        asked += (CustomOperatorsProvider(catalog, entries, is_first=False),)
    return catalog, dataclasses.replace(providers, all=asked)


def lookup_of(settings: Settings) -> Lookup | None:
    """Return what knows the custom operators of `settings`, for a model that is not run; None where there are none."""
    return _catalog_of(settings)


def _catalog_of(settings: Settings) -> Catalog | None:
    sources = (*settings.custom_ops, *registered_operators(), *installed_operators(_refuse))
    definitions = [definition for source in sources for definition in source.definitions]
    if not definitions:
        return None
    with without_fork():
        from sardonyx.custom_ops.catalog import Catalog

    return Catalog(definitions)


def _refuse(message: str) -> None:
    raise Fail(message)
