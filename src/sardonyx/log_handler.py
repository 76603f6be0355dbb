"""A handler of Python's `logging` that hands messages to a user's function, as onnxruntime's logger does."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

__all__ = ["CallbackHandler"]


class CallbackHandler(logging.Handler):
    """A handler that calls a user's function, but not for messages that come from within it."""

    def __init__(
        self,
        callback: Callable[[int, str, str, str, str], None],
        levels: Sequence[int],
        report: Callable[[object, str], None],
    ) -> None:
        """Call `callback` with each message.

        Args:
            callback: takes the severity, "sardonyx", the logid, the place in the code and the message.
            levels: the level of each severity.
            report: is called with the function and what happened, while the error that it raised is being handled.
        """
        logging.Handler.__init__(self)
        self._callback, self._levels, self._report = callback, levels, report
        self._inside = threading.local()

    def emit(self, record: logging.LogRecord) -> None:
        """Call the function."""
        if getattr(self._inside, "now", False):
            return
        self._inside.now = True
        try:
            severity, logid = self._levels.index(record.levelno), record.name.partition(".")[2]
            self._callback(severity, "sardonyx", logid, f"{record.pathname}:{record.lineno}", record.getMessage())
        except Exception:  # noqa: BLE001  a user's function may raise anything; a message must not end the run
            self._report(self._callback, "a log callback raised")
        finally:
            self._inside.now = False
