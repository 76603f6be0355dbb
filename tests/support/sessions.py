"""Options of sessions in few words, and sessions that are built in part."""

from __future__ import annotations

from typing import Any

from sardonyx import SessionOptions
from sardonyx.ir import Model
from sardonyx.provider import Provider
from sardonyx.session.build import build
from sardonyx.session.built import Built
from sardonyx.session.settings.settings import Settings, read_settings
from sardonyx.session.stages.provider_list import ProviderList
from sardonyx.session.stages.source import Source

__all__ = ["built_of", "options_of", "settings_of"]


def options_of(**entries: str) -> SessionOptions:
    """Options with these config entries; `__` stands for the dots of a key."""
    options = SessionOptions()
    for key, text in entries.items():
        options.add_session_config_entry(key.replace("__", "."), text)
    return options


def settings_of(**entries: str) -> Settings:
    """What options with these config entries say."""
    return read_settings(options_of(**entries))


def built_of(held: Model, *providers: Provider, options: SessionOptions | None = None, **variant: Any) -> Built:
    """A model that is built for these providers."""
    return build(Source(held), read_settings(options or SessionOptions()), ProviderList.of(providers), **variant)
