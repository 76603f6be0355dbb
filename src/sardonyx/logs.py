"""Messages for people, through Python's `logging` under the name "sardonyx", with onnxruntime's severities.

set_default_logger_severity(1)                       from INFO on
logging.getLogger("sardonyx").addHandler(handler)    anywhere, as for any package
"""

from __future__ import annotations

import logging
import operator
import sys
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, SupportsIndex, TypeAlias

from sardonyx.errors import InvalidArgument

__all__ = [
    "LogCallback",
    "log",
    "set_default_logger_callback",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
]

LogCallback: TypeAlias = Callable[[int, str, str, str, str], None]
"""f(severity, category, logid, code_location, message)."""

_LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL)
"""Python's level for each severity: verbose, info, warning, error, fatal."""
_LOGGER = logging.getLogger("sardonyx")
_LOGGER.addHandler(logging.NullHandler())
_WARNING = 2


def log(severity: int, message: str, logid: str = "", least: int = -1) -> None:
    """Write a message.

    Args:
        severity: 0 (verbose) to 4 (fatal).
        message: one line.
        logid: the `logid` of the session or run.
        least: the severity from which on the session or run writes; -1 for the process's.
    """
    if severity >= least and (least >= 0 or _LOGGER.isEnabledFor(_LEVELS[severity])):
        name = "sardonyx" if not logid else f"sardonyx.{logid}"
        record = _LOGGER.makeRecord(name, _LEVELS[severity], "sardonyx", 0, message, (), None)
        _LOGGER.handle(record)


def set_default_logger_severity(severity: SupportsIndex) -> None:
    """Set from which severity on messages are written: 0 verbose, 1 info, 2 warning, 3 error, 4 fatal.

    Raises:
        InvalidArgument: another number.
    """
    _LOGGER.setLevel(_LEVELS[_checked(severity)])


def set_default_logger_verbosity(verbosity: SupportsIndex) -> None:
    """Accept the verbosity of onnxruntime's debug builds: verbose messages here have one level."""
    operator.index(verbosity)


def set_default_logger_callback(callback: LogCallback | None, severity: SupportsIndex = _WARNING) -> None:
    """Hand messages to a callable, or to nobody again where it is None.

    Args:
        callback: is called with the severity, "sardonyx", the logid, the place in the code and the message. What it raises goes to
            `sys.unraisablehook`.
        severity: from which severity on; not used where `callback` is None.

    Raises:
        InvalidArgument: the severity is not 0 to 4, or `callback` cannot be called.
    """
    level = _checked(severity)
    if callback is not None and not callable(callback):
        raise InvalidArgument(f"the callback of set_default_logger_callback is a function or None, got {type(callback).__name__}")
    for handler in [item for item in _LOGGER.handlers if isinstance(item, _CallbackHandler)]:
        _LOGGER.removeHandler(handler)
    if callback is not None:
        _LOGGER.setLevel(_LEVELS[level])
        _LOGGER.addHandler(_CallbackHandler(callback))


class _CallbackHandler(logging.Handler):
    """A handler that calls a user's function, but not for messages that come from within it."""

    def __init__(self, callback: LogCallback) -> None:
        logging.Handler.__init__(self)
        self._callback = callback
        self._inside = threading.local()

    def emit(self, record: logging.LogRecord) -> None:
        """Call the function."""
        if getattr(self._inside, "now", False):
            return
        self._inside.now = True
        try:
            logid = record.name.partition(".")[2]
            self._callback(
                _LEVELS.index(record.levelno), "sardonyx", logid, f"{record.pathname}:{record.lineno}", record.getMessage()
            )
        except Exception:  # noqa: BLE001  a user's function may raise anything; a message must not end the run
            _report(self._callback)
        finally:
            self._inside.now = False


def _report(source: object) -> None:
    """Hand the error that is being handled to `sys.unraisablehook`."""
    kind, error, trace = sys.exc_info()
    told: Any = SimpleNamespace(exc_type=kind, exc_value=error, exc_traceback=trace, err_msg="a log callback raised", object=source)
    sys.unraisablehook(told)


def _checked(severity: SupportsIndex) -> int:
    level = operator.index(severity)
    if not 0 <= level < len(_LEVELS):
        raise InvalidArgument(f"Invalid logging severity {level}. 0:Verbose, 1:Info, 2:Warning, 3:Error, 4:Fatal")
    return level
