"""Warnings of config entries that have no effect: misspelt keys, and what onnxruntime does and sardonyx does not."""

from __future__ import annotations

import warnings

from sardonyx.logs import user_stacklevel
from sardonyx.option import is_foreign
from sardonyx.session.settings.foreign import IGNORED, IGNORED_OF_RUNS
from sardonyx.session.settings.keys import KEYS, KEYS_OF_RUNS
from sardonyx.spelling import nearest

__all__ = ["check_run_entry", "check_session_entry", "warn_of_order"]

_OWN = ("session.", "sardonyx.", "optimization.")
"""What the keys begin with that are ours or onnxruntime's; others may be those of a provider."""
_KNOWN = frozenset(option.name for options in KEYS.values() for option in options)
_KNOWN_OF_RUNS = frozenset(option.name for option in KEYS_OF_RUNS)


def check_session_entry(key: str, text: str) -> None:
    """Warn where an entry of a session has no effect: its key is unknown, or what it asks for is not done here."""
    foreign = is_foreign(key, IGNORED)
    if key in _KNOWN:
        return
    if foreign is not None:
        if foreign.usual is not None and text != foreign.usual:
            _warn(f"the session config entry {key} = {text!r} has no effect: {foreign.reason}")
        return
    close = nearest(key, [*_KNOWN, *(item.name for item in IGNORED)])
    if close or key.startswith(_OWN):
        _warn(f"there is no session config entry {key!r}, so it has no effect; {_advice(close)}")


def check_run_entry(key: str, text: str) -> None:
    """Warn where the key of an entry of a run is probably misspelt."""
    if key not in _KNOWN_OF_RUNS and is_foreign(key, IGNORED_OF_RUNS) is None:
        close = nearest(key, [*_KNOWN, *_KNOWN_OF_RUNS, *(item.name for item in IGNORED_OF_RUNS)])
        if close in _KNOWN:
            _warn(f"{key!r} is an entry of sessions, and has no effect on a run; use SessionOptions.add_session_config_entry")
        elif close:
            _warn(f"there is no run config entry {key!r}, so it has no effect; {_advice(close)}")


def warn_of_order() -> None:
    """Warn that `execution_order` is set, which has no effect."""
    message = "SessionOptions.execution_order has no effect: steps run in the order of the plan"
    warnings.warn(message, UserWarning, stacklevel=user_stacklevel())


def _advice(close: str) -> str:
    return f"did you mean {close!r}?" if close else "docs/options.md lists those that there are"


def _warn(message: str) -> None:
    warnings.warn(message, UserWarning, stacklevel=user_stacklevel())
