"""Options that the file of a model brings by its format, such as an NN package with a configuration."""

from __future__ import annotations

import os
from pathlib import Path

from sardonyx.dtypes import OnnxValue
from sardonyx.errors import SardonyxError
from sardonyx.forks import without_fork
from sardonyx.session.options import SessionOptions
from sardonyx.trace import event

__all__ = ["with_options_of_format"]

_PACKAGE_MARK = b"PK"
_USUAL = SessionOptions()
_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def with_options_of_format(given: OnnxValue, options: SessionOptions) -> SessionOptions:
    """Return the options of a session with those that its model brings, where the user set none.

    Args:
        given: what the session is made of.
        options: the session's own, which are not changed.
    """
    if not _may_bring_options(given):
        return options
    with without_fork():
        from sardonyx.formats.models import model_file  # which few sessions need
        from sardonyx.formats.opened import open_model

    try:
        opened = open_model(given, None if isinstance(given, bytes) else Path(os.fsdecode(given)))
        if opened.format is None or opened.format.options is None:
            return options
        found = opened.format.options(model_file(opened))
    except SardonyxError:  # whoever loads the model says what is wrong with it
        return options
    merged = options.copy()
    for name, text in found.items():
        if _add(merged, name, text):
            event("load.option", option=name, value=text)
    return merged


def _may_bring_options(given: OnnxValue) -> bool:
    """Return whether a model can be of a format that brings options: a folder, an archive, or of a format of the user's."""
    if isinstance(given, bytes):
        return given.startswith(_PACKAGE_MARK)
    if not isinstance(given, (str, os.PathLike)):
        return False
    try:
        descriptor = os.open(given, _FLAGS)
    except (OSError, ValueError):
        return _is_folder(given)
    try:
        return os.read(descriptor, len(_PACKAGE_MARK)) == _PACKAGE_MARK
    except OSError:
        return _is_folder(given)
    finally:
        os.close(descriptor)


def _is_folder(given: str | os.PathLike[str]) -> bool:
    try:
        return os.path.isdir(given)
    except ValueError:
        return False


def _add(options: SessionOptions, name: str, text: str) -> bool:
    """Set a property or a config entry where the user has not; returns whether it was set."""
    if "." in name:
        if name in options.session_config_entries:
            return False
        options.add_session_config_entry(name, text)
        return True
    usual = getattr(_USUAL, name)
    if getattr(options, name) != usual:
        return False
    setattr(options, name, type(usual)(int(text)) if isinstance(usual, (bool, int)) else text)
    return True
