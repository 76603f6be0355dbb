"""What each session needs and no model decides, done when the package is imported: a first session finds it there."""

from __future__ import annotations

import contextlib

from sardonyx.codegen.target import read_processor
from sardonyx.config import keeps_decisions
from sardonyx.digests import blake2b
from sardonyx.errors import SardonyxError
from sardonyx.session.decisions.key import key_of
from sardonyx.session.options import SessionOptions
from sardonyx.session.settings.settings import read_settings

__all__ = ["prepare_process"]


def prepare_process() -> None:
    """Read what the processor is, and run once what reads options and makes keys of them.

    Nothing that variables of the environment say is kept: they may be set until the first session.
    """
    with contextlib.suppress(OSError, SardonyxError):  # a session says what is wrong
        read_processor()
        settings = read_settings(SessionOptions())
        if keeps_decisions():
            key_of("", settings, ())
            blake2b()
