"""Options of sessions in few words."""

from __future__ import annotations

from sardonyx import SessionOptions

__all__ = ["options_of"]


def options_of(**entries: str) -> SessionOptions:
    """Options with these config entries; `__` stands for the dots of a key."""
    options = SessionOptions()
    for key, text in entries.items():
        options.add_session_config_entry(key.replace("__", "."), text)
    return options
